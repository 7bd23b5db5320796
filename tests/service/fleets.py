"""A door and its servers, each a process of its own, for tests."""

import json
import queue
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from faults.parties import COMMAND, ServerProcess


class DoorProcess:
    """`tacit fleet door --json`; its lines arrive in a list."""

    def __init__(self, folder: Path, *options: object, plaintext: bool = False, **popen: Any) -> None:
        self.folder, self.plaintext = folder, plaintext
        self.secret, self.key = folder / "fleet.secret", folder / "fleet.key"
        identity = ["--plaintext"] if plaintext else ["--key-file", str(self.key)]
        command = [*COMMAND, "fleet", "door", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--json"]
        command += ["--secret", str(self.secret), "--metrics", "127.0.0.1:0", *identity, *map(str, options)]
        self.errors = (folder / f"door-{time.monotonic_ns()}.err").open("w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True, **popen)
        self.events: list[dict[str, Any]] = []
        self.lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        first = self.lines.get(timeout=60)
        self.address, self.control, self.pin = first["listening"], first["control"], first["pin"]
        self.metrics, self.websocket = first["metrics"], first.get("websocket")

    def read(self) -> None:
        assert self.process.stdout is not None
        with suppress(ValueError):
            for line in self.process.stdout:
                event = json.loads(line)
                self.events.append(event)
                self.lines.put(event)

    @property
    def how(self) -> dict[str, Any]:
        """How clients know the fleet."""
        return {"plaintext": True} if self.plaintext else {"plaintext": False, "pin": self.pin}

    def state(self) -> dict[str, Any]:
        from tacit.session.watch import get

        return json.loads(get(self.metrics, "/fleet", 5)[1])

    def serve(self, model: Path, name: str, *options: object, **popen: Any) -> ServerProcess:
        """A server of this fleet, which has joined."""
        identity = ["--plaintext"] if self.plaintext else ["--key-file", self.key]
        fleet = ["--fleet", self.control, "--fleet-secret", self.secret, "--server-id", name]
        server = ServerProcess(model, *identity, *fleet, *options, **popen)
        self.until(lambda state: any(one["id"] == name and one["state"] == "ready" for one in state["servers"]))
        return server

    def until(self, holds: Any, seconds: float = 10) -> dict[str, Any]:
        """The state once it is so."""
        ends = time.monotonic() + seconds
        while True:
            state = self.state()
            if holds(state):
                return state
            assert time.monotonic() < ends, state
            time.sleep(0.05)

    def close(self) -> str:
        """Kill it, and give what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        with self.errors:
            self.errors.seek(0)
            return self.errors.read()
