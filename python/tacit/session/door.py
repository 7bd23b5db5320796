"""The door of a fleet: clients know its address alone, and it names each of them a server."""

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tacit import _core
from tacit.errors import MisuseError
from tacit.session.log import now
from tacit.session.place import Place
from tacit.session.telling import POLL_SECONDS, until_over

TICKET_SECONDS = 30


@dataclass(frozen=True)
class DoorOptions:
    """How a door is set up.

    `listen` (HOST:PORT) is where clients come, `control` where servers come (`tacit serve --fleet`). `websocket`
    (HOST:PORT) is where browsers come, which go on to servers with a `websocket` of their own, and `origins` names the
    pages that may (https://HOST), those of the door's own host unless given. `secret` names the
    file of the fleet's secret, which is made where there is none, with mode 600; servers need the same. TLS shows the
    key of `key_file`, or `certificate` and `key` (PEM files), which servers show too, so that clients know both by one
    pin or authority; `plaintext` turns TLS off and works on loopback only. `client_ca` and `client_crl` are as those of
    a server. `tokens` names a file of tokens, of which every client without a certificate must show one. `ledger` names
    the file, or the PostgreSQL database by its URL, in which inputs are counted by client and model for all servers,
    and `budget` says how many a client may ask of which nothing is said there: total, per_day, per_minute. `metrics`
    (HOST:PORT) shows metrics of door and servers over plain HTTP. `relay` says which clients are passed on rather than
    told a server's address: `old`, those that do not follow doors, `always` all, or `never`. At most
    `queue` clients wait until a server has room. A ticket is good for `ticket_seconds` (1 to 60). `drain` is how long a
    server that is told to leave may take for its sessions, in seconds.
    """

    listen: str
    control: str
    secret: Path
    websocket: str | None = None
    origins: tuple[str, ...] = ()
    key_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    client_crl: Path | None = None
    plaintext: bool = False
    tokens: Path | None = None
    ledger: Path | Place | None = None
    budget: Mapping[str, int] | None = None
    metrics: str | None = None
    relay: Literal["never", "old", "always"] = "old"
    queue: int = 256
    ticket_seconds: int = TICKET_SECONDS
    drain: float = 300.0

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise MisuseError("--certificate and --key belong together")
        if self.key_file is not None and self.certificate is not None:
            raise MisuseError("--key-file keeps a key without a certificate: leave --certificate and --key out")
        if self.plaintext and (self.certificate or self.client_ca or self.key_file):
            raise MisuseError("--plaintext excludes --certificate, --key, --key-file and --client-ca")
        if self.origins and self.websocket is None:
            raise MisuseError("--origin names pages that connect by WebSocket: add --websocket HOST:PORT")
        if self.client_crl is not None and self.client_ca is None:
            raise MisuseError("--client-crl lists certificates of --client-ca, which is missing")

    def options_json(self) -> str:
        """Options as `_core.Door` reads them."""
        names = ("key", "certificate", "key_file", "client_ca", "client_crl")
        files = {name: getattr(self, name) for name in names}
        tls = None if self.plaintext else {role: str(file) for role, file in files.items() if file is not None}
        options: dict[str, Any] = {
            "listen": self.listen,
            "control": self.control,
            "secret": str(self.secret),
            "tls": tls,
        }
        if self.websocket is not None:
            options["websocket"] = self.websocket
        if self.origins:
            options["origins"] = list(self.origins)
        options |= {"relay": self.relay, "queue": self.queue, "ticket_seconds": self.ticket_seconds}
        counted = {"tokens": self.tokens, "ledger": self.ledger, "metrics": self.metrics}
        options |= {name: str(value) for name, value in counted.items() if value is not None}
        if self.budget is not None:
            options["budget"] = dict(self.budget)
        return json.dumps(options)


class Door:
    """A bound door, which attends to clients and servers from the start, on threads of its own, until `stop`."""

    def __init__(self, options: DoorOptions) -> None:
        """Bind both addresses and begin.

        Raises `MisuseError` for options and files that cannot be used, and when a port is taken.
        """
        self.options = options
        self.core = _core.Door(options.options_json())
        self.address = self.core.address
        self.control = self.core.control
        self.websocket = self.core.websocket_address
        self.metrics = self.core.metrics_address
        self.pin = None if options.plaintext else self.core.pin
        self.pool = ThreadPoolExecutor(1, "tacit-door")
        self.serving: Future[None] = self.pool.submit(self.core.run)

    def state(self) -> dict[str, Any]:
        """The fleet now.

        `servers` is a list with `id`, `address`, `websocket` (where browsers reach it, if they do), `state` (starting,
        ready, draining, gone), `silent`, `models`, `running`, `waiting`, `allowed`, `limit`, `kept`, `prepared`,
        `memory_bytes`, `sessions`, `tickets` (that are out), and `since` (seconds); `waiting` and `relayed` count
        clients, and `tickets` has `issued`, `redeemed`, `expired`, `out`.
        """
        state: dict[str, Any] = json.loads(self.core.state())
        return state

    def drain(self, server: str, seconds: float | None = None) -> None:
        """Give a server no more tickets, have it end its sessions within `seconds` (`drain` of the options), and leave.

        Raises `MisuseError` where there is no such server.
        """
        if not self.core.drain(server, self.options.drain if seconds is None else seconds):
            there = ", ".join(one["id"] for one in self.state()["servers"] if one["state"] != "gone")
            raise MisuseError(f"no server of the fleet is called `{server}`; there are: {there or 'none'}")

    def reload(self) -> None:
        """Read certificates, revocation lists and tokens anew for new clients.

        Raises `MisuseError` when a file cannot be used: the door goes on as it was.
        """
        self.core.reload(self.options.options_json())

    def events(self) -> Iterator[dict[str, Any]]:
        """What happens, until `stop`: each with `time` and `event`.

        An `event` is joined, ready, draining, gone (with `server`), refused (with `client`, `identity`, `refused`,
        `error`), failed (with `client`, `error` and how many more were `untold`: a connection that never became a
        request), relay failed, or ledger (which cannot be used).
        """
        for event in until_over(self.serving, self.core.next_event):
            yield {"time": now(), **json.loads(event)}
        self.serving.result()

    def stop(self, seconds: float = 0.0) -> None:
        """Take no more clients; wait up to `seconds` for those that are passed on. Servers go on without the door."""
        self.core.stop()
        self.pool.shutdown(wait=True)
        ends = time.monotonic() + seconds
        while self.core.relayed and time.monotonic() < ends:
            time.sleep(POLL_SECONDS)
