"""Options of commands that send many inputs to a server elsewhere, or to a door with servers behind it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tacit.batch.remote import Remote
from tacit.batch.worker import Sessions
from tacit.cli.access import Authority, ClientCertificate, ClientKey, Pin, Plaintext, TokenFile
from tacit.cli.options import Threads
from tacit.errors import MisuseError
from tacit.session.client import Client
from tacit.session.pair import Pair

USUAL = Sessions()


@dataclass(frozen=True)
class RemoteOptions:
    """Where the server is and how to know it, and how inputs are spread over sessions."""

    server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="With --mode private: a server, or the door of a fleet, in place of one started here.",
        ),
    ] = None
    pin: Pin = None
    ca: Authority = None
    certificate: ClientCertificate = None
    key: ClientKey = None
    plaintext: Plaintext = False
    token: TokenFile = None
    served: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model's name there, where the server has several.")
    ] = None
    retry_for: Annotated[
        float,
        typer.Option(
            min=0, max=1e6, metavar="SECONDS", help="Try a session again so long when the server is full or gone."
        ),
    ] = 60.0
    inputs: Annotated[int, typer.Option(min=1, max=1_000_000, help="Inputs of a session.")] = USUAL.inputs
    workers: Annotated[int, typer.Option(min=1, max=1024, help="Sessions at a time.")] = USUAL.workers
    results: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep results here, and go on with those that an earlier run left."),
    ] = None

    def reached(self, pair: Pair, mode: str, threads: Threads) -> Pair:
        """What runs a model: two processes here, or the server that was named."""
        if self.server is None:
            if any((self.pin, self.ca, self.certificate, self.plaintext, self.token, self.served, self.results)):
                raise MisuseError("these options are for a server elsewhere, which --server HOST:PORT names")
            return pair
        if mode != "private":
            raise MisuseError("--server is for --mode private")
        client = Client(
            self.server,
            pin=self.pin,
            ca=self.ca,
            plaintext=self.plaintext,
            certificate=self.certificate,
            key=self.key,
            timeout_seconds=pair.timeout_seconds,
            threads=threads,
            network=pair.network,
            accept_leakage=pair.accept_leakage,
            model=self.served,
            token=None if self.token is None else self.token.read_text(encoding="utf-8").strip(),
            retry_for=self.retry_for,
            missing=pair.model.wanted.missing,
        )
        how = Sessions(self.inputs, self.workers)
        return Remote(pair.model, reveal=pair.reveal, client=client, how=how, results=self.results)
