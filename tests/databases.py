"""A PostgreSQL server for one test."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "crates" / "service" / "tests" / "postgresql" / "cluster.sh"


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL: its port, the folder of its socket, and the process whose input it lives by."""

    port: int
    folder: str
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        """Its database, over TLS with the authority that the server's certificate is of."""
        return f"postgresql://tacit:needless@localhost:{self.port}/postgres?sslrootcert={self.folder}/ca.pem"

    def end(self) -> None:
        self.process.communicate()


@contextmanager
def postgresql() -> Iterator[Cluster]:
    """Start it, and end it with the block; skips the test where PostgreSQL is not installed."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["sh", str(SCRIPT), str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        folder = process.stdout.readline().strip()
        if folder == "absent":
            pytest.skip("PostgreSQL (initdb, postgres, psql) is not installed")
        assert folder, "PostgreSQL is installed and does not start"
        yield Cluster(port, folder, process)
