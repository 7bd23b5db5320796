"""`tacit keys`, `encrypt`, `evaluate-encrypted` and `decrypt`: suite lola by files."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tacit.cli import passphrase
from tacit.cli.options import AsJson, InputFiles, ModelFile, Threads
from tacit.cli.passphrase import PassphraseFile
from tacit.data.inputs import Wanted, read
from tacit.errors import MisuseError
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
    ask: Annotated[
        bool, typer.Option("--passphrase", help="Encrypt NAME.secret under a passphrase that is asked for.")
    ] = False,
    passphrase_file: Annotated[
        Path | None,
        typer.Option("--passphrase-file", metavar="FILE", help="Encrypt NAME.secret under the passphrase in FILE."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Make a client's keys for a model of suite lola.

    NAME.secret stays with the client. NAME.keys goes to the server, once: `evaluate-encrypted` takes
    it, and `predict --keys NAME` sends it to servers that do not have it yet. With a passphrase NAME.secret
    is of no use to others who read it; it is not stored anywhere, and without it the keys are lost.
    """
    if ask and passphrase_file is not None:
        raise MisuseError("--passphrase asks, --passphrase-file reads: give one of them")
    public = lola_files.read_plan(plan)
    text = passphrase.asked(twice=True) if ask else None
    text = text if passphrase_file is None else passphrase.read(passphrase_file)
    secret, evaluation = lola_files.generate(public, output, text)
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
    passphrase_file: PassphraseFile = None,
    json: AsJson = False,
) -> None:
    """Encrypt inputs into a request that `evaluate-encrypted` answers."""
    public = lola_files.read_plan(plan)
    given = read(inputs or [], None, Wanted(public.input_shape), public.preprocessing, None)
    text = passphrase.of(keys, passphrase_file)
    output.write_bytes(lola_files.encrypt(public, keys, given.x, threads or 1, text))
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
    passphrase_file: PassphraseFile = None,
    json: AsJson = False,
) -> None:
    """Read an answer."""
    public = lola_files.read_plan(plan)
    outputs, reading = lola_files.decrypt(public, keys, answer, passphrase.of(keys, passphrase_file))
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
