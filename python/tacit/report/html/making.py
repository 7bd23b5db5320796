"""From files to a file."""

from pathlib import Path
from typing import Any

from tacit._core import __version__
from tacit.errors import MisuseError
from tacit.report.html.content import Costs, Item, Run
from tacit.report.html.page import page, title_of
from tacit.report.html.prediction import FAR, compare
from tacit.report.html.reading import read

__all__ = ["FAR", "make"]


def make(results: list[Path], output: Path, title: str | None, plan: Path | None, link: str | None) -> dict[str, Any]:
    """Write the page of `results`, held against a `plan`, and say what is on it.

    `link` is that of runs that do not name theirs. Raises `MisuseError` for files of another kind.
    """
    items = read(results, link)
    planned = None if plan is None else plan_of(plan)
    write(output, page(items, planned, title or title_of(items), f"tacit {__version__} report"))
    far = [row for item in items for row in far_off(item, planned)]
    names = [item.name for item in items]
    return {"output": str(output), "bytes": output.stat().st_size, "results": names, "far_from_plan": far}


def plan_of(path: Path) -> Costs:
    """The costs of a plan in a file."""
    plans = [item for item in read([path]) if isinstance(item, Run)]
    if len(plans) != 1:
        raise MisuseError(f"{path} is no plan: make one with `tacit plan X.tacit --json`")
    return plans[0].costs


def far_off(item: Item, plan: Costs | None) -> list[dict[str, Any]]:
    """Times of a run that are far from its plan."""
    predicted = (plan or item.predicted) if isinstance(item, Run) else None
    if not isinstance(item, Run) or predicted is None:
        return []
    rows = compare(item.costs, predicted).far
    return [{"result": item.name, "name": row.name, "phase": row.phase, "ratio": row.ratio} for row in rows]


def write(output: Path, document: str) -> None:
    """The file, in a folder that is there."""
    if not output.parent.is_dir():
        raise MisuseError(f"{output}: there is no folder {output.parent}")
    if output.is_dir():
        raise MisuseError(f"{output} is a folder; name a file to write")
    output.write_text(document, encoding="utf-8")
