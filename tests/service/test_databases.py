"""Budgets that servers share in a PostgreSQL database."""

import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from faults.parties import ServerProcess, ask
from tacit.cli.door import DoorCommand
from tacit.session.place import Place

SCRIPT = Path(__file__).parents[2] / "crates" / "service" / "tests" / "postgresql" / "cluster.sh"
PATIENT = {"timeout_seconds": 30, "connect_seconds": 30}


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL: its port, the folder of its socket, and the process whose input it lives by."""

    port: int
    folder: str
    process: subprocess.Popen[str]

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def cluster():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["sh", str(SCRIPT), str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        folder = process.stdout.readline().strip()
        if folder == "absent":
            pytest.skip("PostgreSQL (initdb, postgres, psql) is not installed")
        assert folder, "PostgreSQL is installed and does not start"
        yield Cluster(port, folder, process)


def test_two_servers_share_a_budget_in_a_database(job, tacit, cluster):
    port, folder = cluster.port, cluster.folder
    url = f"postgresql://tacit:needless@localhost:{port}/postgres?sslrootcert={folder}/ca.pem"
    told = tacit("budget", "show", "--ledger", url)
    assert told.code == 1
    assert "does not exist" in told.err
    servers = [job.serve("--plaintext", "--ledger", url, "--budget", "total=3") for _ in range(2)]
    try:
        for server in (*servers, servers[0]):
            assert job.right(ask(server.address, job.x, **PATIENT))
            assert server.line(10)["end"] != "refused"
        for server in servers:
            spent = ask(server.address, job.x, **PATIENT)["error"]
            assert "3 of 3 inputs in all" in spent["message"]
        shown = tacit("budget", "show", "--ledger", url, "--json").json
        assert shown["ledger"] == f"postgresql://tacit@localhost:{port}/postgres"
        (row,) = shown["rows"]
        assert (row["client"], row["used"]) == ("addr:127.0.0.1", 3)
        assert tacit("budget", "reset", "--ledger", url, "--all", "--json").json["reset"] == 1
        assert job.right(ask(servers[1].address, job.x, **PATIENT))
    finally:
        for server in servers:
            server.close()


def test_a_server_whose_database_goes_away_answers_nobody(job, cluster):
    options = {"env": {**os.environ, "PGPASSWORD": "needless"}}
    url = f"postgresql://tacit@{cluster.folder.replace('/', '%2F')}:{cluster.port}/postgres"
    server = ServerProcess(job.model, "--plaintext", "--ledger", url, **options)
    try:
        assert job.right(ask(server.address, job.x, **PATIENT))
        server.line(10)
        cluster.end()
        error = ask(server.address, job.x, **PATIENT)["error"]
        assert "needless" not in str(error)
        line = server.line(20)
        assert line.get("refused") == "ledger", line
        assert "needless" not in str(line)
    finally:
        server.close()


def test_a_door_takes_a_url():
    command = DoorCommand("127.0.0.1:0", "127.0.0.1:0", Path("secret"), ledger=Place("postgresql://a:b@h/d"))
    assert "a:b@" not in repr(command)
