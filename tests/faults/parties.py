"""Real server and client processes, and what a test may ask of them."""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from tacit import Client, TacitError
from tacit.errors import failure

IDLE = 2.0
"""The idle timeout of both sides, in seconds."""
SLACK = 8.0
"""What a busy machine may add to a timeout."""
COMMAND = [sys.executable, "-m", "tacit"]


def strike(process: int, number: int) -> None:
    """Send a signal; SIGSTOP has taken effect on every thread when this returns."""
    os.kill(process, number)
    until = time.monotonic() + SLACK
    while number == signal.SIGSTOP and time.monotonic() < until:
        threads = Path(f"/proc/{process}/task").glob("*/stat")
        if {path.read_text().rpartition(")")[2].split()[0] for path in threads} <= {"T"}:
            return
        time.sleep(0.001)


class ServerProcess:
    """`tacit serve --json`; its lines arrive in a queue."""

    def __init__(self, model: Path, *options: object, **popen: Any):
        command = [*COMMAND, "serve", str(model), "--listen", "127.0.0.1:0", "--json", *map(str, options)]
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `close`)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True, **popen)
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.told = 0
        threading.Thread(target=self.read, daemon=True).start()
        first = self.line(60)
        self.address: str = first["listening"]
        self.pin: str | None = first["pin"]
        self.models: list[dict[str, Any]] = first["models"]
        self.metrics: str | None = first.get("metrics")
        self.websocket: str | None = first.get("websocket")

    def read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError):
            for line in self.process.stdout:
                self.lines.put(json.loads(line))

    def line(self, seconds: float) -> dict[str, Any]:
        """The next line of JSON."""
        return self.lines.get(timeout=seconds)

    def signal(self, number: int) -> None:
        strike(self.process.pid, number)

    def said(self, word: str, seconds: float = SLACK) -> str:
        """The line on its standard error that has this word, once it is there; each line is given once."""
        until = time.monotonic() + seconds
        while True:
            self.errors.flush()
            lines = Path(f"/proc/self/fd/{self.errors.fileno()}").read_text().splitlines()
            for place, line in enumerate(lines[self.told :], self.told):
                if word in line:
                    self.told = place + 1
                    return line
            assert time.monotonic() < until, lines
            time.sleep(0.05)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> str:
        """Kill it and return what it said on standard error."""
        if self.alive:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if self.errors.closed:
            return ""
        with self.errors:
            self.errors.seek(0)
            return self.errors.read()

    def status(self, field: str) -> int:
        """A number of /proc/PID/status: Threads, VmRSS (kB), VmHWM (kB)."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(f"{field}:")).split()[1])


def ask(address: str, x: np.ndarray, **how: Any) -> dict[str, Any]:
    """One session from this process: `outputs`, or `error` as `--json` shows it, and `seconds`."""
    how = {"plaintext": True, "timeout_seconds": IDLE, "connect_seconds": IDLE, "keep_keys": False, **how}
    began = time.monotonic()
    try:
        prediction = Client(address, **how).predict(x)
        outcome: dict[str, Any] = {"outputs": prediction.outputs, "report": prediction.report}
    except TacitError as error:
        outcome = {"error": failure(error, str(error))}
    return {**outcome, "seconds": time.monotonic() - began}


class ClientProcess:
    """`tacit predict --json` in a process of its own."""

    def __init__(self, address: str, x: Path, *options: object):
        how = options or ("--plaintext",)
        limits = ("--timeout", IDLE, "--connect-timeout", IDLE)
        command = [*COMMAND, "predict", "--server", address, str(x), "--json", *map(str, (*limits, *how))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def signal(self, number: int) -> None:
        strike(self.process.pid, number)

    def outcome(self, seconds: float) -> dict[str, Any]:
        """The object on its standard output; an error must have exit code 1 and one line for people."""
        out, err = self.process.communicate(timeout=seconds)
        assert "Traceback" not in err
        content: dict[str, Any] = json.loads(out)
        if "error" in content:
            assert self.process.returncode == 1
            assert err == f"error: {content['error']['message']}\n"
        return content

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def named(error: dict[str, Any], kinds: set[str]) -> bool:
    """An error is of an expected kind, in words for people, and repeats nothing of what was sent."""
    assert set(error) == {"kind", "message", "node"}
    assert error["kind"] in kinds, error
    assert error["message"].isprintable(), error
    assert 10 <= len(error["message"]) <= 300, error
    return True
