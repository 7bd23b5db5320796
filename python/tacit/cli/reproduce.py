"""`tacit reproduce`: it loads the tables from `tacit_lab`, which is a distribution of its own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import AsJson
from tacit.errors import MisuseError

FOLDER = Path("build/reproduction")
"""Where the document of all tables goes, unless `--output` names another folder."""
DATA = Path("../shared/data")
"""Data sets and models, unless `--data` names another folder."""


@dataclass(frozen=True)
class ReproduceOptions:
    """Which tables of papers to make, from what data, and what to write."""

    table: Annotated[str | None, typer.Argument(metavar="TABLE", help="A table; see --list.", show_default=False)] = (
        None
    )
    full: Annotated[bool, typer.Option("--full", help="Everything, not what fits into a minute.")] = False
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE.png|svg|pdf", help="Draw the figure that belongs to the table.")
    ] = None
    measurements: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Of a table of heorg-*: also write the files of its benchmark's harness."),
    ] = None
    data: Annotated[Path, typer.Option(metavar="FOLDER", help="Data sets and models, for tables of accuracy.")] = DATA
    listed: Annotated[bool, typer.Option("--list", help="Name all tables, what they need, and their minutes.")] = False
    every: Annotated[bool, typer.Option("--all", help="Every table in turn, into a folder with a document.")] = False
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Of --all: where the document goes.")
    ] = FOLDER
    only: Annotated[
        str | None, typer.Option(metavar="TABLE,..", help="Of --all: these tables.", show_default=False)
    ] = None
    again: Annotated[bool, typer.Option("--again", help="Of --all: also what is done already.")] = False

    @property
    def selected(self) -> list[str] | None:
        """The tables that `--only` names; None means all."""
        return None if self.only is None else [name.strip() for name in self.only.split(",")]


def reproduce(options: ReproduceOptions, json: AsJson = False) -> None:
    """Print a table of a paper beside the numbers of this machine and code, or make them all.

    Counts are exact and need no machine. Of times only ratios inside one run mean anything. With --all each
    table runs in a process of its own, unattended; started again, tables of this commit are kept. FOLDER gets
    reproduction.html, .md and .json; a table that fails is named there, and the exit code is 1.
    """
    try:
        from tacit_lab.reproduce import command
    except ModuleNotFoundError as error:
        raise MisuseError(f"tables of papers need {error.name}: pip install 'tacit[lab]'") from error
    command.reproduce(options, json)
