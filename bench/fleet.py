"""What the door of a fleet costs: time and rounds of a session, and throughput of several servers behind it.

    python bench/fleet.py overhead --sessions 100
    python bench/fleet.py throughput --sessions 200

`overhead` runs sessions of the shipped MNIST network on loopback, with TLS, alternately with a server of its own and by
way of a door, and prints medians. `throughput` runs clients in threads against one server with `--workers` sessions at
a time, and against as many servers with one session each behind a door, alternately.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tacit
from tacit import Client
from tacit.session.watch import get

ASSETS = Path(tacit.__file__).parent / "assets"
COMMAND = [sys.executable, "-m", "tacit"]


class Process:
    """A `tacit` command that prints lines of JSON, the first of which says where it listens."""

    def __init__(self, *arguments: object) -> None:
        command = [*COMMAND, *map(str, arguments), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.first: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.drained = ThreadPoolExecutor(1).submit(self.drain)

    def drain(self) -> None:
        """Read what the process prints, so that it never waits for a reader."""
        assert self.process.stdout is not None
        for _ in self.process.stdout:
            pass

    def close(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.wait()


class Fleet:
    """A door and servers with `sessions` each."""

    def __init__(self, folder: Path, model: Path, servers: int, sessions: int, *options: object) -> None:
        secret, key = folder / "fleet.secret", folder / "fleet.key"
        where = ("--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
        self.door = Process("fleet", "door", *where, "--secret", secret, "--key-file", key, *options)
        fleet = ("--fleet", self.door.first["control"], "--fleet-secret", secret, "--key-file", key)
        one = ("serve", model, "--listen", "127.0.0.1:0", "--sessions", sessions, *fleet)
        self.servers = [Process(*one, "--server-id", f"s{number}") for number in range(servers)]
        while sum(one["state"] == "ready" for one in self.state()["servers"]) < servers:
            time.sleep(0.05)
        self.address, self.pin = self.door.first["listening"], self.door.first["pin"]

    def state(self) -> dict[str, Any]:
        """The fleet as its door sees it."""
        state: dict[str, Any] = json.loads(get(self.door.first["metrics"], "/fleet", 5)[1])
        return state

    def close(self) -> None:
        """End door and servers."""
        for process in (*self.servers, self.door):
            process.close()


def compiled(folder: Path) -> Path:
    """The shipped MNIST network, compiled."""
    model = folder / "mnist.tacit"
    how = ("--calibrate", ASSETS / "mnist_calibration.npz", "-o", model)
    subprocess.run(
        [*COMMAND, "compile", str(ASSETS / "mnist.onnx"), *map(str, how)], check=True, stdout=subprocess.DEVNULL
    )
    return model


def timed(client: Client, x: np.ndarray) -> tuple[float, dict[str, Any]]:
    """Seconds and report of a session."""
    began = time.perf_counter()
    prediction = client.predict(x)
    return time.perf_counter() - began, prediction.report


def overhead(folder: Path, sessions: int, ledger: bool) -> dict[str, Any]:
    """Medians of sessions with and without a door, alternately."""
    model = compiled(folder)
    x = np.load(ASSETS / "mnist_digits.npz")["x"][:1]
    counting = ("--ledger", folder / "ledger") if ledger else ()
    alone_counting = ("--ledger", folder / "alone-ledger") if ledger else ()
    fleet = Fleet(folder, model, 1, 4, *counting)
    alone = Process(
        "serve", model, "--listen", "127.0.0.1:0", "--sessions", 4, "--key-file", folder / "alone.key", *alone_counting
    )
    direct = Client(alone.first["listening"], pin=alone.first["pin"])
    behind = Client(fleet.address, pin=fleet.pin)
    for client in (direct, behind):
        timed(client, x)
    times: dict[str, list[float]] = {"direct": [], "behind": [], "asking": [], "difference": []}
    rounds = set()
    for _ in range(sessions):
        seconds, plain = timed(direct, x)
        more, report = timed(behind, x)
        times["direct"].append(seconds)
        times["behind"].append(more)
        times["difference"].append(more - seconds)
        times["asking"].append(report["door"]["seconds"])
        rounds.add(report["rounds"] + report["door"]["rounds"] - plain["rounds"])
    fleet.close()
    alone.close()
    medians = {f"{name}_ms": round(1000 * statistics.median(all_), 3) for name, all_ in times.items()}
    added = round(medians["behind_ms"] - medians["direct_ms"], 3)
    # On a machine that is shared the fast sessions say more than the median does.
    fast = {name: sorted(times[name])[sessions // 10] for name in ("direct", "behind")}
    medians["fast_added_ms"] = round(1000 * (fast["behind"] - fast["direct"]), 3)
    return {"sessions": sessions, "ledger": ledger, **medians, "median_added_ms": added, "rounds_added": sorted(rounds)}


def rate(address: str, pin: str, x: np.ndarray, sessions: int, clients: int) -> float:
    """Sessions a second of so many clients at a time."""
    # As `tacit predict` does, they keep no base OTs: a full server cannot be waited for to use them.
    many = [Client(address, pin=pin, retry_for=60, keep_keys=False) for _ in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        began = time.perf_counter()
        list(pool.map(lambda number: many[number % clients].predict(x), range(sessions)))
        return sessions / (time.perf_counter() - began)


def throughput(folder: Path, sessions: int, workers: int, turns: int) -> dict[str, Any]:
    """Sessions a second of one server with `workers` sessions, and of as many servers behind a door, alternately."""
    model = compiled(folder)
    x = np.load(ASSETS / "mnist_digits.npz")["x"][:1]
    rates: dict[str, list[float]] = {"one": [], "fleet": []}
    fleet = Fleet(folder, model, workers, 1)
    alone = Process(
        "serve", model, "--listen", "127.0.0.1:0", "--sessions", workers, "--key-file", folder / "alone.key"
    )
    clients = 2 * workers
    for _ in range(turns):
        rates["one"].append(rate(alone.first["listening"], alone.first["pin"], x, sessions, clients))
        rates["fleet"].append(rate(fleet.address, fleet.pin, x, sessions, clients))
    fleet.close()
    alone.close()
    medians = {name: round(statistics.median(all_), 2) for name, all_ in rates.items()}
    ratio = round(medians["fleet"] / medians["one"], 3)
    return {"sessions": sessions, "workers": workers, "turns": turns, **medians, "ratio": ratio}


def main() -> None:
    """Measure and print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "throughput"))
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--ledger", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.what == "overhead":
            print(json.dumps(overhead(Path(folder), chosen.sessions, chosen.ledger)))
        else:
            print(json.dumps(throughput(Path(folder), chosen.sessions, chosen.workers, chosen.turns)))


if __name__ == "__main__":
    main()
