"""What a fleet file (fleet.toml) says: the door, Ray, scaling, and the models with their servers."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from tacit.errors import MisuseError
from tacit.fleet.reading import Range, Table, tables
from tacit.model import Model
from tacit.session.models import budget_of
from tacit.session.place import Place
from tacit.session.reveal import is_reveal
from tacit.session.server import Listening
from tacit.session.terms import Terms

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
BASE_MB = 320
"""Memory in MB of a server beside its model and its sessions: the interpreter, Ray's worker and the libraries."""
COPIES = 6
"""How often a server holds the bytes of a model file at most: as they are, and encoded for linear layers."""
Seconds = Annotated[float, Range(0, 1e6)]
Port = Annotated[int, Range(0, 65535)]


@dataclass(frozen=True)
class RayOptions:
    """Where Ray is. Without `address` a local cluster starts with the fleet and ends with it."""

    address: str | None = None
    namespace: str = "tacit"
    cpus: Annotated[int | None, Range(1, 4096)] = None
    """Cores of a local cluster; those of the machine by default."""
    object_store: Annotated[int, Range(80)] = 100
    """Memory in MB of a local cluster's object store; servers put nothing into it."""
    dashboard: str | None = None
    """HOST:PORT of a local cluster's dashboard; none by default."""

    def __post_init__(self) -> None:
        """Refuse what an address excludes."""
        if self.address is not None and (self.cpus is not None or self.dashboard is not None):
            raise ValueError(
                "`cpus` and `dashboard` are those of a local cluster: leave them out, or leave `address` out"
            )


@dataclass(frozen=True)
class Scaling:
    """When servers come and go, between `min` and `max` of a model."""

    every: Annotated[float, Range(0.05, 3600)] = 0.5
    """Seconds between two looks at the fleet."""
    load: Annotated[float, Range(0.05, 1)] = 0.8
    """Sessions that run and wait, of those that the servers allow, which the number of servers aims at."""
    after: Seconds = 2.0
    """Seconds for which more servers must be wanted before they start."""
    cool_down: Seconds = 120.0
    """Seconds for which fewer servers must be wanted before one drains."""
    dry: Annotated[float, Range(0, 1)] = 0.5
    """Of models with `offline`: the part of the servers without a prepared run at which one server more is wanted."""


@dataclass(frozen=True)
class Health:
    """How servers are watched."""

    every: Annotated[float, Range(0.1, 3600)] = 1.0
    """Seconds between two questions to a server."""
    timeout: Annotated[float, Range(0.5, 3600)] = 15.0
    """Seconds without an answer after which a server is killed and replaced."""
    start: Annotated[float, Range(1, 1e5)] = 180.0
    """Seconds from the start of a server's process until it must be ready."""
    longest_backoff: Annotated[float, Range(0.1, 3600)] = 60.0
    """Longest pause in seconds before another server starts where the last ones failed at once."""


@dataclass(frozen=True)
class Pool:
    """A model and its servers."""

    file: Path
    name: str
    min: Annotated[int, Range(0, 100_000)] = 1
    max: Annotated[int, Range(1, 100_000)] = 1
    surge: Annotated[int, Range(0, 1000)] = 1
    """Servers beyond the wanted number while a model is replaced; 0 drains an old server before a new one starts."""
    threads: Annotated[int, Range(1, 64)] = 1
    sessions: Annotated[int, Range(1, 100_000)] = 8
    queue: Annotated[int, Range(0, 100_000)] = 256
    cpus: Annotated[float | None, Range(0, 4096)] = None
    """Cores that Ray sets aside for a server; `threads` by default."""
    memory: Annotated[int | None, Range(64)] = None
    """Memory in MB of a server; by the plan and `sessions` by default."""
    resources: dict[str, float] = field(default_factory=dict)
    """Ray's own resources of a server, such as those of a group of nodes."""
    placement: Literal["spread", "pack"] = "spread"
    reveal: str = "output"
    offline: Annotated[int, Range(0, 1_000_000)] = 0
    batch: Annotated[int, Range(1, 16384)] = 1
    link: str | None = None
    protocols: str = "auto"
    ot: str = "auto"
    post_quantum: bool = False
    max_inputs: Annotated[int | None, Range(1, 1_000_000)] = None
    card: Path | None = None
    timeout: Seconds = 30.0
    connect_timeout: Seconds = 5.0
    session_timeout: Seconds = 3600.0

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if NAME.fullmatch(self.name) is None:
            raise ValueError(f"`name` is of lower case letters, digits, `-`, `_` and `.`, not {self.name!r}")
        if self.min > self.max:
            raise ValueError(f"`min` is at most `max`, not {self.min} of {self.max}")
        if not is_reveal(self.reveal):
            raise ValueError(f"`reveal` cannot be {self.reveal!r}")

    @cached_property
    def generation(self) -> str:
        """A digest of all that decides what a server answers and holds: the file's bytes and the server's options.

        `min`, `max` and `surge` are left out: servers stay when these change. Raises `MisuseError` where the file
        cannot be read.
        """
        told = {name: value for name, value in asdict(self).items() if name not in ("min", "max", "surge")}
        digest = hashlib.sha256(json.dumps(told, default=str, sort_keys=True).encode())
        for file in filter(None, (self.file, self.card)):
            try:
                digest.update(hashlib.sha256(file.read_bytes()).digest())
            except OSError as error:
                raise MisuseError(f"cannot read {file}: {error.strerror}") from error
        return digest.hexdigest()[:12]

    @property
    def cores(self) -> float:
        """Cores of a server."""
        return float(self.threads) if self.cpus is None else self.cpus

    @cached_property
    def megabytes(self) -> int:
        """Memory in MB of a server: the interpreter, the model, and by the plan so many sessions.

        A session holds its largest layer twice, as it arrives and as it is computed on, and of each run, this one and
        those prepared ahead, at most what is sent for it.
        """
        if self.memory is not None:
            return self.memory
        plan = Model(self.file).plan(self.terms)
        largest = max((int(layer.get("memory_bytes", 0)) for layer in plan["layers"]), default=0)
        run = sum(int(sent) for sent in plan["bytes"].values())
        session = 2 * largest + (1 + self.offline) * run
        return BASE_MB + (COPIES * self.file.stat().st_size + self.sessions * session) // 10**6

    @property
    def terms(self) -> Terms:
        """What its sessions are planned by."""
        return Terms(
            reveal=self.reveal,
            ot=self.ot,
            network=self.link,
            offline=self.offline,
            batch=self.batch,
            protocols="auto" if self.protocols == "measured" else self.protocols,
            post_quantum=self.post_quantum,
        )

    def listening(self, fleet: "Fleet", host: str, registration: Mapping[str, Any]) -> Listening:
        """How one of the servers listens on a node's address; `registration` is how it finds the door."""
        return Listening(
            f"{host}:0",
            name=self.name,
            reveal=self.reveal,
            offline=self.offline,
            batch=self.batch,
            link=self.link,
            protocols=self.protocols,
            ot=self.ot,
            post_quantum=self.post_quantum,
            max_inputs=self.max_inputs,
            card=self.card,
            threads=self.threads,
            sessions=self.sessions,
            queue=self.queue,
            memory=self.megabytes,
            timeout_seconds=self.timeout,
            connect_seconds=self.connect_timeout,
            session_seconds=self.session_timeout,
            metrics="127.0.0.1:0",
            **fleet.browsers(host),
            tokens=None if fleet.relay == "never" else fleet.tokens,
            **fleet.identity(),
            **registration,
        )


@dataclass(frozen=True)
class Fleet:
    """A fleet file."""

    listen: str
    """Where clients find the door."""
    pools: tuple[Pool, ...]
    ray: RayOptions
    scaling: Scaling
    health: Health
    path: Path
    name: str = "fleet"
    state: Path = Path("fleet-state")
    """Folder of what the fleet keeps: secret, key, ledger, and where its Ray is."""
    control: str = "127.0.0.1:0"
    """Where servers register with the door."""
    host: str | None = None
    """The address at which servers listen, and which clients get; that of the node by default."""
    websocket: str | None = None
    """Where browsers find the door; servers take WebSockets too then, at ports of their own."""
    origin: tuple[str, ...] = ()
    """Pages that may connect by WebSocket; those of the same host by default."""
    websocket_name: str | None = None
    """By what name, which the certificate holds, browsers reach servers; `*` is the server's address with dashes."""
    key_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    client_crl: Path | None = None
    plaintext: bool = False
    secret: Path | None = None
    tokens: Path | None = None
    ledger: Place | None = None
    budget: str | None = None
    relay: Literal["never", "old", "always"] = "old"
    queue: Annotated[int, Range(0, 1_000_000)] = 256
    metrics: str | None = None
    """Where the head shows the metrics of the door and of all servers."""
    log: Path | None = None
    """Folder with a log of each server, SERVER.jsonl."""
    drain: Seconds = 60.0
    """Seconds that sessions get to end when a server drains."""

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if NAME.fullmatch(self.name) is None:
            raise ValueError(f"`name` is of lower case letters, digits, `-`, `_` and `.`, not {self.name!r}")
        if self.budget is not None:
            budget_of(self.budget)
        if self.budget is not None and self.ledger is None:
            raise ValueError("`budget` needs `ledger`, the file or database in which inputs are counted")
        if self.websocket is None and (self.origin or self.websocket_name):
            raise ValueError("`origin` and `websocket-name` are of browsers: say where they come, `websocket`")
        if (self.certificate is None) != (self.key is None):
            raise ValueError("`certificate` and `key` belong together")
        if self.plaintext and (self.certificate or self.key_file or self.client_ca):
            raise ValueError("`plaintext` excludes `certificate`, `key`, `key-file` and `client-ca`")
        if self.client_crl is not None and self.client_ca is None:
            raise ValueError("`client-crl` lists certificates of `client-ca`, which is missing")

    def identity(self) -> dict[str, Any]:
        """The identity that the door and all servers share, as options of `Listening`."""
        files: dict[str, Any] = {
            "plaintext": self.plaintext,
            "client_ca": self.client_ca,
            "client_crl": self.client_crl,
        }
        if self.certificate is not None:
            files |= {"certificate": self.certificate, "key": self.key}
        elif not self.plaintext:
            files["key_file"] = self.key_path
        return files

    def browsers(self, host: str) -> dict[str, Any]:
        """How a server that listens on `host` takes WebSockets, as options of `Listening`; nothing where not."""
        if self.websocket is None:
            return {}
        named = None if self.websocket_name is None else f"{named_after(self.websocket_name, host)}:0"
        return {"websocket": f"{host}:0", "origins": self.origin, "advertise_websocket": named}

    @property
    def key_path(self) -> Path:
        """The file of the key where there is no certificate."""
        return self.key_file or self.state / "fleet.key"

    @property
    def secret_path(self) -> Path:
        """The file of the secret under which the door and the servers authenticate tickets and each other."""
        return self.secret or self.state / "fleet.secret"

    @property
    def budgets(self) -> dict[str, int] | None:
        """The budget of clients that have none of their own."""
        return None if self.budget is None else budget_of(self.budget)

    def pool(self, name: str | None) -> Pool:
        """The pool of a model; None is the only one. Raises `MisuseError` where there is none."""
        known = [pool.name for pool in self.pools]
        if name is None and len(known) > 1:
            raise MisuseError(f"this fleet has several models; say --model with one of {', '.join(known)}")
        found = next((pool for pool in self.pools if name in (None, pool.name)), None)
        if found is None:
            raise MisuseError(f"this fleet has no model `{name}`; it has {', '.join(known)}")
        return found


def named_after(name: str, host: str) -> str:
    """`name` with the address `host` in the place of `*`: its dots and colons are dashes, so that it is one label."""
    return name.replace("*", re.sub(r"[.:]+", "-", host.strip("[]")).strip("-"))


def read(path: Path) -> Fleet:
    """The fleet that a file describes; raises `MisuseError` with the line for what cannot be."""
    head, single, models = tables(path.absolute(), ("ray", "scaling", "health"), "model")
    if not models:
        raise MisuseError(f"{path} has no [[model]] with a `file`")
    pools = tuple(pool(table) for table in models)
    twice = next((each for at, each in enumerate(pools) if each.name in {one.name for one in pools[:at]}), None)
    if twice is not None:
        raise MisuseError(f"{path}: two models are called `{twice.name}`; give one of them another `name`")
    head.content.setdefault("state", "fleet-state")
    return head.read(
        Fleet,
        pools=pools,
        ray=single["ray"].read(RayOptions),
        scaling=single["scaling"].read(Scaling),
        health=single["health"].read(Health),
        path=path.absolute(),
    )


def pool(table: Table) -> Pool:
    """A model of the file, called by its file where it has no `name`; `max` is `min` where only that is said."""
    if "name" not in table.content and isinstance(table.content.get("file"), str):
        table.content["name"] = Path(table.content["file"]).stem
    if "max" not in table.content and "min" in table.content:
        table.content["max"] = table.content["min"]
    found = table.read(Pool)
    if not found.file.exists():
        raise MisuseError(f"{table.place('file')}: {found.file} does not exist; `tacit compile` makes it")
    return found
