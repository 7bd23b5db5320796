"""`tacit report`."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import AsJson
from tacit.report import terminal


def report(
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
    from tacit.report.html.making import FAR, make

    content = make(results, output, title, plan, link)
    if show:
        webbrowser.open(output.absolute().as_uri())
    if json:
        terminal.emit_json(content)
        return
    terminal.console.print(f"wrote {output}", highlight=False)
    if content["far_from_plan"]:
        terminal.console.print(
            f"times more than {FAR:.0%} off the plan: {len(content['far_from_plan'])}", highlight=False
        )
