"""The client: it holds the input, talks to a server, and alone learns the result."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit import _core
from tacit.errors import MisuseError
from tacit.model import Progress

CONNECT_SECONDS = 10.0
TIMEOUT_SECONDS = 30.0
SESSION_SECONDS = 3600.0


@dataclass(frozen=True)
class Prediction:
    """Outputs as integers (N, outputs), or (N, 1) class numbers, and the session's report."""

    outputs: NDArray[np.int64]
    report: dict[str, Any]

    @property
    def reveals_logits(self) -> bool:
        """Whether the outputs are logits rather than class numbers."""
        return bool(self.report["reveal"] == "output")

    @property
    def classes(self) -> NDArray[np.int64]:
        """Class numbers (N,): the first largest logit, or what the server revealed."""
        return classes(self.outputs) if self.reveals_logits else self.outputs[:, 0]

    @property
    def logits(self) -> NDArray[np.float64] | None:
        """Real outputs (N, outputs), None when only labels are revealed."""
        scale = np.float64(self.report["output_scale"])
        return np.multiply(self.outputs, scale, dtype=np.float64) if self.reveals_logits else None


def classes(outputs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Class numbers (N,) of outputs (N, outputs); the first maximum wins."""
    return np.asarray(np.argmax(outputs, axis=1), np.int64)


@dataclass(frozen=True)
class Client:
    """Where the server is and how to know it: by its key's `pin`, or a `ca` file, or not at all.

    `plaintext` works on loopback only. `certificate` and `key` (PEM files) are for servers that
    ask for a client certificate. It gives up after `connect_seconds` without a connection,
    `timeout_seconds` without a byte, or `session_seconds` in all. It computes in
    `threads` (1 to 64, whatever the server's). `network` imitates a link (lan, wan, RTTms,Mbps), as the
    server must too.
    """

    server: str
    pin: str | None = None
    ca: Path | None = None
    plaintext: bool = False
    certificate: Path | None = None
    key: Path | None = None
    timeout_seconds: float = TIMEOUT_SECONDS
    connect_seconds: float = CONNECT_SECONDS
    session_seconds: float = SESSION_SECONDS
    threads: int | None = None
    network: str | None = None

    def __post_init__(self) -> None:
        if sum((self.pin is not None, self.ca is not None, self.plaintext)) != 1:
            raise MisuseError("name exactly one way to know the server: --pin, --ca or --plaintext")
        if (self.certificate is None) != (self.key is None):
            raise MisuseError("--certificate and --key belong together")

    def options_json(self) -> str:
        """Options as `_core.predict` reads them; absent ones are left out."""
        names = ("pin", "ca", "plaintext", "certificate", "key", "threads", "network")
        chosen = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        options = {name: str(value) if isinstance(value, Path) else value for name, value in chosen.items()}
        return json.dumps({**options, "timeouts": timeouts(self)})

    def predict(self, x: NDArray[np.float32], progress: Progress | None = None) -> Prediction:
        """Run one session over the inputs `x`: (N, *shape), or a single input.

        Raises `MisuseError`, `PeerError` or `TransportError`, naming the guilty side.
        """
        if x.dtype != np.float32:
            raise MisuseError(f"the inputs are {x.dtype}; convert them with x.astype(np.float32)")
        outputs, report = _core.predict(self.server, np.ascontiguousarray(x), self.options_json(), progress)
        return Prediction(outputs, json.loads(report))


class Patient(Protocol):
    """Anything with the three limits of the timeout policy, in seconds."""

    @property
    def connect_seconds(self) -> float:
        """For the connection, and again for the TLS handshake."""

    @property
    def timeout_seconds(self) -> float:
        """For the next byte, in either direction."""

    @property
    def session_seconds(self) -> float:
        """For the whole session after the handshake."""


def timeouts(party: Patient) -> dict[str, float]:
    """The timeout policy of a client or server as the core reads it."""
    return {"connect": party.connect_seconds, "idle": party.timeout_seconds, "session": party.session_seconds}
