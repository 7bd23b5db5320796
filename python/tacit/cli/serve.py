"""`tacit serve`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import (
    AcceptLeakage,
    AsJson,
    Batch,
    ConnectTimeout,
    MaxInputs,
    ModelFile,
    Network,
    Offline,
    Protocols,
    RevealTo,
    SessionTimeout,
    Threads,
    Timeout,
    Transfers,
)
from tacit.report import terminal
from tacit.session.client import CONNECT_SECONDS, SESSION_SECONDS, TIMEOUT_SECONDS
from tacit.session.server import Listening, Server


@dataclass(frozen=True)
class ServeOptions:
    """Where and how to serve a model."""

    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address; port 0 picks a free one.")]
    reveal: RevealTo = "output"
    ot: Transfers = "auto"
    offline: Offline = 0
    batch: Batch = 1
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM). Default: a fresh key.")] = None
    key: Annotated[Path | None, typer.Option(help="Private key of --certificate (PEM).")] = None
    client_ca: Annotated[Path | None, typer.Option(help="Admit only clients this authority (PEM) vouches for.")] = None
    plaintext: Annotated[bool, typer.Option("--plaintext", help="No TLS; loopback only.")] = False
    once: Annotated[bool, typer.Option("--once", help="Stop after one session.")] = False
    timeout: Timeout = TIMEOUT_SECONDS
    connect_timeout: ConnectTimeout = CONNECT_SECONDS
    session_timeout: SessionTimeout = SESSION_SECONDS
    threads: Threads = None
    network: Network = None
    max_inputs: MaxInputs = None
    key_cache: Annotated[
        int | None,
        typer.Option(min=0, metavar="MB", help="Of lola: memory for keys of clients who may come back. [1024]"),
    ] = None
    accept_leakage: AcceptLeakage = False
    protocols: Protocols = "auto"

    def listening(self) -> Listening:
        """The options as the server reads them."""
        return Listening(
            self.listen,
            reveal=self.reveal,
            certificate=self.certificate,
            key=self.key,
            client_ca=self.client_ca,
            plaintext=self.plaintext,
            timeout_seconds=self.timeout,
            connect_seconds=self.connect_timeout,
            session_seconds=self.session_timeout,
            once=self.once,
            threads=self.threads,
            network=self.network,
            max_inputs=self.max_inputs,
            ot=self.ot,
            offline=self.offline,
            batch=self.batch,
            accept_leakage=self.accept_leakage,
            key_cache=self.key_cache,
            protocols=self.protocols,
        )


def serve(model: ModelFile, options: ServeOptions, json: AsJson = False) -> None:
    """Answer clients until interrupted.

    Prints the pin of its key: clients pass it to `predict --pin` to know that they talk to this
    server. With --json, one line says where it listens, and one line follows per session. A client
    that is silent for --timeout seconds, needs more than --connect-timeout for the TLS handshake, or
    more than --session-timeout in all, is dropped; the others notice nothing. So is one that asks
    for more than --max-inputs inputs at once; a budget over several sessions is yours to keep. With
    --batch B every run takes B inputs. With --offline K a session first prepares K runs, and one
    more after each run.
    """
    server = Server(model, options.listening())
    try:
        if json:
            terminal.emit_json({"listening": server.address, "pin": server.pin})
        else:
            terminal.show_address(server.address, server.pin)
        for session in server.sessions():
            try:
                terminal.show_session(session, json)
            except OSError as error:  # a full disk under the log is no reason to turn clients away
                terminal.warn(f"a session's report was not written: {error}")
    except KeyboardInterrupt:
        server.stop()
