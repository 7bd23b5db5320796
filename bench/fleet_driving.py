"""Servers and clients of the fleet check as processes of their own, and the processor time that they use."""

import argparse
import json
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from os import sched_getaffinity, sched_setaffinity
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.session.client import Client

START_SECONDS = 60.0
THREADS = 48
"""Sessions of one client process at a time, at most."""
IDLE_SECONDS = 3.0
WAKE_SECONDS = 3.0
NAP, WORK = 0.001, 0.002
"""Seconds for which a process sleeps and works in turn, while another on its core always works."""
SCHEDULED = 2
"""With a number of a process, the clock of its processor time: CPUCLOCK_SCHED of Linux."""


class Server(NamedTuple):
    """A process that listens, and the file of its lines.

    `pids` has its number, and for a door those of its servers, too.
    """

    address: str
    pin: str
    lines: Path
    pids: tuple[int, ...]

    def client(self) -> Client:
        """A client whom the server does not know."""
        return Client(self.address, pin=self.pin, keep_keys=False)


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
        yield {**json.loads(lines.read_text().splitlines()[0]), "lines": lines, "pid": process.pid}
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
        servers.append(Server(first["listening"], first["pin"], first["lines"], (first["pid"],)))
    if door is None:
        return servers
    pids = (door["pid"], *(pid for server in servers for pid in server.pids))
    return [Server(door["listening"], door["pin"], door["lines"], pids)]


def clients(servers: Sequence[Server], x: NDArray[np.float32], mine: Sequence[tuple[float, int]], pipe: Any) -> None:
    """A client process: begins each session when it is due, and gives its duration, or a word for what went wrong.

    With these it gives the processor seconds that it used. It says that it is ready after a session with each server,
    and is told when the time of the load begins.
    """
    for server in servers:
        server.client().predict(x)
    pipe.send("ready")
    start: float = pipe.recv()
    before = time.process_time()

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
        found = [each.result() for each in waiting]
    pipe.send((found, time.process_time() - before))


class Driven(NamedTuple):
    """How long each session took, in the order of their moments, and the processor seconds of a session.

    These are of both parties and the kernel.
    """

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
    before, start = used(servers), time.monotonic()
    for here in pipes:
        here.send(start + 0.1)
    found = [here.recv() for here in pipes]
    seconds = used(servers) - before - options.background * (time.monotonic() - start) + sum(own for _, own in found)
    for process in processes:
        process.join()
    durations: list[float | str] = [0.0] * len(moments)
    for worker, (part, _) in enumerate(found):
        durations[worker :: options.workers] = part
    return Driven(durations, seconds / len(moments))


def used(servers: Sequence[Server]) -> float:
    """Processor seconds of the processes of these servers so far.

    The scheduler counts them in nanoseconds; /proc/stat, which has those of the whole machine, counts by samples.
    """
    return sum(time.clock_gettime(~pid << 3 | SCHEDULED) for server in servers for pid in server.pids)


def idle(servers: Sequence[Server]) -> float:
    """How many cores these servers use while nothing asks them."""
    before, start = used(servers), time.monotonic()
    time.sleep(IDLE_SECONDS)
    return (used(servers) - before) / (time.monotonic() - start)


def works(core: int, seconds: float) -> None:
    """Keep a core busy."""
    sched_setaffinity(0, {core})
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def naps(core: int, seconds: float, pipe: Any) -> None:
    """Sleep and work in turn on a core; gives how much later than asked it woke, in seconds on average."""
    sched_setaffinity(0, {core})
    until, late = time.perf_counter() + seconds, []
    while (now := time.perf_counter()) < until:
        time.sleep(NAP)
        woken = time.perf_counter()
        late.append(woken - now - NAP)
        while time.perf_counter() < woken + WORK:
            pass
    pipe.send(mean(late))


def wait_of_woken() -> float:
    """How many seconds a process that wakes waits until the scheduler takes its core from another."""
    context, core = multiprocessing.get_context("spawn"), min(sched_getaffinity(0))
    here, there = context.Pipe()
    other = context.Process(target=works, args=(core, 2 * WAKE_SECONDS))
    process = context.Process(target=naps, args=(core, WAKE_SECONDS, there))
    other.start()
    time.sleep(WAKE_SECONDS / 2)
    process.start()
    seconds: float = here.recv()
    process.join()
    other.kill()
    other.join()
    return seconds
