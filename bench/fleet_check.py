"""Hold the simulator of fleets against servers and clients on this machine.

Starts K `tacit serve` processes, measures what a session costs while nothing else runs and among other sessions,
lets client processes begin sessions at random moments at several loads, and plays the same moments in the
simulator with these costs. Prints the percentiles of both. A virtual machine is faster in one minute than in the
next, so costs and loads are measured in turns, the medians of all turns count, and a load in which sessions took
more or less processor time than before it is driven again. The machine must have nothing else to do. Processor time
is that of the processes of both sides, with the kernel's for their sockets, but for what servers use while they have
nothing to do.

    .venv/bin/python bench/fleet_check.py build/mnist.tacit --servers 2

With --door clients ask a door, which chooses servers; else they take them in turn.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from fleet_driving import Driven, Server, driven, idle, started, used, wait_of_woken
from numpy.typing import NDArray
from tacit.fleet.simulation.arrivals import Recorded
from tacit.fleet.simulation.costs import Costs, of
from tacit.fleet.simulation.model import Fleet, run
from tacit.fleet.simulation.outcome import spread
from tacit.measure.bench import random_examples
from tacit.measure.machine import machine
from tacit.model import Model

SEEDS = 5
WARM = 10
"""Sessions alone before the first turn, and then four times as many at once, which do not count."""
BUSY = 0.75
"""The load at which sessions slow each other: the part of all cores that they would take alone."""
SESSIONS = 16
"""How many times the repeats of a session alone are measured then."""
DIGITS = 10**4
"""Loads are told apart to this part of all cores, where they seed the moments of sessions."""
STEADY = 0.05
"""How far processor time of a session in a load may be from what it was before; else the machine has changed."""
TRIES = 3
"""How often a load is driven, at most, until the machine is as fast as before."""
WARM_SECONDS = 1.0
"""Sessions that begin so early find cores asleep and client processes without threads, and do not count."""
BLOCK = 5.0
"""Seconds that a load is parted into for its standard errors: sessions that meet each other are mostly in one."""
RESAMPLED = 400
PAUSE = 3.0
"""Pauses between sessions whose costs are measured, on average, in durations of a session."""


class Alone(NamedTuple):
    """Sessions that met no other: how long each took, with its report, and processor seconds of the mean one."""

    runs: list[tuple[float, dict[str, Any]]]
    client: float
    server: float


def measured(
    servers: Sequence[Server], x: NDArray[np.float32], repeat: int, turn: int, options: argparse.Namespace
) -> Alone:
    """What a session costs that meets no other, on warm servers, in one of the turns.

    Sessions come at random moments to the servers in turn, as they do under a load: those that follow each other at
    once find caches and cores awake, and take up to a fifth less.
    """
    began = time.monotonic()
    for at in range(3 * len(servers)):
        servers[at % len(servers)].client().predict(x)
    mean = PAUSE * (time.monotonic() - began) / (3 * len(servers))
    pauses = np.random.default_rng(turn).exponential(mean, repeat).tolist()
    time.sleep(0.5)
    runs = []
    before, own, start = used(servers), time.process_time(), time.monotonic()
    for at, pause in enumerate(pauses):
        time.sleep(pause)
        began = time.monotonic()
        report = servers[at % len(servers)].client().predict(x).report
        runs.append((time.monotonic() - began, report))
    client = (time.process_time() - own) / repeat
    server = (used(servers) - before - options.background * (time.monotonic() - start)) / repeat
    return Alone(runs, client, server)


def reported(turns: Sequence[Alone], inputs: int) -> dict[str, Any]:
    """All turns, of the same number of sessions each, in the words of `bench model --json`.

    Processor time is the median of the turns' means.

    What comes before the phases, the dial and TLS, counts as setup: processors are used for it, too.
    """
    runs = sorted((run for turn in turns for run in turn.runs), key=lambda each: each[0])
    middle = runs[(len(runs) - 1) // 2]
    cpu = {name: median(getattr(turn, name) for turn in turns) for name in ("client", "server")}
    seconds = {"seconds": middle[0], "all_seconds": [each for each, _ in runs]}
    phases: dict[str, Any] = middle[1]["phases"]
    later = sum(phase["seconds"] for name, phase in phases.items() if name != "setup")
    phases = {**phases, "setup": {**phases["setup"], "seconds": middle[0] - later}}
    how = {"threads": 1, "network": None, "inputs": inputs, "cpu_seconds": cpu}
    return {**middle[1], **seconds, **how, "phases": phases}


def contended(
    dialled: Sequence[Server], x: NDArray[np.float32], alone: Alone, turn: int, options: argparse.Namespace
) -> float:
    """Processor seconds of a session while others run, in one of the turns.

    Sessions come at random moments for a load of their own, as many as keep the cores busy most of the time.
    """
    number = SESSIONS * len(alone.runs)
    rate = BUSY * len(os.sched_getaffinity(0)) / (alone.client + alone.server)
    moments = np.sort(np.random.default_rng(turn).random(number)) * number / rate
    return driven(dialled, x, moments, options).cpu_seconds


class Load(NamedTuple):
    """Sessions that began at `moments` (N,) of a turn, in seconds and in order, at so much of all cores."""

    load: float
    moments: NDArray[np.float64]
    driven: Driven


def loaded(
    dialled: Sequence[Server], x: NDArray[np.float32], busy_seconds: float, turn: int, options: argparse.Namespace
) -> list[Load]:
    """All loads in one of the turns, where a session takes `busy_seconds` of processors among others."""
    found, seconds = [], options.seconds / options.turns
    for load in map(float, options.loads.split(",")):
        random = np.random.default_rng((turn, round(DIGITS * load)))
        rate = load * len(os.sched_getaffinity(0)) / busy_seconds
        for _ in range(TRIES):
            moments = np.sort(random.random(random.poisson(rate * seconds)) * seconds)
            last = Load(load, moments, driven(dialled, x, moments, options))
            change = last.driven.cpu_seconds / busy_seconds - 1
            if abs(change) <= STEADY:
                break
            print(f"the machine has changed ({100 * change:+.0f} % processor time): load {load:g} again")
        found.append(last)
    return found


def counted(turns: Sequence[Load]) -> list[tuple[NDArray[np.float64], list[float | str]]]:
    """Moments (N,) and durations (N) of the sessions of each turn that count."""
    firsts = [int(np.searchsorted(turn.moments, WARM_SECONDS)) for turn in turns]
    return [(turn.moments[first:], turn.driven.durations[first:]) for turn, first in zip(turns, firsts, strict=True)]


def standard_errors(turns: Sequence[Load]) -> dict[str, float]:
    """How far measured percentiles are off by chance, as a part of them: a bootstrap of blocks of time."""
    blocks: list[NDArray[np.float64]] = []
    for moments, found in counted(turns):
        answered = np.asarray([not isinstance(each, str) for each in found])
        durations = np.asarray([each for each in found if not isinstance(each, str)], np.float64)
        places = (moments[answered] // BLOCK).astype(int)
        blocks += [durations[places == place] for place in np.unique(places)]
    random = np.random.default_rng(0)
    drawn = [
        np.percentile(np.concatenate([blocks[at] for at in random.integers(0, len(blocks), len(blocks))]), (50, 99))
        for _ in range(RESAMPLED)
    ]
    middle = np.percentile(np.concatenate(blocks), (50, 99))
    return dict(zip(("p50", "p99"), (np.std(drawn, axis=0) / middle).tolist(), strict=True))


def compared(turns: Sequence[Load], costs: Costs, options: argparse.Namespace) -> dict[str, Any]:
    """The turns of a load by measurement and by simulation."""
    durations = [each for _, found in counted(turns) for each in found]
    real = np.asarray([each for each in durations if not isinstance(each, str)], np.float64)
    balance = "door" if options.door else "turns"
    fleet = Fleet(
        options.servers,
        len(os.sched_getaffinity(0)),
        balance=balance,
        clients_share_cores=True,
        wake_seconds=options.wake_seconds,
    )
    seconds = options.seconds / options.turns
    traces = [Recorded(tuple(turn.moments.tolist()), seconds) for turn in turns]
    played = np.concatenate(
        [run(costs, fleet, trace, seed, WARM_SECONDS).durations for trace in traces for seed in range(SEEDS)]
    )
    found, wanted = spread(played), spread(real)
    errors = {name: found[name] / wanted[name] - 1 for name in ("p50", "p99")}  # type: ignore[operator]
    failed = [each for each in durations if isinstance(each, str)]
    return {
        "load": turns[0].load,
        "rate": sum(len(turn.moments) for turn in turns) / options.seconds,
        "sessions": len(real),
        "failed": {name: failed.count(name) for name in set(failed)},
        "cpu_seconds": sum(turn.driven.cpu_seconds * len(turn.moments) for turn in turns)
        / sum(len(turn.moments) for turn in turns),
        "measured": wanted,
        "standard_errors": standard_errors(turns),
        "simulated": found,
        "errors": errors,
        "within": max(map(abs, errors.values())) <= options.within,
    }


def written(options: argparse.Namespace, costs: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Write the file of all numbers."""
    content: dict[str, Any] = {"machine": machine(), "servers": options.servers, "door": options.door}
    content |= {"wake_seconds": options.wake_seconds, "costs": costs, "rows": rows}
    options.json.write_text(json.dumps(content) + "\n", encoding="utf-8")


def main() -> None:
    """Measure, simulate, print; exit code 1 where a percentile is further off than --within."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--servers", type=int, default=2, help="server processes (2)")
    parser.add_argument("--door", action="store_true", help="a door chooses servers, else clients take them in turn")
    parser.add_argument("--loads", default="0.3,0.5,0.7", help="shares of all cores (0.3,0.5,0.7)")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each load (120)")
    parser.add_argument("--workers", type=int, default=2, help="client processes (2)")
    parser.add_argument("--repeat", type=int, default=60, help="sessions whose costs are measured (60)")
    parser.add_argument("--turns", type=int, default=4, help="into which costs and loads are parted (4)")
    parser.add_argument("--within", type=float, default=0.2, help="how far percentiles may be off (0.2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    options = parser.parse_args()
    x = random_examples(Model(options.model)).x
    alone: list[Alone] = []
    among: list[float] = []
    loads: list[list[Load]] = []
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        servers = dialled = started(stack, options, Path(folder), behind_door=False)
        if options.door:
            behind = Path(folder) / "door"
            behind.mkdir()
            dialled = started(stack, options, behind, behind_door=True)
        time.sleep(1.0)
        options.background, options.wake_seconds = idle(dialled), wait_of_woken()
        contended(dialled, x, measured(servers, x, WARM, 0, options), 0, options)
        for turn in range(options.turns):
            alone.append(measured(servers, x, -(-options.repeat // options.turns), turn, options))
            among.append(contended(dialled, x, alone[-1], turn, options))
            loads.append(loaded(dialled, x, median(among), turn, options))
            each = alone[-1].client + alone[-1].server
            said = ", ".join(f"{load.driven.cpu_seconds:.4f} s" for load in loads[-1])
            print(f"turn {turn + 1}: {each:.4f} s of processors alone, {among[-1]:.4f} s among others, {said} in loads")
    report = reported(alone, len(x))
    costs = of(report)
    each, busy_seconds = costs.server_seconds + costs.client_seconds, median(among)
    costs = costs.contended(busy_seconds)
    print(f"servers that nothing asks use {options.background:.4f} cores")
    print(f"a process that wakes on a busy core waits {1e3 * options.wake_seconds:.2f} ms")
    print(f"a session takes {costs.seconds():.4f} s, {each:.4f} s of processors, {busy_seconds:.4f} s among others")
    rows = [compared(turns, costs, options) for turns in zip(*loads, strict=True)]
    print("load  rate/s  sessions  processors  p50 measured +- standard error, simulated  p99 measured, simulated")
    for row in rows:
        halves = (
            f"{row['measured'][name]:.4f} s +- {100 * row['standard_errors'][name]:.0f} %, "
            f"{row['simulated'][name]:.4f} s ({100 * row['errors'][name]:+.0f} %)"
            for name in ("p50", "p99")
        )
        said = f"{row['load']:.2f}  {row['rate']:6.2f}  {row['sessions']:8}  {row['cpu_seconds']:8.4f} s  "
        print(said + "   ".join(halves), row["failed"] or "")
    if options.json is not None:
        shown = {name: value for name, value in report.items() if name not in ("plan", "layers")}
        shown["contention"] = costs.contention
        written(options, shown, rows)
    sys.exit(0 if all(row["within"] and not row["failed"] for row in rows) else 1)


if __name__ == "__main__":
    main()
