"""`tacit reproduce`."""

import signal
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import Exit

from tacit import report
from tacit.errors import MisuseError
from tacit.options import AsJson
from tacit.reproduction.conditions import DATA

FOLDER = Path("build/reproduction")


def reproduce_command(
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="A table; see --list.", show_default=False)
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Everything, not what fits into a minute.")] = False,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE.png|svg|pdf", help="Draw the figure that belongs to the table.")
    ] = None,
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="Data sets and models, for tables of accuracy.")] = DATA,
    listed: Annotated[bool, typer.Option("--list", help="Name all tables, what they need, and their minutes.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Every table in turn, into a folder with a document.")] = False,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Of --all: where the document goes.")
    ] = FOLDER,
    only: Annotated[
        str | None, typer.Option(metavar="TABLE,..", help="Of --all: these tables.", show_default=False)
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Of --all: also what is done already.")] = False,
    json: AsJson = False,
) -> None:
    """Print a table of a paper beside the numbers of this machine and code, or make them all.

    Counts are exact and need no machine. Of times only ratios inside one run mean anything. With --all each
    table runs in a process of its own, unattended; started again, tables of this commit are kept. FOLDER gets
    reproduction.html, .md and .json; a table that fails is named there, and the exit code is 1.
    """
    if [table is not None, listed, every].count(True) != 1:
        from tacit.reproduce import TABLES

        raise MisuseError(f"say one of --list, --all or a table: {', '.join(TABLES)}")
    if not every and (only is not None or again or output != FOLDER):
        raise MisuseError("--output, --only and --again belong to --all")
    if listed:
        show_list(data, json)
    elif every:
        make_all(output, None if only is None else [name.strip() for name in only.split(",")], full, data, again, json)
    else:
        show_table(str(table), full, data, figure, json)


def show_list(data: Path, json: bool) -> None:
    """All tables."""
    from tacit.reproduction.listing import listing, listing_table

    tables = listing(data)
    if json:
        report.emit_json({"tables": tables})
    else:
        report.console.print(listing_table(tables))


def show_table(name: str, full: bool, data: Path, figure: Path | None, json: bool) -> None:
    """One table, and its figure."""
    from tacit.reproduce import draw, drawable, reproduce

    if figure is not None:
        drawable(name)
    with report.progress(name):
        content = reproduce(name, full, data)
    if figure is not None:
        draw(content, figure)
    if json:
        report.emit_json(content)
        return
    report.console.print(report.paper_table(content))
    if figure is not None:
        report.console.print(f"wrote {figure}", highlight=False)


def make_all(output: Path, only: list[str] | None, full: bool, data: Path, again: bool, json: bool) -> None:
    """Every table in turn; the document is written after each. Exits with 1 if any failed."""
    from tacit.reproduce import TABLES
    from tacit.reproduction.document import document, publish
    from tacit.reproduction.runner import Folder, Run, chosen
    from tacit.reproduction.watch import watch

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what runs must not be left behind
    folder, selected = Folder(output), chosen(TABLES, only)
    failed: list[str] = []
    run = Run(selected, folder, full, data, again)
    report.note(f"{len(selected)} tables, about {max(run.minutes(), 1):.0f} minutes on two idle cores")
    try:
        with watch(list(selected)) as done:
            for result in run.results():
                if not result.kept:
                    publish(folder, document(folder, TABLES, selected))
                done(result)
                failed += [result.entry["table"]] if result.entry["status"] == "failed" else []
    except KeyboardInterrupt:
        report.note("interrupted; the same command goes on with the tables that are left")
        raise
    found = document(folder, TABLES, selected)
    publish(folder, found)
    if json:
        report.emit_json(found)
    else:
        report.console.print(f"wrote {output / 'reproduction.html'}, .md and .json", highlight=False, soft_wrap=True)
    if failed:
        report.note(f"error: {len(failed)} of {len(selected)} tables failed: {', '.join(failed)}")
        raise Exit(1)
