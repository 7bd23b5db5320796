"""`tacit fleet door`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from tacit.cli.access import Budget, ClientAuthority, ClientRevocations, Plaintext, Tokens
from tacit.cli.options import AsJson
from tacit.cli.signals import SIGNALLED, handled
from tacit.errors import TacitError
from tacit.report import serving, terminal
from tacit.session.door import TICKET_SECONDS, Door, DoorOptions
from tacit.session.log import Log
from tacit.session.models import budget_of
from tacit.session.place import Place


@dataclass(frozen=True)
class DoorCommand:
    """Where the door is, and what it asks of clients."""

    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where clients come; port 0 picks a free one.")]
    control: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where servers come (`tacit serve --fleet`).")]
    secret: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The secret of the fleet; made where there is none. Servers need a copy."),
    ]
    websocket: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where browsers come, by WebSocket; servers need a --websocket of their own.",
            show_default=False,
        ),
    ] = None
    origin: Annotated[
        str | None,
        typer.Option(
            metavar="ORIGINS",
            help="Pages that may use --websocket, as https://HOST,https://HOST:PORT. Default: those of the same host.",
            show_default=False,
        ),
    ] = None
    key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key that door and servers show; made where there is none.")
    ] = None
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM) that door and servers show.")] = None
    key: Annotated[Path | None, typer.Option(help="Private key of --certificate (PEM).")] = None
    client_ca: ClientAuthority = None
    client_crl: ClientRevocations = None
    plaintext: Plaintext = False
    tokens: Tokens = None
    ledger: Annotated[
        Place | None,
        typer.Option(metavar="FILE|URL", parser=Place, help="Count inputs of all servers by client and model here."),
    ] = None
    budget: Budget = None
    relay: Annotated[
        Literal["never", "old", "always"],
        typer.Option(
            help="Which clients are passed on: old, those that do not follow doors; always, all, where servers "
            "cannot be reached from outside; never, none."
        ),
    ] = "old"
    queue: Annotated[
        int, typer.Option(min=0, metavar="N", help="Clients that wait for a server; more are told to come back.")
    ] = 256
    ticket: Annotated[int, typer.Option(min=1, max=60, metavar="SECONDS", help="How long a ticket is good.")] = (
        TICKET_SECONDS
    )
    drain: Annotated[
        float,
        typer.Option(min=0, max=1e6, metavar="SECONDS", help="Time that clients passed on get to end after SIGTERM."),
    ] = 30.0
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Show /metrics of door and servers, /healthz, /readyz, /sessions and /fleet here over plain HTTP.",
            show_default=False,
        ),
    ] = None
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append a line of JSON for each event; opened anew when it is moved away."),
    ] = None

    def options(self) -> DoorOptions:
        """The options as the door reads them."""
        return DoorOptions(
            listen=self.listen,
            control=self.control,
            secret=self.secret,
            websocket=self.websocket,
            origins=tuple(self.origin.split(",")) if self.origin else (),
            key_file=self.key_file,
            certificate=self.certificate,
            key=self.key,
            client_ca=self.client_ca,
            client_crl=self.client_crl,
            plaintext=self.plaintext,
            tokens=self.tokens,
            ledger=self.ledger,
            budget=None if self.budget is None else budget_of(self.budget),
            metrics=self.metrics,
            relay=self.relay,
            queue=self.queue,
            ticket_seconds=self.ticket,
        )


def door(options: DoorCommand, json: AsJson = False) -> None:
    """Name each client a server of the fleet, until stopped.

    Servers come to --control with the same key and secret: `tacit serve X.tacit --listen HOST:PORT --key-file FILE
    --fleet CONTROL --fleet-secret FILE`. Clients know the door's address alone: `tacit predict --server DOOR --pin PIN`
    asks the door, which knows the client by its token or certificate, sets inputs of its budget aside, and gives it a
    ticket for the server that keeps its base OTs or has least to do. Clients of earlier releases are passed on without
    being decrypted. With --json, one line says where it listens, and one line follows per event. SIGTERM and Ctrl-C
    stop it: servers go on with the sessions that they have. SIGHUP reads certificates and tokens anew.
    """
    opened = Door(options.options())
    log = None if options.log is None else Log(options.log, terminal.warn)
    with running(opened, options.drain):
        where = {"listening": opened.address, "control": opened.control, "pin": opened.pin}
        where |= {} if opened.websocket is None else {"websocket": opened.websocket}
        where |= {} if opened.metrics is None else {"metrics": opened.metrics}
        if log is not None:
            log.event("listening", **where)
        if json:
            terminal.emit_json(where)
        else:
            serving.show_address(opened.address, opened.pin, opened.metrics, opened.websocket)
            terminal.note(f"servers: tacit serve ... --fleet {opened.control} --fleet-secret {options.secret}")
        for event in opened.events():
            if log is not None:
                log.event(event["event"], **{name: value for name, value in event.items() if name not in LOGGED})
            if json:
                terminal.emit_json(event)
            else:
                terminal.note(told(event))


LOGGED = ("event", "time")


def told(event: dict[str, object]) -> str:
    """An event in a line for people."""
    about = event.get("server") or event.get("client")
    why = event.get("error")
    return f"{event['event']}: {about}" + (f" ({why})" if why else "")


@contextmanager
def running(opened: Door, seconds: float) -> Iterator[None]:
    """A door until it is stopped; clients that were passed on have `seconds` to end then."""

    def reload() -> None:
        try:
            opened.reload()
            terminal.note("reloaded: new clients get certificates and tokens as they are now")
        except TacitError as error:
            terminal.warn(f"not reloaded, the door goes on as it was: {error}")

    with handled(opened.core.stop, lambda number: os._exit(SIGNALLED + number), reload):
        try:
            yield
            opened.stop(seconds)
        finally:
            opened.core.stop()
