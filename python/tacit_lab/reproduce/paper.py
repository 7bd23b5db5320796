"""Tables of papers beside our numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid

from tacit_lab.reproduce.harness.needs import Need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, Any]]


class Minutes(NamedTuple):
    """How long a table takes on two idle cores, roughly, as last measured."""

    quick: float
    full: float

    def of(self, full: bool) -> float:
        """The minutes of the full table, or of the quick one."""
        return self.full if full else self.quick


class Table(NamedTuple):
    """Where it is from, what it shows, and how: from whether all of it is wanted and where data is.

    `full_needs` is what the full table needs in the place of `needs`, where that differs. `seed` is that of
    what is drawn at random besides keys and masks; None where nothing is, or nothing that a number depends on.
    """

    source: str
    what: str
    rows: Callable[[bool, Path], dict[str, Any]]
    minutes: Minutes
    needs: tuple[Need, ...] = ()
    full_needs: tuple[Need, ...] | None = None
    seed: int | None = None
    figure: "Callable[[dict[str, Any]], Figure] | None" = None

    def wants(self, full: bool) -> tuple[Need, ...]:
        """What must be there."""
        return self.needs if self.full_needs is None or not full else self.full_needs


def row(name: str, paper: float, ours: float, unit: str) -> dict[str, Any]:
    """One line of a table."""
    return {"name": name, "paper": paper, "ours": round(ours, 4), "unit": unit}


def ratio(line: dict[str, Any]) -> float | None:
    """Ours over the paper's number; None where the paper has none."""
    return line["ours"] / line["paper"] if line["paper"] else None


def paper_table(content: dict[str, Any]) -> Grid:
    """A row per number of a paper, with ours and their quotient."""
    table = Grid(title=content["table"], caption=content.get("note"), box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("name", overflow="fold")
    for heading in ("paper", "ours", "unit", "ours/paper"):
        table.add_column(heading, justify="right")
    for row in content["rows"]:
        over = ratio(row)
        quotient = "-" if over is None else f"{over:.2f}"
        table.add_row(row["name"], f"{row['paper']:g}", f"{row['ours']:g}", row["unit"], quotient)
    return table
