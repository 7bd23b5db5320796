"""`tacit predict`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tacit.cli import passphrase
from tacit.cli.access import Authority, ClientCertificate, ClientKey, Pin, Plaintext, TokenFile
from tacit.cli.clipping import check
from tacit.cli.options import (
    AcceptLeakage,
    AsJson,
    ConnectTimeout,
    InputFiles,
    Network,
    Preprocess,
    SessionTimeout,
    Texts,
    Threads,
    Timeout,
    Tokenizer,
)
from tacit.cli.passphrase import PassphraseFile
from tacit.cli.results import logits, made, show_prediction
from tacit.cli.rows import RowOptions
from tacit.data.examples import by_name
from tacit.data.inputs import Inputs, read
from tacit.data.parts import joined
from tacit.data.preprocess import parse
from tacit.data.schema import read as read_schema
from tacit.data.text import read as read_text
from tacit.data.wanted import Wanted
from tacit.report import sentences, serving, terminal
from tacit.session.client import CONNECT_SECONDS, SESSION_SECONDS, TIMEOUT_SECONDS, Client


@dataclass(frozen=True)
class InputOptions:
    """What to send: files and texts, and how they become inputs."""

    inputs: InputFiles = None
    text: Texts = None
    tokenizer: Tokenizer = None
    preprocess: Preprocess = None
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="X.schema",
            help="How rows become inputs and what results mean: the file `compile` wrote for clients.",
        ),
    ] = None


@dataclass(frozen=True)
class ServerOptions:
    """Where the server is, how to know it, and how to talk to it."""

    server: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where the server listens.")]
    pin: Pin = None
    ca: Authority = None
    certificate: ClientCertificate = None
    key: ClientKey = None
    plaintext: Plaintext = False
    model: Annotated[str | None, typer.Option(help="The model's name, where the server has several.")] = None
    token: TokenFile = None
    retry_for: Annotated[
        float,
        typer.Option(min=0, max=1e6, metavar="SECONDS", help="Try again so long when the server is full or gone."),
    ] = 0.0
    keys: Annotated[
        Path | None,
        typer.Option(metavar="NAME", help="Of lola: NAME.secret and NAME.keys of `tacit keys`. Default: fresh keys."),
    ] = None
    passphrase_file: PassphraseFile = None
    plan_digest: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="Refuse another plan than that of this digest, as `serve` prints it."),
    ] = None
    graph_digest: Annotated[
        str | None, typer.Option(metavar="HEX", help="Refuse another public graph, whatever the link and the options.")
    ] = None
    model_commitment: Annotated[
        str | None, typer.Option(metavar="HEX", help="Refuse a server that does not show this commitment to its model.")
    ] = None
    card_key: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="Refuse a server without a model card that this key signed, and show it."),
    ] = None
    timeout: Timeout = TIMEOUT_SECONDS
    connect_timeout: ConnectTimeout = CONNECT_SECONDS
    session_timeout: SessionTimeout = SESSION_SECONDS
    threads: Threads = None
    network: Network = None
    accept_leakage: AcceptLeakage = False

    def client(self) -> Client:
        """A client of that server."""
        return Client(
            self.server,
            pin=self.pin,
            ca=self.ca,
            plaintext=self.plaintext,
            certificate=self.certificate,
            key=self.key,
            timeout_seconds=self.timeout,
            connect_seconds=self.connect_timeout,
            session_seconds=self.session_timeout,
            threads=self.threads,
            network=self.network,
            accept_leakage=self.accept_leakage,
            keys=self.keys,
            model=self.model,
            token=None if self.token is None else self.token.read_text().strip(),
            retry_for=self.retry_for,
            keep_keys=False,
            passphrase=passphrase.of(self.keys, self.passphrase_file),
            plan_digest=self.plan_digest,
            graph_digest=self.graph_digest,
            model_commitment=self.model_commitment,
            card_key=self.card_key,
        )


def predict(server: ServerOptions, inputs: InputOptions, rows: RowOptions, json: AsJson = False) -> None:
    """Send an input, encrypted and shared, to a server and print the result.

    The server learns neither the input nor the result. No model file is needed: the client gets
    the public plan, checks it, and shows what it cost. The plan does not say how pictures become
    inputs: --preprocess does. Nor does it say how text does: --tokenizer does, with the file X.text
    that `compile` wrote for clients; nor what columns of a table are called: --schema does, with X.schema.
    Every text fills the model's length, which is all that the server learns of it.
    """
    client = server.client()
    reading = None if inputs.tokenizer is None else read_text(inputs.tokenizer)
    preprocessing = None if inputs.preprocess is None else parse(inputs.preprocess)
    schema = None if inputs.schema is None else read_schema(inputs.schema)
    wanted = Wanted(None, schema=schema, kept=rows.kept)
    named = by_name(Path(inputs.inputs[0])) if inputs.inputs and len(inputs.inputs) == 1 else None
    if named is not None:
        with terminal.progress("predicting") as advance:
            prediction = client.predict({name: array for name, array in named.items() if name != "y"}, advance)
        count = len(prediction.outputs)
        x = joined(prediction.parts("inputs"), named) if prediction.parts("inputs") else next(iter(named.values()))
        given = Inputs(x, None, [f"input {index}" for index in range(count)])
    else:
        given = read(inputs.inputs or [], inputs.text, wanted, preprocessing, reading)
        # Only tables are read with missing values.
        client = replace(client, missing=not bool(np.isfinite(given.x).all()))
        with terminal.progress("predicting") as advance:
            prediction = client.predict(given.x, advance, terminal.Notices())
    clipped = check(given.x, prediction.bounds)
    found = made(rows, given, prediction, None if schema is None else schema.result, inputs.inputs or [])
    if json:
        content = {"inputs": len(prediction.outputs), **prediction.report, "output": prediction.classes.tolist()}
        content["clipped"] = clipped
        content |= {} if found is None else found.fields()
        terminal.emit_json({**content, **logits(prediction), **sentences.content(reading, given, prediction.logits)})
        return
    if "card" in prediction.report:
        serving.show_card(prediction.report["card"])
    if found is None:
        show_prediction(given, reading, prediction)
    else:
        found.show()
    terminal.console.print(terminal.layer_table(prediction.report))
    terminal.console.print(terminal.phase_table(prediction.report))
