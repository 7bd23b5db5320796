"""Fleets of real processes: a door, servers, clients."""

import numpy as np
import pytest
from faults.parties import ask

from service.fleets import DoorProcess

PATIENT = {"timeout_seconds": 30, "connect_seconds": 30}


@pytest.mark.parametrize("plaintext", [False, True])
def test_clients_follow_the_door_to_the_least_busy_server(job, tmp_path, plaintext):
    door = DoorProcess(tmp_path, plaintext=plaintext)
    servers = [door.serve(job.model, name) for name in ("one", "two")]
    addresses = set()
    for _ in range(4):
        outcome = ask(door.address, job.x, **PATIENT, **door.how)
        assert job.right(outcome), outcome
        detour = outcome["report"]["door"]
        addresses.add(detour["server"])
        assert detour["rounds"] == 2 and detour["bytes"]["client_to_server"] > 0
    assert addresses == {server.address for server in servers}
    state = door.until(lambda state: state["tickets"]["redeemed"] == 4)
    assert state["tickets"] == {"issued": 4, "redeemed": 4, "expired": 0, "out": 0}
    for server in servers:
        assert server.line(10)["end"] == "finished"
        assert "panicked" not in server.close()
    door.close()


def test_a_server_of_a_fleet_takes_nobody_who_does_not_come_from_the_door(job, tmp_path):
    door = DoorProcess(tmp_path)
    server = door.serve(job.model, "one")
    outcome = ask(server.address, job.x, **PATIENT, **door.how)
    assert outcome["error"]["kind"] == "refused" and "door" in outcome["error"]["message"]
    assert np.array_equal(ask(door.address, job.x, **PATIENT, **door.how)["outputs"], job.expected)
    server.close()
    door.close()


def test_a_client_that_does_not_follow_doors_is_passed_on(job, tmp_path):
    door = DoorProcess(tmp_path)
    server = door.serve(job.model, "one")
    outcome = ask(door.address, job.x, follow=False, **PATIENT, **door.how)
    assert job.right(outcome), outcome
    line = server.line(10)
    assert line["end"] == "finished" and line["client"].startswith("127.0.0.1:")
    assert "door" not in outcome["report"]
    server.close()
    door.close()
