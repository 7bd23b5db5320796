"""A server's log: a line of JSON for each client and each thing that happens to the server."""

import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any

from tacit.errors import MisuseError

KEPT = (
    "session",
    "client",
    "identity",
    "model",
    "digest",
    "graph_digest",
    "commitment",
    "reached",
    "end",
    "refused",
    "error",
    "inputs",
    "answered",
    "bytes",
    "rounds",
    "seconds",
    "phases",
    "waited_seconds",
    "cpu_seconds",
    "untold",
    "key_exchange",
    "link",
)
"""Keys of a session's report that stand in the log: all but layers and settings."""


def now() -> str:
    """The time in UTC as ISO 8601 with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Log:
    """A file of JSON lines. It is opened anew when it was moved away, as programs that rotate logs do."""

    def __init__(self, path: Path, failed: Callable[[str], None]) -> None:
        """Append to `path`; `failed` is told when a line cannot be written, once until one can again.

        Raises `MisuseError` for a file that cannot be opened.
        """
        try:
            self.handler = WatchedFileHandler(path, encoding="utf-8")
        except OSError as error:
            raise MisuseError(f"cannot write the log {path}: {error.strerror}") from error
        self.path, self.failed, self.fails = path, failed, False
        self.handler.handleError = self.handle  # type: ignore[method-assign]

    def event(self, event: str, **what: Any) -> None:
        """One line: the time, what happened, and what belongs to it."""
        line = json.dumps({"time": now(), "event": event, **what}, allow_nan=False)
        before, self.lost = self.fails, False
        self.handler.handle(logging.LogRecord("tacit", logging.INFO, "", 0, line, None, None))
        self.fails = self.lost
        if self.fails and not before:
            self.failed(f"the log {self.path} cannot be written; the server goes on without it")

    def session(self, report: dict[str, Any]) -> None:
        """A line about a client that came, whatever became of it."""
        self.event("session", **{key: report[key] for key in KEPT if key in report})

    def handle(self, record: logging.LogRecord) -> None:  # noqa: ARG002 (its name is the base class's)
        """Note that a line was lost; a full disk is no reason to turn clients away."""
        self.lost = True

    def close(self) -> None:
        """Close the file."""
        self.handler.close()
