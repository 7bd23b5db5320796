"""A fleet in a process of its own, as `tacit fleet up` runs it, and questions to it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tacit.fleet import cluster
from tacit.fleet.config import read
from tacit.fleet.running import ask

ray = pytest.importorskip("ray", reason="Ray is not installed: `make test-fleet` has an environment with it")
COMMAND = [sys.executable, "-m", "tacit"]
SECONDS = 90.0


def fleet_file(model, *, name="fleet", replicas=(1, 1), head="", scaling="", more="", own=""):
    """The text of a fleet file for this machine: one model, a door at a free port."""
    least, most = replicas
    return f"""\
name = "{name}"
listen = "127.0.0.1:0"
host = "127.0.0.1"
drain = 20
{head}
[ray]
cpus = 8
[scaling]
every = 0.2
{scaling}
[health]
every = 0.2
{more}
[[model]]
file = "{model}"
name = "digits"
min = {least}
max = {most}
sessions = 4
reveal = "output"
{own}
"""


def until(found, seconds=SECONDS, what="it"):
    """The first answer of `found` that is true."""
    end = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < end, f"{what} did not come within {seconds} s"
        time.sleep(0.1)
    return answer


class FleetProcess:
    """`tacit fleet up FILE --json` in a session of its own, so that signals reach it alone."""

    def __init__(self, file: Path, *arguments: str) -> None:
        self.file, self.lines, self.errors = file, [], file.parent / "fleet.err"
        self.noise = []
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [*COMMAND, "fleet", "up", file, "--json", *arguments],
                stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            )  # fmt: skip
        threading.Thread(target=self.follow, daemon=True).start()
        self.head = None

    def follow(self) -> None:
        with self.process.stdout as lines:
            for line in lines:
                try:
                    self.lines.append(json.loads(line))
                except ValueError:
                    self.noise.append(line)

    def ready(self) -> dict:
        """The line that says that all models have their servers; the test process joins the cluster."""

        def found():
            assert self.process.poll() in (None, 0), self.errors.read_text()
            return [line for line in self.lines if line.get("ready")]

        line = until(found, what="the fleet")[0]
        self.join()
        return line

    def join(self) -> None:
        """Let the test process ask the head."""
        if ray.is_initialized():
            ray.shutdown()
        self.head = cluster.find(read(self.file))

    def status(self) -> dict:
        """The state of the fleet."""
        return ask(self.head.status)

    def servers(self, state="ready") -> list[dict]:
        """The servers in a state."""
        return [one for one in self.status()["servers"] if one["state"] == state and (state != "ready" or one["warm"])]

    def kill(self, server: dict) -> bool:
        """Kill -9 of a server's process; whether it was still there."""
        try:
            os.kill(server["pid"], signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def reload(self) -> None:
        """SIGHUP: the file is read anew."""
        self.process.send_signal(signal.SIGHUP)

    def scale(self, count: int | None) -> None:
        """So many servers, as `tacit fleet scale` asks; None leaves it to the load."""
        ask(self.head.scale, None, count)

    def said(self, text: str) -> list[str]:
        """Events with a text."""
        return [line["event"] for line in self.lines if text in line.get("event", "")]

    def stop(self, seconds: float = 60) -> int:
        """SIGTERM, and the exit code."""
        if ray.is_initialized():
            ray.shutdown()  # a process whose cluster is gone is ended by Ray after a minute
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        assert self.noise == []
        return code

    def close(self) -> None:
        """End it, and whatever of its processes is left."""
        if ray.is_initialized():
            ray.shutdown()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def command(*arguments, seconds=60):
    """`tacit ARGUMENTS --json`: the exit code and what it printed."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1])
