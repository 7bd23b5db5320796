"""Keys kept from one session for the next: the same answers, less setup, and nothing that must not be missing."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from faults.parties import ServerProcess
from tacit import Client, Model, RefusedError

NEW = (5 + 128 * 32) + (5 + 32) + (5 + 16 * 16 + 32) + (5 + 32)
"""Bytes of a party's choices, offer, challenge and proof of base OTs at k = 8, which kept ones spare."""

ACCEPT = 5 + 36
"""Bytes of an acceptance, which a client spares that expects what it is offered."""


@pytest.fixture(scope="module")
def two(digits):
    return digits[:2]


@pytest.fixture(scope="module")
def mnist(compiled, two):
    model = compiled("exact")
    return model, Model(model).simulate(two)


@pytest.fixture
def server(mnist):
    server = ServerProcess(mnist[0], "--plaintext")
    yield server
    server.close()


def client(server: ServerProcess, **options) -> Client:
    return Client(server.address, plaintext=True, timeout_seconds=60, **options)


def test_the_next_session_needs_no_base_ots(mnist, two, server):
    one = client(server)
    predictions = [one.predict(two) for _ in range(3)]
    plain = client(server, keep_keys=False).predict(two)
    for prediction in (*predictions, plain):
        assert np.array_equal(prediction.outputs, mnist[1])
    reports = [prediction.report for prediction in predictions]
    assert [report.get("resumed", False) for report in (*reports, plain.report)] == [False, True, True, False]
    first, second, third = (report["phases"]["setup"] for report in reports)
    alone = plain.report["phases"]["setup"]
    assert second["bytes"] == third["bytes"]
    # What the server says beside its offer: a hello, an admission and base OTs at k = 8.
    offer = alone["bytes"]["server_to_client"] - (5 + 52) - (5 + 9) - (8313 + 2048 // 8)
    for direction, expected in (("client_to_server", ACCEPT), ("server_to_client", offer)):
        assert first["bytes"][direction] - second["bytes"][direction] == NEW + expected
        assert 0 < first["bytes"][direction] - alone["bytes"][direction] <= 16 * 63 + 5
    assert (first["rounds"], second["rounds"]) == (alone["rounds"], alone["rounds"] - 4) == (6, 2)
    lines = [server.line(10) for _ in range(4)]
    assert [line.get("resumed", False) for line in lines] == [False, True, True, False]
    with one.session(inputs=1) as session:
        assert session.predict(two[0]).report["resumed"]
    assert len(one.kept) == 1


def test_sessions_side_by_side_share_none(mnist, two, server):
    one = client(server)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: one.predict(two), range(12)))
    assert all(np.array_equal(prediction.outputs, mnist[1]) for prediction in done)
    assert any(prediction.report.get("resumed") for prediction in done)
    assert 1 <= len(one.kept) <= 4


def test_a_server_that_starts_anew_has_forgotten_them(mnist, two, server):
    one = client(server)
    one.predict(two)
    host = server.address
    server.close()
    again = ServerProcess(mnist[0], "--plaintext", "--listen", host)
    try:
        prediction = one.predict(two)
        assert np.array_equal(prediction.outputs, mnist[1])
        assert not prediction.report.get("resumed", False)
        assert one.predict(two).report["resumed"]
    finally:
        again.close()


def test_a_copy_of_a_client_starts_with_none(two, server):
    one = client(server)
    one.predict(two)
    for other in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one
        assert (len(other.kept), len(one.kept)) == (0, 1)
    assert one.predict(two).report["resumed"]


def test_a_client_that_comes_back_meets_its_budget(mnist, two, tmp_path):
    """What it has sent ahead of the answer changes nothing about the refusal."""
    server = ServerProcess(mnist[0], "--plaintext", "--ledger", tmp_path / "ledger", "--budget", "total=4")
    try:
        mine = client(server)
        reports = [mine.predict(two).report for _ in range(2)]
        assert [report["phases"]["setup"]["rounds"] for report in reports] == [6, 2]
        with pytest.raises(RefusedError, match="4 of 4 inputs in all"):
            mine.predict(two)
    finally:
        server.close()
