"""Hold the simulator of fleets against servers and clients on this machine.

Starts K `tacit serve` processes, measures what a session costs while nothing else runs and among other sessions,
lets client processes begin sessions at random moments at several loads, and plays the same moments in the
simulator with these costs. Prints the percentiles of both. The machine must have nothing else to do: all processor
time counts, that of the kernel for sockets too, but for what the machine uses while idle.

    .venv/bin/python bench/fleet_check.py build/mnist.tacit --servers 2 --seconds 60

With --door clients ask a door, which chooses servers; else they take them in turn.
"""

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.fleet.simulation.arrivals import Recorded
from tacit.fleet.simulation.costs import Costs, of
from tacit.fleet.simulation.model import Fleet, run
from tacit.fleet.simulation.outcome import spread
from tacit.measure.bench import random_examples
from tacit.measure.machine import machine
from tacit.model import Model
from tacit.session.client import Client

START_SECONDS = 60.0
THREADS = 48
"""Sessions of one client process at a time, at most."""
SEEDS = 5
IDLE_SECONDS = 3.0
BUSY = 0.75
"""The load at which sessions slow each other: the part of all cores that they would take alone."""
SESSIONS = 4
"""How many times the repeats of a session alone are measured then."""
PAUSE = 3.0
"""Pauses between sessions whose costs are measured, on average, in durations of a session."""


class Server(NamedTuple):
    """A server process that listens, and the file of its lines."""

    address: str
    pin: str
    lines: Path

    def client(self) -> Client:
        """A client whom the server does not know."""
        return Client(self.address, pin=self.pin, keep_keys=False)

    def sessions(self) -> list[dict[str, Any]]:
        """The lines of sessions so far."""
        return [json.loads(line) for line in self.lines.read_text(encoding="utf-8").splitlines()[1:]]


@contextmanager
def listening(name: str, command: list[str], folder: Path) -> Iterator[dict[str, Any]]:
    """A process of `tacit` until the end of the block: its first line, and under `lines` the file of all."""
    lines = folder / f"{name}.json"
    with lines.open("w") as out, (folder / f"{name}.err").open("w") as errors:
        process = subprocess.Popen([sys.executable, "-m", "tacit", *command, "--json"], stdout=out, stderr=errors)
    try:
        until = time.monotonic() + START_SECONDS
        while not lines.read_text().endswith("\n"):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{name} does not listen: {Path(errors.name).read_text().strip()}")
            time.sleep(0.05)
        yield {**json.loads(lines.read_text().splitlines()[0]), "lines": lines}
    finally:
        process.kill()
        process.wait()


def started(stack: ExitStack, options: argparse.Namespace, folder: Path, behind_door: bool) -> list[Server]:
    """Starts the servers, and gives what clients dial: these, or their door."""
    identity = ["--key-file", str(folder / "key")]
    door: dict[str, Any] | None = None
    if behind_door:
        where = ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--secret", str(folder / "secret")]
        door = stack.enter_context(listening("door", ["fleet", "door", *where, *identity], folder))
        identity += ["--fleet", door["control"], "--fleet-secret", str(folder / "secret")]
    servers = []
    for number in range(options.servers):
        name, command = f"server-{number}", ["serve", str(options.model), "--listen", "127.0.0.1:0", *identity]
        first = stack.enter_context(listening(name, command + (["--server-id", name] if door else []), folder))
        servers.append(Server(first["listening"], first["pin"], first["lines"]))
    return servers if door is None else [Server(door["listening"], door["pin"], door["lines"])]


def measured(servers: Sequence[Server], x: NDArray[np.float32], repeat: int, background: float) -> dict[str, Any]:
    """The costs of a session on warm servers that meets no other, in the words of `bench model --json`.

    Sessions come at random moments to the servers in turn, as they do under a load: those that follow each other at
    once find caches and cores awake, and take up to a fifth less. An idle machine uses `background` cores.
    """
    began = time.monotonic()
    for at in range(3 * len(servers)):
        servers[at % len(servers)].client().predict(x)
    mean = PAUSE * (time.monotonic() - began) / (3 * len(servers))
    pauses = np.random.default_rng(0).exponential(mean, repeat).tolist()
    time.sleep(0.5)
    known, runs = [len(server.sessions()) for server in servers], []
    before, start = busy(), time.monotonic()
    for at, pause in enumerate(pauses):
        time.sleep(pause)
        began = time.monotonic()
        report = servers[at % len(servers)].client().predict(x).report
        runs.append((time.monotonic() - began, report))
    used = busy() - before - background * (time.monotonic() - start)
    time.sleep(0.5)
    lines = [line for server, first in zip(servers, known, strict=True) for line in server.sessions()[first:]]
    own = [float(line["cpu_seconds"]) for line in lines]
    runs.sort(key=lambda each: each[0])
    middle = runs[(repeat - 1) // 2]
    at_server = sum(own) / len(own)
    cpu = {"client": used / repeat - at_server, "server": at_server}
    seconds = {"seconds": middle[0], "all_seconds": [each for each, _ in runs]}
    return {**middle[1], **seconds, "threads": 1, "network": None, "inputs": len(x), "cpu_seconds": cpu}


def clients(servers: Sequence[Server], x: NDArray[np.float32], mine: Sequence[tuple[float, int]], pipe: Any) -> None:
    """A client process: begins each session when it is due, and gives its duration, or a word for what went wrong.

    It says that it is ready after a session with each server, and is told when the time of the load begins.
    """
    for server in servers:
        server.client().predict(x)
    pipe.send("ready")
    start: float = pipe.recv()

    def one(due: float, server: Server) -> float | str:
        try:
            server.client().predict(x)
        except Exception as error:  # noqa: BLE001 (counted by name)
            return type(error).__name__
        return time.monotonic() - start - due

    with ThreadPoolExecutor(THREADS) as pool:
        waiting = []
        for due, place in mine:
            time.sleep(max(0.0, start + due - time.monotonic()))
            waiting.append(pool.submit(one, due, servers[place]))
        pipe.send([each.result() for each in waiting])


class Driven(NamedTuple):
    """How long each session took, and the processor seconds of a session, of both parties and the kernel."""

    durations: list[float | str]
    cpu_seconds: float


def driven(
    servers: Sequence[Server],
    x: NDArray[np.float32],
    moments: NDArray[np.float64],
    options: argparse.Namespace,
) -> Driven:
    """Sessions at `moments` (N,) in seconds, at the servers in turn, by client processes."""
    context = multiprocessing.get_context("spawn")
    planned = [(moment, at % len(servers)) for at, moment in enumerate(moments.tolist())]
    pipes, processes = [], []
    for worker in range(options.workers):
        here, there = context.Pipe()
        mine = planned[worker :: options.workers]
        processes.append(context.Process(target=clients, args=(servers, x, mine, there)))
        processes[-1].start()
        pipes.append(here)
    for here in pipes:
        here.recv()
    time.sleep(1.0)
    before, start = busy(), time.monotonic()
    for here in pipes:
        here.send(start + 0.1)
    found = [here.recv() for here in pipes]
    used = busy() - before - options.background * (time.monotonic() - start)
    for process in processes:
        process.join()
    return Driven([each for part in found for each in part], used / len(moments))


def contended(dialled: Sequence[Server], x: NDArray[np.float32], alone: float, options: argparse.Namespace) -> float:
    """Processor seconds of a session while others run, where it takes `alone` seconds when it meets none.

    Sessions come at random moments for a load of their own, as many as keep the cores busy most of the time.
    """
    number = SESSIONS * options.repeat
    rate = BUSY * len(os.sched_getaffinity(0)) / alone
    moments = np.sort(np.random.default_rng(1).random(number)) * number / rate
    return driven(dialled, x, moments, options).cpu_seconds


def busy() -> float:
    """Core seconds that all programs of the machine used so far."""
    ticks = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]))
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def compared(
    load: float, dialled: Sequence[Server], x: NDArray[np.float32], costs: Costs, options: argparse.Namespace
) -> dict[str, Any]:
    """A load by measurement and by simulation: so much of all cores as sessions take among others."""
    cores = len(os.sched_getaffinity(0))
    random = np.random.default_rng(round(1e4 * load))
    rate = load * cores / options.busy_seconds
    moments = np.sort(random.random(random.poisson(rate * options.seconds)) * options.seconds)
    durations, cpu_seconds = driven(dialled, x, moments, options)
    real = np.asarray([each for each in durations if not isinstance(each, str)], np.float64)
    balance = "door" if options.door else "turns"
    fleet = Fleet(options.servers, cores, balance=balance, clients_share_cores=True)
    trace = Recorded(tuple(moments.tolist()), options.seconds)
    played = np.concatenate([run(costs, fleet, trace, seed).durations for seed in range(SEEDS)])
    found, wanted = spread(played), spread(real)
    errors = {name: found[name] / wanted[name] - 1 for name in ("p50", "p99")}  # type: ignore[operator]
    failed = [each for each in durations if isinstance(each, str)]
    return {
        "load": load,
        "rate": len(moments) / options.seconds,
        "sessions": len(real),
        "failed": {name: failed.count(name) for name in set(failed)},
        "cpu_seconds": cpu_seconds,
        "measured": wanted,
        "simulated": found,
        "errors": errors,
        "within": max(map(abs, errors.values())) <= options.within,
    }


def main() -> None:
    """Measure, simulate, print; exit code 1 where a percentile is further off than --within."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--servers", type=int, default=2, help="server processes (2)")
    parser.add_argument("--door", action="store_true", help="a door chooses servers, else clients take them in turn")
    parser.add_argument("--loads", default="0.3,0.6,0.85", help="shares of all cores (0.3,0.6,0.85)")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load (60)")
    parser.add_argument("--workers", type=int, default=2, help="client processes (2)")
    parser.add_argument("--repeat", type=int, default=60, help="sessions whose costs are measured (60)")
    parser.add_argument("--within", type=float, default=0.2, help="how far percentiles may be off (0.2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    options = parser.parse_args()
    x = random_examples(Model(options.model)).x
    before = busy()
    time.sleep(IDLE_SECONDS)
    options.background = (busy() - before) / IDLE_SECONDS
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        dialled = started(stack, options, Path(folder), behind_door=False)
        report = measured(dialled, x, options.repeat, options.background)
        if options.door:
            stack.close()
            dialled = started(stack, options, Path(folder), behind_door=True)
        costs = of(report)
        each = costs.server_seconds + costs.client_seconds
        options.busy_seconds = contended(dialled, x, each, options)
        costs = costs.contended(options.busy_seconds)
        print(f"an idle machine has {options.background:.3f} cores in use")
        print(f"a session takes {costs.seconds():.4f} s, {each:.4f} s of processors", end=", ")
        print(f"{options.busy_seconds:.4f} s among others")
        rows = [compared(float(load), dialled, x, costs, options) for load in options.loads.split(",")]
    print("load  rate/s  sessions  processors  p50 measured, simulated         p99 measured, simulated")
    for row in rows:
        halves = (
            f"{row['measured'][name]:.4f} s, {row['simulated'][name]:.4f} s ({100 * row['errors'][name]:+.0f} %)"
            for name in ("p50", "p99")
        )
        said = f"{row['load']:.2f}  {row['rate']:6.2f}  {row['sessions']:8}  {row['cpu_seconds']:8.4f} s  "
        print(said + "   ".join(halves), row["failed"] or "")
    if options.json is not None:
        shown = {name: value for name, value in report.items() if name not in ("plan", "layers")}
        shown["contention"] = costs.contention
        content = {"machine": machine(), "servers": options.servers, "door": options.door, "costs": shown, "rows": rows}
        options.json.write_text(json.dumps(content) + "\n", encoding="utf-8")
    sys.exit(0 if all(row["within"] and not row["failed"] for row in rows) else 1)


if __name__ == "__main__":
    main()
