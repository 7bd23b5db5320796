"""How many predictions a server answers an hour when clients always ask, and what a thousand of them cost."""

import json
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit import _core
from tacit.data.examples import Examples
from tacit.errors import TacitError
from tacit.fleet.simulation.prices import Prices
from tacit.measure.bench import commit
from tacit.measure.machine import machine
from tacit.model import Progress
from tacit.session.client import Client
from tacit.session.pair import ServerProcess, started
from tacit.session.usage import Usage, peak_memory_bytes

START_SECONDS = 120.0
"""How long a client process may take until it is ready."""
REPORT_SECONDS = 5.0
"""How long a server may take to report a session whose client has its answer."""
THOUSAND = 1000
HOUR = 3600


@dataclass(frozen=True)
class Load:
    """`clients` sessions at a time, each of all inputs, one session after another for `seconds`.

    `network` is a link that all of them imitate, in the words of `serve`.
    """

    clients: int
    seconds: float
    network: str | None = None


class Reports:
    """The lines of sessions of a server process, read as they come, since it waits for a reader else."""

    def __init__(self, server: ServerProcess) -> None:
        """Begin to read."""
        self.lines: list[dict[str, Any]] = []
        self.reader = Thread(target=self.read, args=(server,), daemon=True)
        self.reader.start()

    def read(self, server: ServerProcess) -> None:
        """Keep the lines of sessions that ended well, to the end of the process."""
        assert server.process.stdout is not None
        with suppress(ValueError):  # closed when the measurement is over
            for line in map(json.loads, server.process.stdout):
                if line.get("error") is None and "seconds" in line:
                    self.lines.append(line)

    def settled(self, wanted: int) -> list[dict[str, Any]]:
        """The reports once there are `wanted`, or a few seconds later."""
        until = time.monotonic() + REPORT_SECONDS
        while len(self.lines) < wanted and time.monotonic() < until:
            time.sleep(0.05)
        return list(self.lines)


def bench_throughput(
    model: Path, examples: Examples, load: Load, prices: Prices, progress: Progress | None = None
) -> dict[str, Any]:
    """Predictions an hour of one server under `load`, and bytes, processor seconds and dollars of 1,000 predictions.

    Server and clients are processes of this machine and share its cores. What begins within the time counts, and the
    time goes on until the last of it has ended.
    """
    link = [] if load.network is None else ["--network", load.network]
    with started(["tacit", "serve", str(model), "--listen", "127.0.0.1:0", "--json", *link]) as server:
        reports = Reports(server)
        stranger(server.address, server.pin, load.network).predict(examples.x)  # the first reads the weights
        known = len(reports.settled(1))
        found = driven(server, examples.x, load, progress)
        own = reports.settled(known + found.sessions)[known:]
    if not found.sessions:
        raise TacitError(f"no session ended within {load.seconds:g} s: give it more --seconds; {found.error or ''}")
    inputs = len(examples.x)
    predictions = inputs * found.sessions
    per = THOUSAND / predictions
    server_seconds = sum(float(line["cpu_seconds"]) for line in own) * found.sessions / max(1, len(own))
    dollars = prices.of_server(server_seconds, found.sent)
    return {
        "bench": "throughput",
        "machine": machine(),
        "version": _core.__version__,
        "commit": commit(),
        "protocol": _core.PROTOCOL,
        "clients": load.clients,
        "inputs": inputs,
        "sessions": found.sessions,
        "failed": found.failed,
        "seconds": found.seconds,
        "predictions_per_hour": predictions * HOUR / found.seconds,
        "predictions_per_core_hour": predictions * HOUR / server_seconds,
        "session_seconds": spread(found.durations),
        "per_1000": {
            "bytes": {"client_to_server": found.received * per, "server_to_client": found.sent * per},
            "cpu_seconds": {"client": found.cpu_seconds * per, "server": server_seconds * per},
            "dollars": dollars * per,
        },
        "prices": {"core_hour": prices.core_hour, "egress_gb": prices.egress_gb},
        "peak_memory_bytes": {
            "client": found.memory,
            "server": max((int(line["peak_memory_bytes"]) for line in own), default=0),
        },
    }


def stranger(address: str, pin: str, network: str | None) -> Client:
    """A client whom the server does not know, so that each session costs what a first one does."""
    return Client(address, pin=pin, keep_keys=False, network=network)


class Found(NamedTuple):
    """What clients saw; `received` and `sent` are the server's bytes."""

    sessions: int
    failed: int
    error: str | None
    durations: list[float]
    received: int
    sent: int
    cpu_seconds: float
    memory: int
    seconds: float


def driven(server: ServerProcess, x: NDArray[np.float32], load: Load, progress: Progress | None) -> Found:
    """Client processes that ask for as long as `load` says."""
    context = multiprocessing.get_context("spawn")
    cores = max(1, min(load.clients, multiprocessing.cpu_count()))
    shares = [load.clients // cores + (at < load.clients % cores) for at in range(cores)]
    workers = []
    for share in shares:
        here, there = context.Pipe()
        process = context.Process(target=asking, args=((server.address, server.pin), x, share, load, there))
        process.start()
        there.close()
        workers.append((process, here))
    try:
        for _, pipe in workers:
            if not pipe.poll(START_SECONDS):
                raise TacitError("a client process did not start")
            pipe.recv()
        began = time.monotonic()
        for _, pipe in workers:
            pipe.send(None)
        while progress is not None and (gone := time.monotonic() - began) < load.seconds:
            progress(int(gone), int(load.seconds))
            time.sleep(min(0.5, load.seconds - gone))
        parts = [pipe.recv() for _, pipe in workers]
        seconds = time.monotonic() - began
    except EOFError as error:
        raise TacitError("a client process died; is there enough memory?") from error
    finally:
        for process, _ in workers:
            process.join(1.0)
            process.kill()
    done = [each for part in parts for each in part["done"]]
    errors = [each for part in parts for each in part["errors"]]
    total = {way: sum(each[way] for each in done) for way in ("received", "sent")}
    cpu, memory = sum(part["cpu_seconds"] for part in parts), max(part["peak_memory_bytes"] for part in parts)
    durations = [each["seconds"] for each in done]
    first = errors[0] if errors else None
    return Found(len(done), len(errors), first, durations, total["received"], total["sent"], cpu, memory, seconds)


def asking(known: tuple[str, str], x: NDArray[np.float32], at_a_time: int, load: Load, pipe: Connection) -> None:
    """A client process: says that it is there, waits for the start, and sends what it has seen in the end."""
    pipe.send("ready")
    pipe.recv()
    usage, until = Usage(), time.monotonic() + load.seconds
    done: list[dict[str, float]] = []
    errors: list[str] = []

    def ask() -> None:
        while time.monotonic() < until:
            began = time.monotonic()
            try:
                report = stranger(*known, load.network).predict(x).report
            except TacitError as error:
                errors.append(str(error))
                return
            sent = report["bytes"]
            done.append(
                {
                    "seconds": time.monotonic() - began,
                    "received": sent["client_to_server"],
                    "sent": sent["server_to_client"],
                }
            )

    with ThreadPoolExecutor(at_a_time) as pool:
        for each in [pool.submit(ask) for _ in range(at_a_time)]:
            each.result()
    pipe.send({"done": done, "errors": errors, **usage.report(), "peak_memory_bytes": peak_memory_bytes()})


def spread(durations: Sequence[float]) -> dict[str, float]:
    """Percentiles of durations in seconds."""
    return {f"p{percent}": float(np.percentile(durations, percent)) for percent in (50, 95, 99)}
