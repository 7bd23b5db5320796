"""`tacit demo` and `tacit demo-text`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tacit.cli.options import AsJson
from tacit.demo import texts
from tacit.demo.digits import prepare, run_demo
from tacit.report import terminal


def demo(
    folder: Annotated[Path, typer.Option(help="Where to leave mnist.tacit and mnist_test.npz.")] = Path("build"),
    mnist: Annotated[Path | None, typer.Option(metavar="mnist.npz", help="The full data set, if you have it.")] = None,
    only_build: Annotated[bool, typer.Option("--only-build", help="Leave the two files and stop.")] = False,
    json: AsJson = False,
) -> None:
    """Classify ten handwritten digits with a server that never sees them, and show the cost."""
    model = prepare(folder, mnist)
    content = {"model": str(model.path)}
    if not only_build:
        content = run_demo(model, console(json))
    if json:
        terminal.emit_json(content)


def demo_text(
    folder: Annotated[Path, typer.Option(help="Where to leave the compiled model.")] = Path("build"),
    model: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A sentence transformer. Default: all-MiniLM-L6-v2, if installed."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare three sentences by a sentence transformer that never sees them, and show the cost."""
    source = model or texts.minilm()
    compiled = texts.prepare(folder, source)
    content = texts.run(compiled, source, console(json))
    if json:
        terminal.emit_json(content)


def console(json: bool) -> Console:
    """Where the demonstration is shown: with --json, standard output is for the JSON object."""
    return Console(stderr=True) if json else terminal.console
