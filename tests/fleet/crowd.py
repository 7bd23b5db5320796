"""Many clients of a fleet, each a process, some of which are killed; and what became of their sessions."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tacit import _core

CLIENT = Path(__file__).parent / "client.py"
MOST_ATTEMPTS = 60


@dataclass
class Outcome:
    """What became of the sessions of a crowd."""

    answered: int = 0
    wrong: int = 0
    """Labels that are not the interpreter's."""
    unlike: int = 0
    """Outputs that are not the interpreter's bit for bit, as they are with exact rounding."""
    failed: int = 0
    """Sessions that ended with an error, and were tried again."""
    lost_clients: int = 0
    """Sessions whose client was killed."""
    given_up: int = 0
    killed_servers: int = 0
    errors: Counter = field(default_factory=Counter)
    seconds: list = field(default_factory=list)
    wall: float = 0.0

    def numbers(self) -> dict:
        """The counts and times for people."""
        times = sorted(self.seconds) or [0.0]
        return {
            "answered": self.answered, "wrong": self.wrong, "unlike": self.unlike,
            "failed": self.failed, "given_up": self.given_up,
            "killed_clients": self.lost_clients, "killed_servers": self.killed_servers,
            "p50_seconds": round(times[len(times) // 2], 3), "p99_seconds": round(times[len(times) * 99 // 100], 3),
            "sessions_per_second": round(self.answered / self.wall, 2) if self.wall else 0,
            "errors": dict(self.errors.most_common(12)),
        }  # fmt: skip


class Crowd:
    """So many clients; each asks its share of `sessions` inputs, and again whatever failed."""

    def __init__(self, fleet, tokens: Path, inputs: Path, clients: int, audit: Path | None = None) -> None:
        state = fleet.status()["door"]
        self.fleet, self.clients, self.inputs = fleet, clients, inputs
        self.command = [sys.executable, CLIENT, state["address"], state["pin"] or "", tokens]
        with np.load(inputs) as archive:
            self.expected = archive["expected"].tolist()
        self.environment = os.environ | ({} if audit is None else {"TACIT_AUDIT": str(audit)})
        self.outcome, self.lock, self.done = Outcome(), threading.Lock(), threading.Event()
        self.processes: dict[int, subprocess.Popen] = {}

    def start(self, number: int) -> subprocess.Popen:
        """A client's process."""
        process = subprocess.Popen(
            [*self.command, str(number), self.inputs], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=self.environment,
        )  # fmt: skip
        self.processes[number] = process
        return process

    def run(self, sessions: int, during=lambda _crowd: None) -> Outcome:
        """All sessions; `during` runs meanwhile, in a thread, until `done` is set."""
        shares = [range(number, sessions, self.clients) for number in range(self.clients)]
        threads = [threading.Thread(target=self.client, args=pair) for pair in enumerate(shares)]
        side = threading.Thread(target=during, args=(self,))
        began = time.monotonic()
        for thread in (*threads, side):
            thread.start()
        for thread in threads:
            thread.join()
        self.outcome.wall = time.monotonic() - began
        self.done.set()
        side.join()
        return self.outcome

    def client(self, number: int, items: Iterable[int]) -> None:
        """One client: each item until it is answered."""
        process = self.start(number)
        for item in items:
            for _ in range(MOST_ATTEMPTS):
                found = self.ask(process, item % len(self.expected))
                if found is None:
                    process = self.start(number)
                elif "output" in found:
                    break
                else:
                    time.sleep(0.1)
            else:
                with self.lock:
                    self.outcome.given_up += 1
        process.stdin.close()
        process.wait()
        process.stdout.close()

    def ask(self, process: subprocess.Popen, at: int) -> dict | None:
        """What became of one session; None where the client was killed."""
        try:
            process.stdin.write(f"{at}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        found = json.loads(line) if line.endswith("\n") else None
        with self.lock:
            self.note(found, at)
        if found is None:
            process.wait()
            process.stdout.close()
        return found

    def note(self, found: dict | None, at: int) -> None:
        """Count a session."""
        if found is None:
            self.outcome.lost_clients += 1
        elif "error" in found:
            self.outcome.failed += 1
            self.outcome.errors[f"{found['kind']}: {found['error']}"[:140]] += 1
        else:
            self.outcome.answered += 1
            self.outcome.seconds.append(found["seconds"])
            expected = self.expected[at]
            self.outcome.wrong += int(np.argmax(found["output"])) != int(np.argmax(expected))
            self.outcome.unlike += found["output"] != expected


def reaper(servers: float, clients: float, seed: int):
    """Kills (-9) a random server about every `servers` seconds and a random client every `clients` seconds."""

    def kill(crowd: Crowd) -> None:
        chance = random.Random(seed)
        next_server, next_client = (time.monotonic() + chance.expovariate(1 / mean) for mean in (servers, clients))
        while not crowd.done.wait(0.05):
            now = time.monotonic()
            if now >= next_client:
                next_client = now + chance.expovariate(1 / clients)
                alive = [process for process in list(crowd.processes.values()) if process.poll() is None]
                if alive:
                    chance.choice(alive).kill()
            if now >= next_server:
                next_server = now + chance.expovariate(1 / servers)
                ready = crowd.fleet.servers()
                if len(ready) > 1 and crowd.fleet.kill(chance.choice(ready)):
                    crowd.outcome.killed_servers += 1

    return kill


def used(ledger: Path) -> dict[str, int]:
    """Inputs that the ledger has charged, by client."""
    return {row["client"]: row["used"] for row in json.loads(_core.show_budgets(str(ledger), None, None))}


def redeemed(ledger: Path) -> int:
    """Tickets that the ledger says were redeemed."""
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as database:
        return database.execute("SELECT count(*) FROM tickets WHERE redeemed = 1").fetchone()[0]


def audited(folder: Path) -> Counter:
    """How often each line stands in the audits of a folder: what was consumed, in all processes."""
    lines: Counter = Counter()
    for file in folder.iterdir():
        lines.update(line for line in file.read_text().splitlines() if line)
    return lines
