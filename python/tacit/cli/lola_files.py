"""`tacit keys`, `encrypt`, `evaluate-encrypted` and `decrypt`: suite lola by files."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tacit.cli.options import AsJson, InputFiles, ModelFile, Threads
from tacit.data.inputs import read
from tacit.report import terminal
from tacit.session import lola_files
from tacit.session.client import classes

PlanFile = Annotated[
    Path, typer.Argument(metavar="X.plan", help="Public plan, as `compile` wrote it.", show_default=False)
]
Keys = Annotated[Path, typer.Option(metavar="NAME", help="Keys, as `tacit keys` wrote them: NAME.secret, NAME.keys.")]


def keys(
    plan: PlanFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="NAME", help="Writes NAME.secret, NAME.keys.")],
    json: AsJson = False,
) -> None:
    """Make a client's keys for a model of suite lola.

    NAME.secret stays with the client. NAME.keys goes to the server, once: `evaluate-encrypted` takes
    it, and `predict --keys NAME` sends it to servers that do not have it yet.
    """
    secret, evaluation = lola_files.generate(lola_files.read_plan(plan), output)
    if json:
        sizes = {"secret_bytes": secret.stat().st_size, "keys_bytes": evaluation.stat().st_size}
        terminal.emit_json({"secret": str(secret), "keys": str(evaluation), **sizes})
    else:
        terminal.console.print(f"wrote {secret}: keep it to yourself", highlight=False)
        size = terminal.size(evaluation.stat().st_size)
        terminal.console.print(f"wrote {evaluation} ({size}): give it to the server", highlight=False)


def encrypt(
    plan: PlanFile,
    keys: Keys,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="REQUEST", help="File to write.")],
    inputs: InputFiles = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Encrypt inputs into a request that `evaluate-encrypted` answers."""
    public = lola_files.read_plan(plan)
    given = read(inputs or [], None, public.input_shape, public.preprocessing, None)
    output.write_bytes(lola_files.encrypt(public, keys, given.x, threads or 1))
    wrote(output, len(given.x), json)


def evaluate_encrypted(
    model: ModelFile,
    request: Annotated[Path, typer.Argument(metavar="REQUEST", help="What `encrypt` wrote.", show_default=False)],
    keys: Annotated[Path, typer.Option(metavar="NAME.keys", help="The client's evaluation keys.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="ANSWER", help="File to write.")],
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Answer a request without learning what it asks or what the answer is."""
    output.write_bytes(lola_files.evaluate(model, keys, request, threads or 1))
    wrote(output, None, json)


def decrypt(
    plan: PlanFile,
    answer: Annotated[Path, typer.Argument(metavar="ANSWER", help="What the server wrote.", show_default=False)],
    keys: Keys,
    json: AsJson = False,
) -> None:
    """Read an answer."""
    outputs, reading = lola_files.decrypt(lola_files.read_plan(plan), keys, answer)
    labels = classes(outputs)
    if json:
        terminal.emit_json({"output": labels.tolist(), "logits": outputs.tolist(), **reading})
        return
    names = [f"input {index}" for index in range(len(outputs))]
    values = np.multiply(outputs, reading["output_scale"], dtype=np.float64)
    terminal.show_results(names, labels, values, reading["labels"])


def wrote(path: Path, inputs: int | None, json: bool) -> None:
    """Say what was written."""
    size = path.stat().st_size
    if json:
        counted = {} if inputs is None else {"inputs": inputs}
        terminal.emit_json({"output": str(path), "bytes": size, **counted})
    else:
        terminal.console.print(f"wrote {path} ({terminal.size(size)})", highlight=False)
