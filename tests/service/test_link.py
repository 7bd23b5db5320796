"""Links as they are: a relay with a real delay and bandwidth between the parties, nothing imitated."""

import json

import numpy as np
import pytest
from faults.parties import ServerProcess, ask
from relay import relay
from tacit import Model

WAN = (40, 400)
"""Milliseconds of a round trip, and Mbit/s."""
PATIENT = {"timeout_seconds": 60, "connect_seconds": 60}
MEASURING = {"client_to_server": 13, "server_to_client": 8 + 12_800 + 2 * 5}
"""Bytes of the messages by which a link is measured, in one round trip."""


@pytest.fixture(scope="module")
def digit(digits):
    return digits[:1]


@pytest.fixture(scope="module")
def mnist(compiled, digit):
    model = compiled("exact")
    return model, Model(model).simulate(digit)


def planned(tacit, model, network: str) -> dict:
    """What a plan for a link says of one input."""
    return tacit("plan", model, "--network", network, "--json").json


def costs(report: dict) -> dict:
    """Bytes and rounds by phase."""
    return {phase: (cost["bytes"], cost["rounds"]) for phase, cost in report["phases"].items()}


@pytest.mark.parametrize("network", ["wan", "lan", "loopback"])
def test_a_link_is_planned_for_without_imitating_it(mnist, digit, tacit, network):
    model, expected = mnist
    server = ServerProcess(model, "--plaintext", "--link", network)
    try:
        outcome = ask(server.address, digit, **PATIENT)
        assert np.array_equal(outcome["outputs"], expected)
        assert costs(outcome["report"]) == costs(planned(tacit, model, network))
        assert server.line(10)["rounds"] == outcome["report"]["rounds"]
    finally:
        server.close()


def measured(model, digit) -> list[tuple[dict, dict]]:
    """The client's outcomes and the server's lines of two sessions over a relay to a server that measures."""
    server = ServerProcess(model, "--plaintext", "--protocols", "measured", "--threads", 2)
    try:
        with relay(server.address, *WAN) as address:
            return [(ask(address, digit, **PATIENT), server.line(10)) for _ in range(2)]
    finally:
        server.close()


def test_a_measured_link_gets_the_plan_for_it(mnist, digit, tacit):
    """A client's first session costs the plan and one round trip of measuring, the next ones the plan alone."""
    model, expected = mnist
    wan, loopback = planned(tacit, model, "wan"), planned(tacit, model, "loopback")
    assert wan["rounds"] < loopback["rounds"]
    # A machine that stops for milliseconds as the burst arrives makes the link a thin one, rightly so.
    tries = (measured(model, digit) for _ in range(5))
    sessions = next(found for found in tries if found[0][1]["link"]["bits_per_second"] > 200e6)
    for again, (outcome, line) in enumerate(sessions):
        assert np.array_equal(outcome["outputs"], expected), outcome
        found, plan = outcome["report"], costs(wan)
        if not again:
            sent = {way: count + MEASURING[way] for way, count in plan["setup"][0].items()}
            # What the offer says of itself: that its link was measured.
            sent["server_to_client"] += len(',"measured":true')
            plan["setup"] = (sent, plan["setup"][1] + 2)
        assert costs(found) == plan
        assert line.get("measured", False) is not bool(again)
        assert 0.039 < line["link"]["round_trip_seconds"] < 0.2
        assert line["link"]["bits_per_second"] <= 400e6


def test_a_client_that_comes_back_is_known_by_who_it_is_and_its_address(mnist, digit, tmp_path):
    """What was measured is believed for a while, even where the link has changed."""
    model, expected = mnist
    folder = tmp_path / "service.toml"
    folder.write_text(f'plaintext = true\n[[model]]\nfile = "{model}"\nprotocols = "measured"\n')
    server = ServerProcess(folder)
    try:
        near = ask(server.address, digit, **PATIENT)
        with relay(server.address, 150, 1000) as address:
            same = ask(address, digit, **PATIENT)
        assert costs(near["report"])["online"] == costs(same["report"])["online"]
        assert all(np.array_equal(one["outputs"], expected) for one in (near, same))
        assert server.line(10)["link"] == server.line(10)["link"]
    finally:
        server.close()


def test_models_of_a_service_have_links_of_their_own(mnist, digit, tacit, tmp_path):
    model, _ = mnist
    file = tmp_path / "service.toml"
    models = [f'[[model]]\nfile = "{model}"\nname = "{link}"\nlink = "{link}"\n' for link in ("wan", "lan")]
    file.write_text("plaintext = true\n" + "".join(models))
    server = ServerProcess(file)
    try:
        for link in ("wan", "lan"):
            outcome = ask(server.address, digit, model=link, **PATIENT)
            assert costs(outcome["report"]) == costs(planned(tacit, model, link)), json.dumps(outcome["report"])
    finally:
        server.close()
