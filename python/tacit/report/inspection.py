"""Tables of what a .tacit file says of itself."""

from collections.abc import Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tacit.report.terminal import size

UNKNOWN = "not noted"


def table(model: str, found: dict[str, Any]) -> Table:
    """A row per fact of the file and of the model in it."""
    shown = Table(title=Text(model), box=None, padding=(0, 1, 0, 0), show_header=False)
    shown.add_column("fact")
    shown.add_column("value", overflow="fold")
    for fact, value in rows(found):
        shown.add_row(fact, Text(value))
    return shown


def rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts, in order."""
    yield "digest", found["digest"]
    yield "", "holds" if found["holds"] else f"DAMAGED: its contents have {found['found_digest']}"
    yield "size", f"{size(found['bytes'])} ({found['bytes']:,} bytes), format version {found['format_version']}"
    yield "made by", found["made_by"] or UNKNOWN
    yield "compiled from", found["source"] or UNKNOWN
    yield "options", options(found["options"])
    yield "also stored", ", ".join(found["entries"]) or "nothing"
    yield "network", f"{found['name']}, suite {found['suite']}"
    yield "graph digest", found["public_digest"]
    yield "commitment", found["commitment"] or "none: the file has no salt; compile the model again"
    low, high = found["input"]["range"]
    yield "input", f"{tensor(found['input'])}, {low} to {high}"
    yield "output", f"{tensor(found['output'])}, {found['labels'] or 'no'} labels"
    yield "parameters", f"{found['parameters']:,}"


def options(chosen: dict[str, Any] | None) -> str:
    """Options by name."""
    if chosen is None:
        return UNKNOWN
    return ", ".join(f"{name} {text(value)}" for name, value in chosen.items())


def text(value: Any) -> str:
    """A value of an option."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def tensor(described: dict[str, Any]) -> str:
    """Name, shape and format of a tensor."""
    shape = "x".join(map(str, described["shape"]))
    sign = "signed" if described["signed"] else "not negative"
    return f"{described['name']}, {shape}, {described['bits']} bits, {sign}, scale {described['scale']:.6g}"


def operators(found: dict[str, Any]) -> Table:
    """A row per operator, the most frequent first."""
    shown = Table(title=f"Operators of {found['nodes']} nodes", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("operator")
    shown.add_column("nodes", justify="right")
    for name, count in sorted(found["operators"].items(), key=lambda entry: (-entry[1], entry[0])):
        shown.add_row(name, str(count))
    return shown
