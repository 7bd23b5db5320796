"""A server of a fleet: a Ray actor, whose process is the server. It ends with its sessions when it drains.

Ray starts the process, sets its cores and memory aside, and sees its end; a server that is killed takes nothing of
others with it. Sessions run in threads of the core, so that the actor answers questions meanwhile.
"""

import os
import threading
from typing import Any

from tacit.fleet.config import Fleet, Pool
from tacit.session.log import Log
from tacit.session.server import Server
from tacit.session.watch import fetched, look

SECONDS = 10.0
"""The limit for a look at the server's own metrics."""


class ServerHost:
    """The actor; its methods are called from the head."""

    def __init__(self, id: str, pool: Pool, fleet: Fleet, host: str | None, registration: dict[str, Any]) -> None:
        """Keep what the server will be; nothing listens yet.

        `host` is the address to listen on, that of the node where it is None; `registration` has the options of
        `Listening` by which a server registers with the fleet's door.
        """
        self.id, self.pool, self.fleet, self.host, self.registration = id, pool, fleet, host, registration
        self.generation = pool.generation
        self.server: Server | None = None
        self.error: str | None = None
        self.ended, self.draining = threading.Event(), False
        self.counts = {"finished": 0, "failed": 0, "refused": 0, "client gone": 0}
        self.inputs = 0

    def start(self) -> dict[str, Any]:
        """Bind and serve; gives `info`. Raises `MisuseError` for a model or options that cannot be."""
        host = self.host or node_address()
        self.server = Server(self.pool.file, self.pool.listening(self.fleet, host, self.registration))
        threading.Thread(target=self.serve, args=(self.server,), name="tacit-fleet-server", daemon=True).start()
        return self.info()

    def serve(self, server: Server) -> None:
        """Answer sessions until the server drains or fails."""
        log = None
        try:
            if self.fleet.log is not None:
                self.fleet.log.mkdir(parents=True, exist_ok=True)
                log = Log(self.fleet.log / f"{self.id}.jsonl", lambda line: print(line, flush=True))
            for report in server.sessions():
                end = report.get("end", "failed")
                self.counts[end] = self.counts.get(end, 0) + 1
                self.inputs += report.get("answered", 0)
                if log is not None:
                    log.session(report)
        except Exception as error:  # noqa: BLE001 (the head is told, whatever it was)
            self.error = f"{type(error).__name__}: {error}"
        finally:
            if log is not None:
                log.close()
            self.ended.set()

    def info(self) -> dict[str, Any]:
        """What does not change while it runs: who and where it is, of which model and generation."""
        server = self.server
        return {
            "id": self.id,
            "model": self.pool.name,
            "generation": self.generation,
            "pid": os.getpid(),
            "node": node_id(),
            "address": None if server is None else server.address,
            "websocket": None if server is None else server.websocket,
            "pin": None if server is None else server.pin,
            "warnings": [] if server is None else server.warnings,
        }

    def look(self) -> dict[str, Any]:
        """What it does now."""
        state: dict[str, Any] = {"draining": self.draining, "ended": self.ended.is_set(), "error": self.error}
        state |= {"sessions": dict(self.counts), "inputs": self.inputs}
        if self.server is None or self.server.metrics is None or self.ended.is_set():
            return state
        found = look(self.server.metrics, SECONDS)
        return state | {
            "running": int(found.total("tacit_active_sessions", state="running")),
            "waiting": int(found.total("tacit_active_sessions", state="waiting")),
            "allowed": int(found.total("tacit_sessions_allowed")),
            "prepared": int(found.total("tacit_prepared_runs")),
            "memory_bytes": int(found.total("tacit_memory_bytes")),
            "ready": found.total("tacit_ready") == 1,
        }

    def metrics(self) -> str:
        """Its metrics as text in Prometheus's format."""
        if self.server is None or self.server.metrics is None or self.ended.is_set():
            return ""
        return fetched(self.server.metrics, "/metrics", SECONDS)

    def drain(self, seconds: float) -> None:
        """Take no new sessions, give those that run so many seconds, then end."""
        self.draining = True
        if self.server is not None:
            self.server.drain(seconds)


def node_address() -> str:
    """The address of this process's node, as Ray knows it."""
    from ray.util import get_node_ip_address

    return str(get_node_ip_address())


def node_id() -> str:
    """The identifier of this process's node in Ray."""
    import ray

    return str(ray.get_runtime_context().get_node_id())
