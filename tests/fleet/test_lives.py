"""A fleet starts, is asked, survives the end of its processes, and drains."""

import os
import signal
import socket
import time

import numpy as np
import pytest
from databases import postgresql
from tacit import Client, Model, RefusedError
from tacit.session.watch import get

from fleet.fleets import command, fleet_file, ray, until


def answered(fleet, mnist, digits):
    """Whether the fleet answers as the interpreter does."""
    door = fleet.status()["door"]
    client = Client(door["address"], pin=door["pin"], retry_for=20)
    return np.array_equal(client.predict(digits[:2]).outputs, Model(mnist).simulate(digits[:2]))


def test_a_fleet_answers_scales_and_drains(fleets, mnist, digits):
    fleet = fleets(fleet_file(mnist, replicas=(2, 4), head='metrics = "127.0.0.1:0"'))
    servers = fleet.servers()
    assert len(servers) == 2
    assert answered(fleet, mnist, digits)
    code, state = command("fleet", "status", fleet.file)
    assert code == 0
    assert [row["ready"] for row in state["models"]] == [2]
    code, asked = command("fleet", "scale", fleet.file, 3)
    assert (code, asked["before"], asked["wanted"]) == (0, 2, 3)
    until(lambda: len(fleet.servers()) == 3)
    code, drained = command("fleet", "drain", fleet.file, servers[0]["server"])
    assert (code, drained["draining"]) == (0, [servers[0]["server"]])
    until(lambda: servers[0]["server"] not in [one["server"] for one in fleet.status()["servers"]])
    until(lambda: len(fleet.servers()) == 3)
    code, failed = command("fleet", "drain", fleet.file, "nobody")
    assert code == 1
    assert "no server `nobody`" in failed["error"]["message"]
    assert fleet.stop() == 0
    assert fleet.said("all servers have drained")
    code, failed = command("fleet", "status", fleet.file)
    assert code == 1
    assert "does not run: start it with `tacit fleet up" in failed["error"]["message"]


def test_a_server_that_is_killed_is_replaced(fleets, mnist, digits):
    fleet = fleets(fleet_file(mnist, replicas=(2, 2)))
    victim, other = fleet.servers()
    fleet.kill(victim)
    began = time.monotonic()
    until(lambda: victim["server"] not in [one["server"] for one in fleet.status()["servers"]])
    until(lambda: len(fleet.servers()) == 2)
    print(f"replaced after {time.monotonic() - began:.1f} s")
    assert other["server"] in [one["server"] for one in fleet.servers()]
    assert answered(fleet, mnist, digits)
    assert fleet.status()["models"][0]["restarts"] == 1
    until(lambda: fleet.said(f"{victim['server']} is lost"), 5)


def test_a_server_that_hangs_is_replaced(fleets, mnist):
    fleet = fleets(fleet_file(mnist, more="timeout = 2"))
    (victim,) = fleet.servers()
    os.kill(victim["pid"], signal.SIGSTOP)
    until(lambda: fleet.said(f"{victim['server']} is lost: gave no sign of life for 2 s"))
    until(lambda: fleet.servers() and fleet.servers()[0]["server"] != victim["server"])


def test_the_head_may_end_and_finds_its_servers(fleets, mnist):
    fleet = fleets(fleet_file(mnist, replicas=(2, 2)))
    before = {one["server"] for one in fleet.servers()}
    pid = fleet.status()["pid"]
    os.kill(pid, signal.SIGKILL)

    def found():
        try:
            state = fleet.status()
        except Exception:  # noqa: BLE001 (it is being started)
            return False
        return state["pid"] != pid and {one["server"] for one in state["servers"] if one["warm"]} == before

    until(found)
    assert fleet.stop() == 0


def test_servers_that_cannot_start_say_why_and_wait_longer_and_longer(fleets, tmp_path):
    broken = tmp_path / "broken.tacit"
    broken.write_bytes(b"no model")
    fleet = fleets(fleet_file(broken, own="memory = 400"), ready=False)
    until(lambda: len(fleet.said("is lost: MisuseError")) >= 3)
    fleet.join()
    row = fleet.status()["models"][0]
    assert "MisuseError" in row["last_error"]
    assert row["restarts"] >= 3
    assert row["ready"] == 0
    assert fleet.stop() == 0


def test_what_ray_has_no_room_for_is_placing(fleets, mnist):
    fleet = fleets(fleet_file(mnist, own="cpus = 64"), ready=False)
    until(lambda: fleet.said("starts"))
    fleet.join()
    (server,) = fleet.status()["servers"]
    assert server["state"] == "placing"
    assert fleet.stop() == 0


def test_the_file_is_applied_to_a_fleet_that_runs(fleets, mnist, digits):
    """Another model comes, the first goes and comes back, and a file that cannot be changes nothing."""
    fleet = fleets(fleet_file(mnist))
    text = fleet.file.read_text()
    second = text[text.index("[[model]]") :].replace('"digits"', '"again"')
    fleet.file.write_text(text + second)
    code, found = command("fleet", "up", fleet.file, "--address", ray.get_runtime_context().gcs_address)
    assert (code, found["added"], found["kept"]) == (0, ["again"], ["digits"])
    until(lambda: {one["model"] for one in fleet.servers()} == {"digits", "again"})
    fleet.file.write_text(text.replace('"digits"', '"again"'))
    fleet.reload()
    until(lambda: {one["model"] for one in fleet.status()["servers"]} == {"again"})
    fleet.file.write_text(text + second)
    fleet.reload()
    until(lambda: {one["model"] for one in fleet.servers()} == {"digits", "again"})
    fleet.file.write_text("listen = 7")
    fleet.reload()
    until(lambda: "not applied, the fleet goes on as it was" in fleet.errors.read_text())
    assert {one["model"] for one in fleet.servers()} == {"digits", "again"}
    door = fleet.status()["door"]
    for model in ("digits", "again"):
        client = Client(door["address"], pin=door["pin"], model=model, retry_for=20)
        assert np.array_equal(client.predict(digits[:1]).outputs, Model(mnist).simulate(digits[:1]))
    fleet.file.write_text(text)
    assert fleet.stop() == 0


def test_a_ledger_in_a_database_counts_for_all_servers(fleets, mnist, digits):
    with postgresql() as database:
        head = f'ledger = "{database.url}"\nbudget = "total=3"'
        fleet = fleets(fleet_file(mnist, replicas=(2, 2), head=head))
        door = fleet.status()["door"]
        client = Client(door["address"], pin=door["pin"], retry_for=20)
        for _ in range(3):
            assert np.array_equal(client.predict(digits[:1]).outputs, Model(mnist).simulate(digits[:1]))
        with pytest.raises(RefusedError, match="3 of 3 inputs in all"):
            client.predict(digits[:1])
        code, shown = command("budget", "show", "--ledger", database.url)
        assert code == 0
        assert [(row["client"], row["used"]) for row in shown["rows"]] == [("addr:127.0.0.1", 3)]
        assert "needless" not in fleet.errors.read_text()
        assert fleet.stop() == 0


def test_the_dashboard_and_the_metrics_are_there(fleets, mnist, digits):
    port = free_port()
    fleet = fleets(
        fleet_file(mnist, head='metrics = "127.0.0.1:0"').replace(
            "cpus = 8", f'cpus = 8\ndashboard = "127.0.0.1:{port}"'
        )
    )
    assert answered(fleet, mnist, digits)
    text = get(fleet.status()["metrics"], "/metrics", 10)[1]
    (server,) = fleet.servers()
    assert f'tacit_inputs_total{{server="{server["server"]}",model="digits"}} 2' in text
    assert "tacit_door_tickets" in text
    until(lambda: get(f"127.0.0.1:{port}", "/", 10)[0] == 200)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
