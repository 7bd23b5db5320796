"""Tables of papers beside our numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

Rows = list[dict[str, Any]]


class Table(NamedTuple):
    """What it shows, and how: from whether all of it is wanted and where data is."""

    what: str
    rows: Callable[[bool, Path], dict[str, Any]]


def row(name: str, paper: float, ours: float, unit: str) -> dict[str, Any]:
    """One line of a table."""
    return {"name": name, "paper": paper, "ours": round(ours, 4), "unit": unit}
