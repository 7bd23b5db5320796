"""`tacit serve`."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tacit.cli.access import Budget, ClientAuthority, ClientRevocations, Plaintext, Tokens
from tacit.cli.from_file import filled
from tacit.cli.options import (
    AcceptLeakage,
    AsJson,
    Batch,
    ConnectTimeout,
    MaxInputs,
    Network,
    Offline,
    PassInputs,
    PostQuantum,
    Protocols,
    RevealTo,
    SessionTimeout,
    Threads,
    Timeout,
    Transfers,
)
from tacit.cli.signals import SIGNALLED, handled
from tacit.errors import MisuseError, TacitError
from tacit.report import serving, terminal
from tacit.session.client import SESSION_SECONDS, TIMEOUT_SECONDS
from tacit.session.log import Log
from tacit.session.models import budget_of, read
from tacit.session.place import Place
from tacit.session.server import OPENING_SECONDS, Listening, Server
from tacit.session.traces import Traces

PAGE_ADDRESS = "127.0.0.1:8080"
ANY_PORT = "127.0.0.1:0"
Models = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="X.tacit, a folder of such files, or a service file X.toml.", show_default=False
    ),
]


@dataclass(frozen=True)
class ServeOptions:
    """Where and how to serve a model."""

    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address; port 0 picks a free one.", show_default=False)
    ] = None
    reveal: RevealTo = "output"
    ot: Transfers = "auto"
    post_quantum: PostQuantum = False
    offline: Offline = 0
    batch: Batch = 1
    pass_inputs: PassInputs = 1
    certificate: Annotated[Path | None, typer.Option(help="TLS certificate (PEM). Default: a fresh key.")] = None
    key: Annotated[Path | None, typer.Option(help="Private key of --certificate (PEM).")] = None
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the key here, so that the pin stays; made where there is none."),
    ] = None
    client_ca: ClientAuthority = None
    client_crl: ClientRevocations = None
    plaintext: Plaintext = False
    once: Annotated[bool, typer.Option("--once", help="Stop after one session.")] = False
    timeout: Timeout = TIMEOUT_SECONDS
    connect_timeout: ConnectTimeout = OPENING_SECONDS
    session_timeout: SessionTimeout = SESSION_SECONDS
    threads: Threads = None
    network: Network = None
    link: Annotated[
        str | None,
        typer.Option(
            metavar="LINK",
            help="The link to clients, in the words of --network: plan for it, and imitate nothing.",
            show_default=False,
        ),
    ] = None
    max_inputs: MaxInputs = None
    key_cache: Annotated[
        int | None,
        typer.Option(min=0, metavar="MB", help="Of lola: memory for keys of clients who may come back. [1024]"),
    ] = None
    accept_leakage: AcceptLeakage = False
    secure_against: Annotated[
        Literal["client"] | None,
        typer.Option(help="client: refuse models that were not compiled with --secure-against client."),
    ] = None
    protocols: Protocols = "auto"
    sessions: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Sessions at the same time. Default: by cores and memory."),
    ] = None
    queue: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Sessions that wait for others to end; more are told to come back."),
    ] = 256
    memory: Annotated[
        int | None,
        typer.Option(min=1, metavar="MB", help="Memory for the process. Default: most of what the machine has left."),
    ] = None
    tokens: Tokens = None
    ledger: Annotated[
        Place | None,
        typer.Option(metavar="FILE|URL", parser=Place, help="Count inputs by client and model here (`tacit budget`)."),
    ] = None
    budget: Budget = None
    name: Annotated[str | None, typer.Option(help="What clients call the model. Default: as compiled.")] = None
    card: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show clients this model card (`tacit card sign`).")
    ] = None
    drain: Annotated[
        float,
        typer.Option(min=0, max=1e6, metavar="SECONDS", help="Time that sessions get to end after SIGTERM or Ctrl-C."),
    ] = 30.0

    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append a line of JSON for each client; opened anew when it is moved away."),
    ] = None
    traces: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Send a trace of each session to this OpenTelemetry collector (OTLP over HTTP); needs tacit[traces].",
            show_default=False,
        ),
    ] = None
    websocket: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve browsers here as well, by WebSocket.", show_default=False),
    ] = None
    origin: Annotated[
        str | None,
        typer.Option(
            metavar="ORIGINS",
            help="Pages that may use --websocket, as https://HOST,https://HOST:PORT. Default: those of the same host.",
            show_default=False,
        ),
    ] = None
    page: Annotated[
        bool,
        typer.Option(
            "--page", help=f"Show browsers a page at the address of --websocket ({PAGE_ADDRESS} where none is given)."
        ),
    ] = False
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Show /metrics (Prometheus), /healthz, /readyz and /sessions here over plain HTTP (`tacit top`).",
            show_default=False,
        ),
    ] = None
    fleet: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve in the fleet of this door: its --control.", show_default=False),
    ] = None
    fleet_secret: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The secret of the fleet, a copy of the door's file.")
    ] = None
    advertise: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where clients of the fleet reach this server. Default: as it listens."),
    ] = None
    advertise_websocket: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="The same for browsers; port 0 is the one of --websocket. The certificate holds HOST.",
            show_default=False,
        ),
    ] = None
    server_id: Annotated[
        str | None, typer.Option(metavar="NAME", help="The server's name in the fleet. Default: by process and time.")
    ] = None
    proxy_protocol: Annotated[
        bool,
        typer.Option(
            "--proxy-protocol",
            help="Every connection begins with a PROXY v2 header, from which the client's address is taken.",
        ),
    ] = False

    def listening(self) -> Listening:
        """The options as the server reads them; raises `MisuseError` without an address."""
        if self.listen is None and not self.page:
            raise MisuseError("say where to listen: --listen HOST:PORT")
        return Listening(
            self.listen or ANY_PORT,
            reveal=self.reveal,
            certificate=self.certificate,
            key=self.key,
            key_file=self.key_file,
            client_ca=self.client_ca,
            client_crl=self.client_crl,
            plaintext=self.plaintext,
            timeout_seconds=self.timeout,
            connect_seconds=self.connect_timeout,
            session_seconds=self.session_timeout,
            once=self.once,
            threads=self.threads,
            network=self.network,
            link=self.link,
            max_inputs=self.max_inputs,
            ot=self.ot,
            post_quantum=self.post_quantum,
            offline=self.offline,
            batch=self.batch,
            pass_inputs=self.pass_inputs,
            accept_leakage=self.accept_leakage,
            secure_against=self.secure_against,
            key_cache=self.key_cache,
            protocols=self.protocols,
            sessions=self.sessions,
            queue=self.queue,
            memory=self.memory,
            name=self.name,
            card=self.card,
            tokens=self.tokens,
            ledger=self.ledger,
            websocket=self.websocket or (PAGE_ADDRESS if self.page else None),
            origins=tuple(self.origin.split(",")) if self.origin else (),
            page=self.page,
            metrics=self.metrics,
            proxy_protocol=self.proxy_protocol,
            fleet=self.fleet,
            fleet_secret=self.fleet_secret,
            advertise=self.advertise,
            advertise_websocket=self.advertise_websocket,
            server_id=self.server_id,
            budget=None if self.budget is None else budget_of(self.budget),
        )


def serve(model: Models, options: ServeOptions, json: AsJson = False) -> None:
    """Answer clients until stopped.

    MODEL is a compiled model, a folder of them, which clients call by their names there, or a service file in TOML:
    a [[model]] for each with `file` and if need be `name`, `reveal`, `offline`, `batch`, `pass`, `link`, `protocols`
    and `budget`, and before them any option of this command by its name. The command line comes before the file.

    Prints the pin of its key: clients pass it to `predict --pin` to know that they talk to this
    server, and what they may pin of each model. With --json, one line says where it listens, and one line follows
    per session. A client
    that is silent for --timeout seconds, needs more than --connect-timeout for TLS and its first message, or
    more than --session-timeout in all, is dropped; the others notice nothing. When --sessions run, --queue more
    wait, and others are told when to come back. SIGTERM and Ctrl-C let sessions end within --drain
    seconds, a second signal ends them at once; SIGHUP reads models, certificates and tokens anew. A
    client that asks for more than --max-inputs inputs at once is turned away, and with --ledger one
    whose --budget is used up. With --batch B every run takes B inputs. With --offline K a session
    first prepares K runs, and one more after each run.
    """
    service = read(model)
    options = filled(options, service.options, service.lines, model.parent)
    log = None if options.log is None else Log(options.log, terminal.warn)
    traces = None if options.traces is None else Traces(options.traces)
    server = Server(model, options.listening())

    def tell(event: str, **what: Any) -> None:
        if log is not None:
            log.event(event, **what)

    with signals(server, options.drain, tell):
        for warning in server.warnings:
            terminal.warn(warning)
        where: dict[str, Any] = {"listening": server.address, "pin": server.pin, "models": server.offerings}
        if server.websocket is not None:
            where["websocket"] = server.websocket
        if server.page_address is not None:
            where["page"] = server.page_address
        if server.metrics is not None:
            where["metrics"] = server.metrics
        tell("listening", **where, warnings=server.warnings)
        if json:
            terminal.emit_json(where)
        else:
            serving.show_address(server.address, server.pin, server.metrics, server.websocket, server.page_address)
            serving.show_offerings(server.offerings)
        for session in server.sessions():
            if log is not None:
                log.session(session)
            if traces is not None:
                traces.session(session)
            try:
                serving.show_session(session, json)
            except OSError as error:  # a full disk under the output is no reason to turn clients away
                terminal.warn(f"a session's report was not written: {error}")
        tell("stopped")
        if traces is not None:
            traces.close()


def signals(server: Server, seconds: float, tell: Callable[..., None]) -> AbstractContextManager[None]:
    """Signals as `handled` has them: the first drains, the second ends at once, SIGHUP reads files anew.

    `tell` puts them into the log.
    """

    def stop() -> None:
        running = server.running
        tell("stopping", running=running, seconds=seconds)
        terminal.note(f"stopping: {running} session(s) run and may end within {seconds:g} s; again to stop at once")
        server.drain(seconds)

    def reload() -> None:
        try:
            server.reload()
            tell("reloaded", models=server.offerings)
            terminal.note("reloaded: new sessions get models, certificates and tokens as they are now")
        except TacitError as error:
            tell("not reloaded", error=str(error))
            terminal.warn(f"not reloaded, the server goes on as it was: {error}")

    return handled(stop, lambda number: os._exit(SIGNALLED + number), reload)
