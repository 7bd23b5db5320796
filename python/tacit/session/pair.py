"""A whole run on this machine: the client here, the server in a process of its own, TLS between."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from selectors import EVENT_READ, DefaultSelector
from signal import Signals
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError, TacitError, TransportError
from tacit.model import Model, Progress
from tacit.session.client import TIMEOUT_SECONDS, Client, Prediction
from tacit.session.reveal import Reveal
from tacit.session.terms import Inputs, Terms
from tacit.session.usage import Usage

START_SECONDS = 600.0
FORESEEN = ("bytes", "rounds", "seconds", "phases")
LONGEST_SECONDS = 24 * 3600.0  # both parties are ours: a long batch is no attack


@dataclass(frozen=True)
class Run:
    """What a run gave: the prediction and the merged report of both processes."""

    prediction: Prediction
    report: dict[str, Any]


@dataclass(frozen=True)
class Pair:
    """How to run a model between two processes over loopback; without a `batch` in the one that suits the inputs.

    `network` is imitated and planned for. A `link` in its place is planned for, and nothing is imitated.
    A run of several inputs that follow each other has `pass_inputs`, of a model with states; 1 for no such runs.
    """

    model: Model
    reveal: str = "output"
    threads: int | None = None
    timeout_seconds: float = TIMEOUT_SECONDS
    network: str | None = None
    ot: str = "auto"
    offline: int = 0
    batch: int | None = None
    accept_leakage: bool = False
    protocols: str = "auto"
    post_quantum: bool = False
    link: str | None = None
    pass_inputs: int = 1

    def run(self, x: NDArray[np.float32], y: NDArray[np.int64] | None, progress: Progress | None = None) -> Run:
        """One session over the inputs `x` (N, *shape); `y` (N,) are their labels, if known.

        The report carries the cost of both sides and how far the result is from the interpreter.
        """
        suited = self if self.batch is not None else replace(self, batch=self.suited_batch(len(x)))
        with suited.server() as server:
            client = suited.dial(server)
            usage = Usage()
            prediction = client.predict(x, progress)
            mine = usage.report()
            theirs = server.final_report(self.timeout_seconds)
        learnt = Reveal.of(self.reveal)
        report = {
            **prediction.report,
            "model": str(self.model.path),
            "inputs": len(x),
            "network": self.network,
            **both(mine, theirs),
            **quality(self.model, x, y, prediction, learnt),
            "predicted": suited.predicted(len(x)),
        }
        return Run(prediction, report)

    def dial(self, server: "ServerProcess") -> Client:
        """A client of that server process."""
        return Client(
            server.address,
            pin=server.pin,
            timeout_seconds=self.timeout_seconds,
            session_seconds=LONGEST_SECONDS,
            threads=self.threads,
            network=self.network,
            accept_leakage=self.accept_leakage,
            missing=self.model.wanted.missing,
            keep_keys=False,
        )

    def predicted(self, inputs: int, remembered: int = 0, in_passes: bool = False) -> dict[str, Any]:
        """What `tacit plan` says of a session with these inputs (see `Inputs`), on one thread."""
        return self.predicted_of([Inputs(inputs, remembered, in_passes)])[0]

    def predicted_of(self, sessions: Sequence[Inputs]) -> list[dict[str, Any]]:
        """What `predicted` says of several sessions, by one plan."""
        inputs, *also = sessions
        first = self.model.plan(replace(self.terms(inputs), also=tuple(also)))
        return [{field: planned[field] for field in FORESEEN} for planned in (first, *first.get("also", []))]

    def terms(self, inputs: Inputs) -> Terms:
        """What a session with so many inputs is planned by."""
        network = self.network or self.link
        terms = Terms(self.reveal, self.ot, network, self.offline, self.batch or 1, self.protocols, inputs)
        return replace(terms, post_quantum=self.post_quantum, pass_inputs=self.pass_inputs)

    def suited_batch(self, inputs: int) -> int:
        """Inputs of a run of a session with so many, where nobody said how many: one, if runs are preprocessed."""
        return self.model.suited_batch(self.terms(Inputs(inputs))) if inputs > 1 and not self.offline else 1

    def server(self) -> AbstractContextManager["ServerProcess"]:
        """A server process that listens; killed on the way out if it still runs."""
        command = ["tacit", "serve", str(self.model.path), "--listen", "127.0.0.1:0"]
        command += ["--reveal", self.reveal, "--ot", self.ot, "--once", "--json"]
        command += ["--offline", str(self.offline), "--batch", str(self.batch or 1), "--protocols", self.protocols]
        command += ["--timeout", str(self.timeout_seconds), "--session-timeout", str(LONGEST_SECONDS)]
        if self.threads is not None:
            command += ["--threads", str(self.threads)]
        if self.network is not None:
            command += ["--network", self.network]
        elif self.link is not None:
            command += ["--link", self.link]
        if self.pass_inputs != 1:
            command += ["--pass", str(self.pass_inputs)]
        if self.accept_leakage:
            command.append("--accept-leakage")
        if self.post_quantum:
            command.append("--post-quantum")
        return started(command)


def both(client: dict[str, Any], server: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The client's fields, each with the server's value beside its own."""
    return {field: {"client": client[field], "server": server[field]} for field in client}


@contextmanager
def started(module: list[str]) -> Iterator["ServerProcess"]:
    """A process that runs a module of this package (name and arguments) as a server, until the end of the block."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen([sys.executable, "-m", *module], stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            yield ServerProcess(process, errors)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


class ServerProcess:
    """A `tacit serve --json` process: a line of JSON when it listens, and one for every session."""

    def __init__(self, process: "subprocess.Popen[str]", errors: IO[str]) -> None:
        """Wait until it listens; raises `MisuseError` with its own words when it refuses to."""
        self.process = process
        self.errors = errors
        self.listens = False
        first = self.line(START_SECONDS)
        self.address: str = first["listening"]
        self.pin: str = first["pin"]
        self.listens = True

    def final_report(self, seconds: float) -> dict[str, Any]:
        """The report of its next session: that of the one, with --once."""
        return self.line(seconds)

    def line(self, seconds: float) -> dict[str, Any]:
        """The next line within `seconds`."""
        assert self.process.stdout is not None
        with DefaultSelector() as selector:
            selector.register(self.process.stdout, EVENT_READ)
            if not selector.select(seconds):
                raise TransportError(f"the server process said nothing for {seconds:g} s")
        text = self.process.stdout.readline()
        if not text:
            raise self.failure()
        content: dict[str, Any] = json.loads(text)
        if "error" in content:
            raise self.blame(content["error"]["message"])
        return content

    def failure(self) -> TacitError:
        """Why it ended early, from its standard error, or else how."""
        code = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().strip().removeprefix("error: ")
        # Nobody asked for that, whether it listened or not.
        silent = TacitError(f"the server process: it ended without a word, {way(code)}")
        return self.blame(said) if said else silent

    def blame(self, said: str) -> TacitError:
        """A server that never listened was asked for something it refuses."""
        return TacitError(f"the server process: {said}") if self.listens else MisuseError(said)


def way(code: int) -> str:
    """The way in which a process ended, for people."""
    return f"killed by {Signals(-code).name}" if code < 0 else f"with exit code {code}"


def quality(
    model: Model, x: NDArray[np.float32], y: NDArray[np.int64] | None, prediction: Prediction, learnt: Reveal
) -> dict[str, Any]:
    """`max_error` in last places and `agreement` of labels against the interpreter; `top1` against `y`."""
    expected = model.simulate(x)
    labels = prediction.classes
    exact = prediction.reveals_logits
    difference = np.abs(prediction.outputs - expected) if exact else None
    return {
        "max_error": None if difference is None else int(difference.max()),
        "equal_outputs": None if difference is None else int((difference.max(axis=1) == 0).sum()),
        "agreement": float((labels == learnt.labels(expected, model.output_scale)).mean()),
        **uncertainty(model, expected, prediction),
        "top1": None if y is None else float((labels == y).mean()),
        "output": labels.tolist(),
    }


def uncertainty(model: Model, expected: NDArray[np.int64], prediction: Prediction) -> dict[str, float]:
    """`max_probability_error` against softmax of the interpreter's logits, where probabilities are revealed."""
    got = prediction.probabilities
    if got is None:
        return {}
    logits = model.real(expected)
    top = np.exp(logits - logits.max(axis=1, keepdims=True))
    return {"max_probability_error": float(np.abs(got - 1.0 / top.sum(axis=1)).max())}
