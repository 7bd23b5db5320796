"""Many clients at once, and many one after another, against one server."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import ASSETS
from tacit import Model

from faults.parties import ClientProcess, ServerProcess, ask

CLIENTS = 32
PREDICTIONS = 200
GROWTH_KB = 8_192
"""How much the mean of the last 50 sizes may exceed that of sessions 50 to 100. A session of this network
moves over 1 MB, so that losing a twelfth of it each time is seen."""
ONE_ARENA = {**os.environ, "MALLOC_ARENA_MAX": "1"}
"""glibc gives new threads arenas of their own, which keep what they once held: sixteen plateaus, one by one,
that look like a leak."""


@pytest.fixture(scope="module")
def digits():
    with np.load(ASSETS / "mnist_digits.npz") as archive:
        return archive["x"]


@pytest.fixture(scope="module")
def mnist(compiled, digits):
    """A server of the shipped network, and the outputs it must give for each digit."""
    model = compiled("exact")
    server = ServerProcess(model, "--plaintext")
    yield server, Model(model).simulate(digits)
    assert server.alive
    server.close()


def test_many_clients_at_once(mnist, digits):
    """All right and none starved: the last waits no longer than the work of all."""
    server, expected = mnist
    alone = ask(server.address, digits[:1], timeout_seconds=60)["seconds"]
    server.line(30)

    def one(index: int):
        digit = index % len(digits)
        return digit, ask(server.address, digits[digit : digit + 1], timeout_seconds=120, connect_seconds=60)

    with ThreadPoolExecutor(CLIENTS) as pool:
        outcomes = list(pool.map(one, range(CLIENTS)))
    for digit, outcome in outcomes:
        assert np.array_equal(outcome["outputs"], expected[digit : digit + 1]), outcome.get("error")
    sessions = [server.line(30) for _ in range(CLIENTS)]
    assert not any("error" in session for session in sessions)
    slowest = max(outcome["seconds"] for _, outcome in outcomes)
    assert slowest < 10 + 4 * CLIENTS * alone
    assert server.status("Threads") <= 8  # session and writer threads are gone


def test_processes_at_once(job):
    """Eight client processes, each with its own interpreter."""
    server = job.serve("--plaintext", "--timeout", 30)
    clients = [ClientProcess(server.address, job.file, "--plaintext", "--timeout", 30) for _ in range(8)]
    for client in clients:
        assert np.array_equal(client.outcome(60)["logits"], job.expected)
    server.close()


def test_memory_stays_flat(compiled, digits):
    """Sequential predictions, none lost, none wrong."""
    model = compiled("exact")
    server, expected = ServerProcess(model, "--plaintext", env=ONE_ARENA), Model(model).simulate(digits)
    sizes = []
    for index in range(PREDICTIONS):
        digit = index % len(digits)
        outcome = ask(server.address, digits[digit : digit + 1], timeout_seconds=60)
        assert np.array_equal(outcome["outputs"], expected[digit : digit + 1]), outcome.get("error")
        assert "error" not in server.line(30)
        sizes.append(server.status("VmRSS"))
    server.close()
    assert np.mean(sizes[-50:]) - np.mean(sizes[50:100]) < GROWTH_KB, sizes[::10]
