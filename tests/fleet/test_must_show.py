"""Fleets under load: kills, replacement and scaling. `scenarios.py` prints the same at full size."""

import pytest

from fleet.fleets import until
from fleet.scenarios import Stage, doors, kills, nothing_twice_and_budgets_exact, rolling, scaling


@pytest.fixture
def stage(mnist, tmp_path):
    """Set a stage, which is cleared after the test."""
    stages = []

    def make(replicas, clients, scaling=""):
        stages.append(Stage(tmp_path, mnist, replicas, clients, scaling))
        return stages[0]

    yield make
    for each in stages:
        each.fleet.close()


def test_sessions_survive_kills_of_servers_and_clients(stage):
    found = kills(stage((4, 4), 8), 80, 8)
    print(found)
    nothing_twice_and_budgets_exact(found)
    assert found["killed_servers"] >= 1
    assert found["killed_clients"] >= 1
    assert found["sessions"] <= found["charged"] <= found["sessions"] + found["failed"] + found["killed_clients"]
    assert found["capped"] == {"answered": 10, "refused": 10, "other": [], "budget": 10}
    # Errors of sessions name what happened; anything else is a defect.
    assert all(error.startswith(("TransportError: ", "BusyError: ")) for error in found["errors"])


def test_a_model_is_replaced_without_a_failed_session(stage):
    found = rolling(stage((2, 2), 6), 90, 6)
    print(found)
    nothing_twice_and_budgets_exact(found)
    assert (found["failed"], found["errors"]) == (0, {})
    assert found["charged"] == found["answered"]
    assert found["lowest_ready"] >= 2
    assert found["at_servers_only"] == found["at_clients_only"] == 0
    # Base OTs that a client kept with a server that was replaced are offered once, and are of no use any more.
    assert found["kept_in_vain"] <= 2 * found["clients"]


def test_servers_come_and_go_without_a_failed_session(stage):
    found = scaling(stage((1, 4), 6), 90, 6)
    print(found)
    nothing_twice_and_budgets_exact(found)
    assert (found["failed"], found["errors"]) == (0, {})
    assert found["charged"] == found["answered"]
    assert found["at_servers_only"] == found["at_clients_only"] == 0
    assert found["kept_in_vain"] <= 3 * found["clients"]


def test_a_door_that_is_killed_comes_back_at_its_ports(stage):
    found = doors(stage((2, 2), 6), 150, 6)
    print(found)
    assert (found["answered"], found["wrong"], found["unlike"], found["given_up"]) == (150, 0, 0, 0)
    assert (found["killed_doors"], found["same_place"], found["same_servers"]) == (2, True, True)
    assert (found["twice_at_servers"], found["twice_at_clients"]) == (0, 0)
    # The ledger counts what servers redeemed, whichever door gave the tickets.
    assert found["charged"] == found["tickets_audited"]
    assert found["answered"] <= found["charged"] <= found["answered"] + found["failed"]
    assert all(error.startswith(("TransportError: ", "BusyError: ")) for error in found["errors"])


def test_the_load_decides_how_many_servers_there_are(stage):
    """More while many ask, one again after the cool-down, and no session fails for it."""
    here = stage((1, 3), 16, "after = 0.5\ncool-down = 4\nload = 0.5")
    most = []

    def watch(crowd):
        while not crowd.done.wait(0.2):
            most.append(len(here.fleet.servers()))

    outcome = here.crowd(16).run(160, watch)
    print(outcome.numbers(), max(most))
    assert (outcome.answered, outcome.failed, outcome.unlike) == (160, 0, 0)
    assert most[0] == 1
    assert max(most) == 3
    until(lambda: len(here.fleet.servers()) == 1 == len(here.fleet.status()["servers"]))
