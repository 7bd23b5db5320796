"""The server: it holds the weights, answers sessions, and learns nothing of the inputs."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import _core
from tacit.errors import MisuseError
from tacit.model import Model
from tacit.session import models, page, terms
from tacit.session.client import SESSION_SECONDS, TIMEOUT_SECONDS
from tacit.session.log import now
from tacit.session.patience import timeouts
from tacit.session.place import Place
from tacit.session.reveal import Reveal
from tacit.session.telling import until_over
from tacit.session.usage import peak_memory_bytes

OWN = "of each model"
OPENING_SECONDS = 5.0


@dataclass(frozen=True)
class Listening:
    """How to serve a model. TLS with a fresh key unless `certificate` and `key` (PEM files) are given.

    `key_file` keeps the key in a file instead, which is made where there is none, so that the pin stays.
    `client_ca` admits only clients with a certificate of that authority, and `client_crl` (PEM) lists those of them
    that are revoked; `plaintext` turns TLS
    off and works on loopback only; `once` stops after the first session; `threads` (1 to 64) serve each
    of them; `network` imitates a link (lan, wan, RTTms,Mbps), as the client must too, and is what `ot`
    auto plans for; `link` is the link to plan for where nothing is imitated, in the same words; `max_inputs` is the
    query budget of a session, and a client that asks for more is refused; `ot` says where correlated transfers come
    from (auto, ferret, softspoken2, softspoken4, softspoken8); `offline` is how many runs a session
    prepares before their inputs, linear layers too, and holds in memory; `batch` (1 to 64, of suite lola
    to 16384) is how many inputs a run takes, which share its rounds and ciphertexts: where inputs lack,
    zeros take their place and count towards `max_inputs`. `pass_inputs` (1 to 64) is how many inputs of a model with
    states a client may have run one after another at once. `accept_leakage` serves a suite that leaks more
    than the result; else it is refused.
    `protocols` chooses those of layers that are not linear (see `tacit.session.terms`).
    `secure_against` ("client") refuses models that were not compiled to be so, also when they are read anew.
    `key_cache` is the memory in MB for evaluation keys of clients of suite lola who may come back (1024 unless given).
    The timeouts are those of `Client`, but `connect_seconds` is for TLS and the client's first messages together; a
    client that exceeds one is dropped.
    `sessions` run at the same time (by cores and memory unless given), `queue` more wait for them and are told their
    place, and others are told when to come back; `memory` is what the process may take in MB (most of what the machine
    has left unless given), by the plan's own estimate of a session.
    `tokens` names a file of tokens (`tacit token`), of which every client without a certificate must show one. `ledger`
    names the file, or the PostgreSQL database by its URL, in which inputs are counted by client and model, and `budget`
    says how many a client may ask of which nothing is said there: total, per_day, per_minute.
    `websocket` (HOST:PORT) is where browsers connect, which then run the same sessions, and `origins` names the pages
    that may (https://HOST), those of the server's own host unless given. `page` shows a page there by which people use
    the models (see `tacit.session.page`).
    `metrics` (HOST:PORT) shows metrics, health and sessions over plain HTTP. `proxy_protocol` takes the address of each
    client from a PROXY v2 header, with which every connection must begin.
    `name` is what clients call the model (the name that it was compiled under unless given), `card` the file of its
    model card.
    `post_quantum` makes base transfers by ML-KEM-768 as well as by elliptic curves.
    `fleet` (HOST:PORT) is the control address of a door (`tacit.session.door`), and `fleet_secret` the file of its
    secret: clients then come with tickets of that door alone, or are passed on by it. `advertise` (HOST:PORT) is where
    they reach this server, if not where it listens, `advertise_websocket` the same for browsers (port 0 is the one of
    `websocket`), and `server_id` its name in the fleet.
    """

    listen: str
    reveal: str = "output"
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    client_crl: Path | None = None
    key_file: Path | None = None
    plaintext: bool = False
    timeout_seconds: float = TIMEOUT_SECONDS
    connect_seconds: float = OPENING_SECONDS
    session_seconds: float = SESSION_SECONDS
    once: bool = False
    threads: int | None = None
    network: str | None = None
    link: str | None = None
    max_inputs: int | None = None
    ot: str = "auto"
    offline: int = 0
    batch: int = 1
    pass_inputs: int = 1
    accept_leakage: bool = False
    secure_against: str | None = None
    key_cache: int | None = None
    protocols: str = "auto"
    sessions: int | None = None
    queue: int | None = None
    memory: int | None = None
    name: str | None = None
    card: Path | None = None
    tokens: Path | None = None
    ledger: Path | Place | None = None
    budget: Mapping[str, int] | None = None
    websocket: str | None = None
    origins: tuple[str, ...] = ()
    page: bool = False
    metrics: str | None = None
    proxy_protocol: bool = False
    post_quantum: bool = False
    fleet: str | None = None
    fleet_secret: Path | None = None
    advertise: str | None = None
    advertise_websocket: str | None = None
    server_id: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise MisuseError("--certificate and --key belong together")
        if self.max_inputs is not None and self.max_inputs < 1:
            raise MisuseError("--max-inputs is at least 1")
        if self.key_file is not None and self.certificate is not None:
            raise MisuseError("--key-file keeps a key without a certificate: leave --certificate and --key out")
        if self.client_crl is not None and self.client_ca is None:
            raise MisuseError("--client-crl lists certificates of --client-ca, which is missing")
        if self.plaintext and (self.certificate or self.client_ca or self.key_file):
            raise MisuseError("--plaintext excludes --certificate, --key, --key-file and --client-ca")
        if (self.fleet is None) != (self.fleet_secret is None):
            raise MisuseError("--fleet and --fleet-secret belong together")
        if self.fleet is None and (self.advertise or self.server_id):
            raise MisuseError("--advertise and --server-id are for servers of a --fleet")
        if self.origins and self.websocket is None:
            raise MisuseError("--origin names pages that connect by --websocket, which is missing")
        if self.page and self.websocket is None:
            raise MisuseError("--page is shown where browsers connect: --websocket HOST:PORT is missing")
        if self.page and self.fleet is not None:
            raise MisuseError("--page is for a server by itself: clients of a fleet begin at its door")
        if self.plaintext and self.proxy_protocol:
            raise MisuseError("--plaintext is for this machine alone; --proxy-protocol needs TLS")

    def admit(self, model: Path) -> None:
        """Raises `MisuseError` for a model that is not secure against whom models must be."""
        if self.secure_against is None or Model(model).description.get("secure_against") == self.secure_against:
            return
        whom = self.secure_against
        raise MisuseError(
            f"{model} is not secure against its {whom}, which --secure-against {whom} asks for: compile it with "
            f"--secure-against {whom}, or serve it without"
        )

    def options_json(self, planned: bool = False) -> str:
        """Options as `_core.Server` reads them; `planned` where models have links of their own to plan for."""
        names = ("key", "certificate", "key_file", "client_ca", "client_crl")
        files = {name: getattr(self, name) for name in names}
        tls = None if self.plaintext else {role: str(file) for role, file in files.items() if file is not None}
        options: dict[str, Any] = {"ot": self.ot, "tls": tls, "timeouts": timeouts(self)}
        options |= Reveal.of(self.reveal).options()
        chosen = {"threads": self.threads, "network": self.network, "link": self.link, "most_inputs": self.max_inputs}
        chosen |= {"sessions": self.sessions, "waiting": self.queue, "memory": self.memory, "name": self.name}
        chosen |= {"metrics": self.metrics, "proxy_protocol": self.proxy_protocol or None}
        chosen |= {"websocket": self.websocket, "advertise_websocket": self.advertise_websocket}
        chosen |= {"fleet": self.fleet, "advertise": self.advertise, "server_id": self.server_id}
        counted = {"fleet_secret": self.fleet_secret, "tokens": self.tokens, "ledger": self.ledger, "card": self.card}
        chosen |= {name: None if file is None else str(file) for name, file in counted.items()}
        link = self.link or self.network or (OWN if planned else None)
        chosen |= {"key_cache": self.key_cache, **terms.options(self.protocols, link)}
        chosen |= {"offline": self.offline or None, "batch": terms.several(self.batch)}
        chosen |= {"pass": terms.several(self.pass_inputs)}
        chosen |= {"post_quantum": self.post_quantum or None}
        options |= {name: value for name, value in chosen.items() if value is not None}
        if self.origins:
            options["origins"] = list(self.origins)
        if self.budget is not None:
            options["budget"] = dict(self.budget)
        leaking = {"accept_leakage": True} if self.accept_leakage else {}
        return json.dumps({**options, **leaking, "once": self.once})


class Server:
    """A bound server; `sessions` answers clients until `stop` or, with `once`, one session."""

    def __init__(self, model: Path, listening: Listening) -> None:
        """Bind for a compiled model, a folder of them, or those of a service file (see `tacit.session.models`).

        Raises `MisuseError` for a bad model and when the port is taken.
        """
        self.source, self.listening = model, listening
        files = page.files() if listening.page else []
        self.core = _core.Server(*self.models(listening.listen))
        self.address = self.core.address
        self.metrics = self.core.metrics_address
        self.websocket = self.core.websocket_address
        self.warnings = self.core.warnings
        self.pin = None if listening.plaintext else self.core.pin
        self.files = files
        self.show()

    @property
    def offerings(self) -> list[dict[str, Any]]:
        """What clients may pin of each model: `name`, `graph_digest`, `commitment`, `card`, `plan_digests`."""
        offerings: list[dict[str, Any]] = json.loads(self.core.offerings)
        return offerings

    @property
    def page_address(self) -> str | None:
        """Where people find the page, None without one."""
        return f"{'http' if self.pin is None else 'https'}://{self.websocket}/" if self.files else None

    @property
    def running(self) -> int:
        """Sessions that run now."""
        return self.core.counts[0]

    @property
    def waiting(self) -> int:
        """Sessions that wait for others to end."""
        return self.core.counts[1]

    @property
    def fleet(self) -> str | None:
        """Why the door of the fleet does not know this server now; empty where it does, None without a fleet."""
        return self.core.fleet

    def stop(self) -> None:
        """End `sessions` without waiting for sessions in progress."""
        self.core.stop()

    def drain(self, seconds: float) -> None:
        """Take no new sessions, give those that run `seconds` to end, then end `sessions`."""
        self.core.drain(seconds)

    def reload(self) -> None:
        """Read models, certificates, revocation lists and tokens anew for new sessions; others keep what they have.

        Raises `MisuseError` when a file cannot be used: the server goes on as it was.
        """
        self.core.reload(*self.models())
        self.show()

    def show(self) -> None:
        """Show the page with the models as they are now, where one is shown."""
        if self.files:
            self.core.show([*self.files, *self.facts()])

    def facts(self) -> list[page.File]:
        """What the page may know of the models."""
        served = models.read(self.source).models
        return page.facts(served, self.offerings, Reveal.of(self.listening.reveal).options()["reveal"])

    def models(self, *listen: str) -> tuple[str, ...]:
        """The models and options as the core reads them, with `listen` between."""
        served = models.read(self.source).models
        for one in served:
            self.listening.admit(one.path)
        options = self.listening.options_json(any("link" in one.options for one in served))
        return (json.dumps([one.content() for one in served]), *listen, options)

    def sessions(self) -> Iterator[dict[str, Any]]:
        """Serve, and give each session's report with the peak memory of this process so far.

        The core runs in a thread, so that the caller's stays free for signals.
        """
        with ThreadPoolExecutor(1, "tacit-server") as pool:
            try:  # from the start: an interrupt must not leave the thread running, which would be waited for
                serving = pool.submit(self.core.run)
                for report in until_over(serving, self.core.next_report):
                    yield {"time": now(), **json.loads(report), "peak_memory_bytes": peak_memory_bytes()}
            finally:
                self.core.stop()
            serving.result()
