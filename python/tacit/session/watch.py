"""What a running server shows of itself over HTTP (`tacit serve --metrics`), read from outside."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

from tacit.errors import MisuseError, TransportError

MOST_BYTES = 16 << 20
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Snapshot:
    """A server at one moment: its metrics by name and labels, and the sessions that run or wait."""

    metrics: dict[str, dict[Labels, float]]
    sessions: list[dict[str, Any]]

    def total(self, name: str, **labels: str) -> float:
        """The sum of all numbers of this name whose labels include these; 0 where there are none."""
        wanted = set(labels.items())
        return sum(value for key, value in self.metrics.get(name, {}).items() if wanted <= set(key))


def samples(text: str) -> Iterator[tuple[str, Labels, float]]:
    """The numbers of a text in Prometheus's format; raises `ValueError` for what is none."""
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        found = SAMPLE.fullmatch(line)
        if found is None:
            raise ValueError(line)
        name, labels, value = found.groups()
        yield name, tuple(LABEL.findall(labels or "")), float(value)


def get(address: str, path: str, seconds: float) -> tuple[int, str]:
    """The status and text of a path of the server at HOST:PORT.

    Raises `TransportError` where nobody answers in time, and `MisuseError` for an address that is none.
    """
    host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise MisuseError(f"`{address}` is not HOST:PORT, as `tacit serve --metrics` has it")
    connection = HTTPConnection(host.strip("[]"), int(port), timeout=seconds)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read(MOST_BYTES).decode(errors="replace")
    except (OSError, HTTPException) as error:
        why = f"no metrics at {address} ({error}); was the server started with --metrics {address}?"
        raise TransportError(why) from error
    finally:
        connection.close()


def look(address: str, seconds: float = 5.0) -> Snapshot:
    """What the server with metrics at HOST:PORT shows now; raises the errors of `get`."""
    metrics: dict[str, dict[Labels, float]] = {}
    try:
        for name, labels, value in samples(fetched(address, "/metrics", seconds)):
            metrics.setdefault(name, {})[labels] = value
        sessions = json.loads(fetched(address, "/sessions", seconds))
    except ValueError as error:
        raise TransportError(f"{address} shows something else than a tacit server's metrics") from error
    if "tacit_build_info" not in metrics or not isinstance(sessions, list):
        raise TransportError(f"{address} shows the metrics of another program")
    return Snapshot(metrics, sessions)


def fetched(address: str, path: str, seconds: float) -> str:
    """The text of a path; raises `ValueError` where there is none."""
    status, text = get(address, path, seconds)
    if status != 200:
        raise ValueError(path)
    return text
