"""`tacit report`."""

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit import __version__, report
from tacit.errors import MisuseError
from tacit.html_report.content import Costs, Item, Run
from tacit.html_report.page import page, title_of
from tacit.html_report.prediction import FAR, compare
from tacit.html_report.reading import read
from tacit.options import AsJson


def report_command(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN.json...",
            help="What `run`, `predict`, `evaluate`, `bench`, `plan`, `reproduce` or `serve` printed with --json, or "
            "files of bench/results; several are put side by side.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="X.html", help="File to write.")],
    title: Annotated[str | None, typer.Option(help="Title of the page. Default: the model's name.")] = None,
    plan: Annotated[
        Path | None,
        typer.Option(metavar="PLAN.json", help="What `plan --json` printed, to be held against the runs."),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            "--network", metavar="LINK", help="The link of runs that do not name theirs: lan, wan, RTTms,Mbps."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    json: AsJson = False,
) -> None:
    """Make one HTML page of costs: phases, layers, link, accuracy, prediction against measurement.

    The page is a single file that loads nothing from anywhere, reads in print and without scripts, and
    says exact numbers where it is pointed at.
    """
    items = read(results, link)
    planned = None if plan is None else plan_of(plan)
    document = page(items, planned, title or title_of(items), f"tacit {__version__} report")
    write(output, document)
    far = [row for item in items for row in far_off(item, planned)]
    if show:
        webbrowser.open(output.absolute().as_uri())
    if json:
        content = {"output": str(output), "bytes": output.stat().st_size, "results": [item.name for item in items]}
        report.emit_json({**content, "far_from_plan": far})
        return
    report.console.print(f"wrote {output}", highlight=False)
    if far:
        report.console.print(f"times more than {FAR:.0%} off the plan: {len(far)}", highlight=False)


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
