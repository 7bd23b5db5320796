"""`tacit reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from tacit import report
from tacit.errors import MisuseError
from tacit.options import AsJson

DATA = Path("../shared/data")


def reproduce_command(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="A table; see --list.", show_default=False)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Everything, not what fits into a minute.")] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE.png|svg|pdf", help="Draw the figure that belongs to the table.")
    ] = None,
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="Data sets and models, for tables of accuracy.")] = DATA,
    listed: Annotated[bool, typer.Option("--list", help="Name all tables.")] = False,
    json: AsJson = False,
) -> None:
    """Print a table of a paper beside the numbers of this machine and code.

    Counts are exact and need no machine. Of times only ratios inside one run mean anything.
    """
    from tacit.reproduce import TABLES, plot, reproduce

    if listed:
        tables = {name: entry.what for name, entry in TABLES.items()}
        if json:
            report.emit_json({"tables": tables})
        else:
            for name, what in tables.items():
                report.console.print(f"{name}: {what}", highlight=False)
        return
    if table is None:
        raise MisuseError(f"which table? One of {', '.join(TABLES)}")
    with report.progress(table):
        content = reproduce(table, full, data)
    if figure is not None:
        plot(content, figure)
    if json:
        report.emit_json(content)
        return
    report.console.print(report.paper_table(content))
    if figure is not None:
        report.console.print(f"wrote {figure}", highlight=False)
