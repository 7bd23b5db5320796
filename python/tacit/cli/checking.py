"""`tacit compile --check`: every problem of a model at once."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from tacit.report import terminal

if TYPE_CHECKING:
    from tacit.cli.compile import CompileOptions
    from tacit.importers.check import Problems

Compiled = Callable[[Path, Path, "CompileOptions"], Any]
"""Compiles a model into a file by options of the command."""
PROBLEMS = 1
"""Exit code of `--check` for a model that cannot be compiled."""


def report(model: Path, options: "CompileOptions", compiled: Compiled, json: bool) -> None:
    """Print everything that keeps `model` from being compiled; raises `Exit` with code 1 if there is anything.

    Where the importer finds nothing, `compiled` compiles it to a file that is dropped.
    """
    problems = found(model, options)
    if not problems.errors:
        with TemporaryDirectory() as folder, problems.caught():
            compiled(model, Path(folder) / "checked.tacit", options)
    else:
        for note in problems.notes:
            terminal.note(note)
    if json:
        terminal.emit_json({"model": str(model), "problems": problems.listed()})
    else:
        for error in problems.errors:
            terminal.console.print(f"- {error}", highlight=False, markup=False, soft_wrap=True)
        count = len(problems.errors)
        summary = f"{count} problem{'s' * (count != 1)}" if count else "it compiles"
        terminal.console.print(f"{model}: {summary}", highlight=False, markup=False, soft_wrap=True)
    if problems.errors:
        raise typer.Exit(PROBLEMS)


def found(model: Path, options: "CompileOptions") -> "Problems":
    """What the importer cannot read; trees, .gguf files and networks trained with few bits have other readers."""
    from tacit.compiler.trees import are_trees
    from tacit.importers.check import Problems, check
    from tacit.importers.gguf import is_gguf
    from tacit.importers.quantised import is_quantised

    trained = is_quantised(model)
    if trained or are_trees(model) or is_gguf(model):
        return Problems()
    reading = options.reading() if options.reads_text(model, trained) else None
    chosen = options.options(model, reading)
    length, public = (None, False) if reading is None else (reading.sequence, reading.public_embedding)
    return check(model, length, public, chosen.selection)
