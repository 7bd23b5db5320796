"""Budgets that servers share in a PostgreSQL database."""

import os
from pathlib import Path

import pytest
from databases import postgresql
from faults.parties import ServerProcess, ask
from tacit.cli.door import DoorCommand
from tacit.session.place import Place

PATIENT = {"timeout_seconds": 30, "connect_seconds": 30}


@pytest.fixture
def cluster():
    with postgresql() as found:
        yield found


def test_two_servers_share_a_budget_in_a_database(job, tacit, cluster):
    url = cluster.url
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
        assert shown["ledger"] == f"postgresql://tacit@localhost:{cluster.port}/postgres"
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
