"""The list of tables."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid

from tacit_lab.reproduce.harness.needs import Need, missing
from tacit_lab.reproduce.tables import TABLES


def listing(data: Path) -> dict[str, dict[str, Any]]:
    """By name: source, what, needs and minutes, quick and full, and what of the needs is not there."""
    return {
        name: {
            "source": table.source,
            "what": table.what,
            "needs": names(table.wants(False)),
            "full_needs": names(table.wants(True)),
            "minutes": table.minutes._asdict(),
            "seed": table.seed,
            "figure": table.figure is not None,
            "missing": missing(table.wants(False), data),
            "full_missing": missing(table.wants(True), data),
        }
        for name, table in TABLES.items()
    }


def names(needs: Iterable[Need]) -> list[str]:
    """What they are called."""
    return [need.name for need in needs]


def listing_table(tables: dict[str, dict[str, Any]]) -> Grid:
    """The list for people: needs by the folders they are in."""
    minutes = {full: sum(table["minutes"][full] for table in tables.values()) for full in ("quick", "full")}
    caption = f"{len(tables)} tables: {minutes['quick']:.0f} minutes, {minutes['full']:.0f} with --full; * is not here"
    grid = Grid(caption=caption, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    grid.add_column("name", no_wrap=True)
    for heading in ("what", "needs"):
        grid.add_column(heading)
    for heading in ("minutes", "full"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for name, table in tables.items():
        cells = (name, f"{table['source']}: {table['what']}", needed(name, table))
        grid.add_row(*cells, lasting(table["minutes"]["quick"]), lasting(table["minutes"]["full"]))
    return grid


def lasting(minutes: float) -> str:
    """Minutes in a cell."""
    return f"{minutes:.2g}" if minutes >= 0.1 else "<0.1"


def needed(name: str, table: dict[str, Any]) -> str:
    """Needs in a cell, and those of --full where they are of other kinds."""
    quick, full = (TABLES[name].wants(full) for full in (False, True))
    usual, other = kinds(quick, table["missing"]), kinds(full, table["full_missing"])
    return usual if usual == other else f"{usual}; full: {other}"


def kinds(needs: Iterable[Need], lacking: str | None) -> str:
    """Each kind once, with a mark if something is missing."""
    return ", ".join(dict.fromkeys(need.kind for need in needs)) + ("" if lacking is None else " *")
