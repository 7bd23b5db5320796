"""Fleets whose parts die, stop, leave, or are asked for too much."""

import os
import signal
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faults.parties import ClientProcess, ask
from tacit import Client
from tacit.session.watch import get, look

from service.fleets import DoorProcess

PATIENT = {"timeout_seconds": 30, "connect_seconds": 30}


@pytest.mark.parametrize("files", ["one for all", "the door's alone"])
def test_nobody_gets_over_a_budget_by_asking_many_servers_at_once(job, tmp_path, files):
    ledger = tmp_path / "ledger"
    door = DoorProcess(tmp_path, "--ledger", ledger, "--budget", "total=5")
    own = ("--ledger", ledger) if files == "one for all" else ()
    servers = [door.serve(job.model, name, *own) for name in ("one", "two")]
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda _: ask(door.address, job.x, retry_for=20, **PATIENT, **door.how), range(8)))
    answered = [outcome for outcome in outcomes if job.right(outcome)]
    refused = [outcome["error"] for outcome in outcomes if "error" in outcome]
    assert len(answered) == 5, refused
    assert all(error["kind"] == "refused" and "budget" in error["message"] for error in refused)
    state = door.until(lambda state: state["tickets"]["redeemed"] == 5)
    assert state["tickets"]["out"] == 0
    for server in servers:
        assert "panicked" not in server.close()
    door.close()


def test_a_ticket_that_nobody_shows_gives_its_inputs_back(job, tmp_path):
    door = DoorProcess(tmp_path, "--ledger", tmp_path / "ledger", "--budget", "total=1", "--ticket", 2)
    server = door.serve(job.model, "one")
    server.signal(signal.SIGSTOP)
    lost = ask(door.address, job.x, timeout_seconds=1, connect_seconds=1, pin=door.pin, plaintext=False)
    assert lost["error"]["kind"] == "transport"
    door.until(lambda state: state["tickets"] == {"issued": 1, "redeemed": 0, "expired": 1, "out": 0})
    server.signal(signal.SIGCONT)
    door.until(lambda state: not state["servers"][0]["silent"])
    assert job.right(ask(door.address, job.x, retry_for=20, **PATIENT, **door.how))
    server.close()
    door.close()


def test_servers_that_are_silent_or_killed_cost_nobody_else_anything(job, tmp_path):
    door = DoorProcess(tmp_path)
    servers = {name: door.serve(job.model, name) for name in ("one", "two", "three")}
    servers["one"].signal(signal.SIGSTOP)
    door.until(lambda state: state["servers"][0]["silent"] or state["servers"][1]["silent"])
    time.sleep(0.2)
    servers["two"].process.kill()
    outcomes = [ask(door.address, job.x, retry_for=20, **PATIENT, **door.how) for _ in range(6)]
    assert all(job.right(outcome) for outcome in outcomes), outcomes
    assert Counter(outcome["report"]["door"]["server"] for outcome in outcomes) == {servers["three"].address: 6}
    states = {one["id"]: one["state"] for one in door.state()["servers"]}
    assert states["two"] == "gone"
    servers["one"].signal(signal.SIGCONT)
    door.until(lambda state: not any(one["silent"] for one in state["servers"] if one["id"] == "one"))
    assert job.right(ask(door.address, job.x, **PATIENT, **door.how))
    for server in servers.values():
        assert "panicked" not in server.close()
    door.close()


def test_a_server_leaves_under_load_and_no_session_fails(job, tmp_path):
    door = DoorProcess(tmp_path)
    old = door.serve(job.model, "old", "--drain", 60)
    over = threading.Event()

    def load(_: int) -> list[dict]:
        outcomes = []
        while not over.is_set():
            outcomes.append(ask(door.address, job.x, **PATIENT, **door.how))
        return outcomes

    with ThreadPoolExecutor(3) as pool:
        running = pool.map(load, range(3))
        time.sleep(1)
        new = door.serve(job.model, "new")
        old.process.send_signal(signal.SIGTERM)
        assert old.process.wait(60) == 0
        time.sleep(0.5)
        over.set()
        outcomes = [outcome for some in running for outcome in some]
    assert all(job.right(outcome) for outcome in outcomes), [one["error"] for one in outcomes if "error" in one]
    by = Counter(outcome["report"]["door"]["server"] for outcome in outcomes)
    assert set(by) == {old.address, new.address}, by
    assert "panicked" not in old.close() + new.close()
    door.close()


def test_clients_that_find_all_servers_full_wait_and_are_told_their_place(job, tmp_path):
    door = DoorProcess(tmp_path)
    server = door.serve(job.model, "one", "--sessions", 1)
    told: list[float] = []

    def one(_: int) -> bool:
        client = Client(door.address, keep_keys=False, **PATIENT, pin=door.pin)
        return job.right(
            {"outputs": client.predict(job.x, None, lambda _word, before, _why: told.append(before)).outputs}
        )

    with Client(door.address, pin=door.pin, **PATIENT).session(inputs=1) as held, ThreadPoolExecutor(4) as pool:
        waiting = pool.map(one, range(4))
        door.until(lambda state: state["waiting"] == 4)
        time.sleep(1.2)
        held.predict(job.x)
        held.finish()
        assert list(waiting) == [True] * 4
    assert {0, 1, 2, 3} <= set(told)
    server.close()
    door.close()


def test_a_client_comes_back_to_the_server_that_keeps_its_base_ots(job, tmp_path):
    door = DoorProcess(tmp_path)
    servers = [door.serve(job.model, name) for name in ("one", "two", "three")]
    client = Client(door.address, pin=door.pin, **PATIENT)
    first = client.predict(job.x).report
    for _ in range(3):
        time.sleep(0.3)
        report = client.predict(job.x).report
        assert report["resumed"] and report["door"]["server"] == first["door"]["server"]
    for server in servers:
        server.close()
    door.close()


@pytest.mark.parametrize("relay", ["always", "never"])
def test_which_clients_are_passed_on_is_the_operators_choice(job, tmp_path, relay):
    door = DoorProcess(tmp_path, "--relay", relay)
    server = door.serve(job.model, "one")
    follows = ask(door.address, job.x, **PATIENT, **door.how)
    assert job.right(follows) and ("door" in follows["report"]) == (relay == "never")
    old = ask(door.address, job.x, follow=False, **PATIENT, **door.how)
    assert job.right(old) == (relay == "always")
    server.close()
    door.close()


def test_hostile_bytes_at_the_door_and_its_control_address_harm_nobody(job, tmp_path):
    door = DoorProcess(tmp_path)
    server = door.serve(job.model, "one")
    hello = bytes.fromhex("160301")
    texts = [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        os.urandom(4096),
        hello + b"\xff\xff" + os.urandom(20000),
        b"\x09" + b"\0" * 200,
    ]
    texts += [
        hello + b"\x00\x05\x01\x00\x00\x01\x03",
        b"\r\n\r\n\0\r\nQUIT\n" + os.urandom(40),
        b"\x0b\xff\x03\0\0" + os.urandom(1023),
    ]
    held = []
    for address in (door.address, door.control, server.address):
        host, port = address.rsplit(":", 1)
        for text in texts:
            end = socket.create_connection((host, int(port)))
            held.append(end)
            try:
                end.sendall(text)
            except OSError:  # it was closed at the first bytes
                continue
    for _ in range(3):
        assert job.right(ask(door.address, job.x, **PATIENT, **door.how))
    for end in held:
        end.close()
    assert "panicked" not in server.close()
    assert "panicked" not in door.close()


def test_a_door_that_is_killed_and_another_lose_nothing(job, tmp_path):
    door = DoorProcess(tmp_path)
    server = door.serve(job.model, "one")
    with Client(door.address, pin=door.pin, **PATIENT).session(inputs=2) as session:
        assert job.right({"outputs": session.predict(job.x).outputs})
        door.process.kill()
        door.process.wait()
        assert job.right({"outputs": session.predict(job.x).outputs})
    again = DoorProcess(tmp_path, "--control", door.control, "--listen", door.address)
    again.until(lambda state: any(one["state"] == "ready" for one in state["servers"]))
    assert again.pin == door.pin
    assert job.right(ask(again.address, job.x, **PATIENT, **again.how))
    server.close()
    door.close()
    again.close()


def test_no_correlation_or_ticket_is_used_twice_and_both_parties_agree(job, tmp_path):
    folders = {side: tmp_path / side for side in ("servers", "clients")}
    for folder in folders.values():
        folder.mkdir()
    door = DoorProcess(tmp_path)
    env = {**os.environ, "TACIT_AUDIT": str(folders["servers"])}
    servers = [door.serve(job.model, name, env=env) for name in ("one", "two")]
    before = os.environ.get("TACIT_AUDIT")
    os.environ["TACIT_AUDIT"] = str(folders["clients"])
    try:
        clients = [ClientProcess(door.address, job.file, "--pin", door.pin, "--timeout", 30) for _ in range(4)]
        assert all("error" not in client.outcome(60) for client in clients)
    finally:
        os.environ.pop("TACIT_AUDIT") if before is None else os.environ.update(TACIT_AUDIT=before)
    door.until(lambda state: state["tickets"]["redeemed"] == 4)
    lines = {side: consumed(folder) for side, folder in folders.items()}
    assert max(Counter(lines["servers"]).values()) == 1
    tickets = [line for line in lines["servers"] if line.startswith("ticket ")]
    assert len(tickets) == 4
    assert set(lines["servers"]) - set(tickets) == set(lines["clients"]) != set()
    for server in servers:
        server.close()
    door.close()


def consumed(folder: Path) -> list[str]:
    """The lines of all processes."""
    return [line for file in folder.iterdir() for line in file.read_text().splitlines()]


def test_one_scrape_shows_the_door_and_all_servers(job, tmp_path, tacit):
    door = DoorProcess(tmp_path)
    servers = [door.serve(job.model, name) for name in ("one", "two")]
    for _ in range(2):
        assert job.right(ask(door.address, job.x, **PATIENT, **door.how))
    ends = time.monotonic() + 10
    while look(door.metrics).total("tacit_sessions_total", end="finished") < 2:
        assert time.monotonic() < ends
        time.sleep(0.1)
    found = look(door.metrics)
    for name in ("one", "two"):
        assert found.total("tacit_sessions_total", end="finished", server=name) == 1
    assert found.total("tacit_door_tickets", end="redeemed") == 2
    text = get(door.metrics, "/metrics", 5)[1]
    assert text.count("# TYPE tacit_sessions counter\n") == 1 and text.endswith("# EOF\n")
    shown = tacit("top", door.metrics, "--json").json
    assert shown["ended"]["finished"] == 2
    assert get(door.metrics, "/readyz", 5)[0] == 200
    for server in servers:
        server.close()
    door.until(lambda state: all(one["state"] == "gone" for one in state["servers"]))
    assert get(door.metrics, "/readyz", 5)[0] == 503
    door.close()
