"""What `tacit reproduce` does: list the tables of papers, make one, or make them all."""

import signal
from pathlib import Path

from tacit.cli.reproduce import FOLDER, ReproduceOptions
from tacit.errors import MisuseError
from tacit.report import terminal
from typer.exceptions import Exit

from tacit_lab.heorg import contract
from tacit_lab.reproduce import tables
from tacit_lab.reproduce.harness.document import document, publish
from tacit_lab.reproduce.harness.listing import listing, listing_table
from tacit_lab.reproduce.harness.runner import Folder, Run, chosen
from tacit_lab.reproduce.harness.watch import watch
from tacit_lab.reproduce.paper import paper_table
from tacit_lab.reproduce.tables import TABLES


def reproduce(options: ReproduceOptions, json: bool) -> None:
    """List the tables, make one, or make them all."""
    if [options.table is not None, options.listed, options.every].count(True) != 1:
        raise MisuseError(f"say one of --list, --all or a table: {', '.join(TABLES)}")
    if not options.every and (options.only is not None or options.again or options.output != FOLDER):
        raise MisuseError("--output, --only and --again belong to --all")
    if options.measurements is not None and (options.table is None or not options.table.startswith("heorg-")):
        raise MisuseError("--measurements belongs to a table of heorg-*, whose benchmarks have a harness with files")
    if options.listed:
        show_list(options.data, json)
    elif options.every:
        make_all(options, json)
    else:
        show_table(str(options.table), options, json)


def show_list(data: Path, json: bool) -> None:
    """All tables."""
    found = listing(data)
    if json:
        terminal.emit_json({"tables": found})
    else:
        terminal.console.print(listing_table(found))


def show_table(name: str, options: ReproduceOptions, json: bool) -> None:
    """One table, and its figure."""
    figure = options.figure
    if figure is not None:
        tables.drawable(name)
    with terminal.progress(name):
        content = tables.reproduce(name, options.full, options.data)
    if figure is not None:
        tables.draw(content, figure)
    if options.measurements is not None:
        for path in contract.write(content["measured"], options.measurements):
            terminal.note(f"wrote {path}")
    if json:
        terminal.emit_json(content)
        return
    terminal.console.print(paper_table(content))
    if figure is not None:
        terminal.console.print(f"wrote {figure}", highlight=False)


def make_all(options: ReproduceOptions, json: bool) -> None:
    """Every table in turn; the document is written after each. Exits with 1 if any failed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what runs must not be left behind
    folder, selected = Folder(options.output), chosen(TABLES, options.selected)
    failed: list[str] = []
    run = Run(selected, folder, options.full, options.data, options.again)
    terminal.note(f"{len(selected)} tables, about {max(run.minutes(), 1):.0f} minutes on two idle cores")
    try:
        with watch(list(selected)) as done:
            for result in run.results():
                if not result.kept:
                    publish(folder, document(folder, TABLES, selected))
                done(result)
                failed += [result.entry["table"]] if result.entry["status"] == "failed" else []
    except KeyboardInterrupt:
        terminal.note("interrupted; the same command goes on with the tables that are left")
        raise
    found = document(folder, TABLES, selected)
    publish(folder, found)
    if json:
        terminal.emit_json(found)
    else:
        terminal.console.print(
            f"wrote {options.output / 'reproduction.html'}, .md and .json", highlight=False, soft_wrap=True
        )
    if failed:
        terminal.note(f"error: {len(failed)} of {len(selected)} tables failed: {', '.join(failed)}")
        raise Exit(1)
