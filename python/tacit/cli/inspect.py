"""`tacit inspect`: what a .tacit file says of itself, and whether it is whole."""

import typer

from tacit.cli.options import AsJson, ModelFile
from tacit.model import Model
from tacit.report import inspection, terminal

DAMAGED = 1


def inspect(model: ModelFile, json: AsJson = False) -> None:
    """Show what a .tacit file holds, where it comes from, and whether it is as it was written.

    The digest is the SHA-256 of the whole file, weights included: files with the same digest are the same, and every
    other command refuses a file that changed since it was written. The graph digest is that of what clients
    see of the model; it says nothing of the weights. The commitment is what servers show of the whole file: it tells
    whether it is the same, and nothing of the weights either. Options and the name of the source stay in the file, and
    clients do not get them. Exit code 1 when the file is damaged.
    """
    found = Model(model).inspect()
    if json:
        terminal.emit_json({"model": str(model), **found})
    else:
        terminal.console.print(inspection.table(str(model), found))
        terminal.console.print(inspection.operators(found))
    if not found["holds"]:
        terminal.warn(f"{model} is damaged, and what it says may be wrong: copy it again, or compile the model again")
        raise typer.Exit(DAMAGED)
