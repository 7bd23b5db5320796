"""Many honest clients at once: every one is answered, and the last waits no longer than the work takes."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from faults.parties import ServerProcess, ask
from tacit import Model

pytestmark = pytest.mark.alone

CLIENTS = 300
INPUTS = 3
REAL_CLIENTS = 120
TOGETHER = 12
"""Clients that arrive at the same moment."""


def test_three_hundred_clients_are_all_answered(compiled, digits):
    """At the usual time-outs; those that find the queue full come back by themselves."""
    model = compiled("exact")
    x = digits[:INPUTS]
    expected = Model(model).simulate(x)
    server = ServerProcess(model, "--plaintext")
    usual = {"timeout_seconds": 30, "connect_seconds": 10, "retry_for": 300}
    with ThreadPoolExecutor(CLIENTS) as pool:
        began = time.monotonic()
        futures = [pool.submit(ask, server.address, x, **usual) for _ in range(CLIENTS)]
        outcomes = [future.result() for future in futures]
        took = time.monotonic() - began
    wrong = [outcome.get("error") for outcome in outcomes if not np.array_equal(outcome.get("outputs"), expected)]
    assert wrong == []
    slowest = sorted(outcome["seconds"] for outcome in outcomes)[-CLIENTS // 100]
    print(f"{CLIENTS} clients: {CLIENTS / took:.1f} sessions a second, p99 {slowest:.1f} s of {took:.1f} s")
    ended = [server.line(30) for _ in range(CLIENTS)]
    assert all(line["end"] in ("finished", "refused") for line in ended)
    assert server.status("Threads") <= 16
    server.close()


def test_many_clients_of_a_real_network_are_all_answered(resnet20):
    """At the usual time-outs; a client that gets no byte for 30 s would give up."""
    model, x = resnet20
    expected = Model(model).simulate(x)
    server = ServerProcess(model, "--plaintext")
    usual = {"timeout_seconds": 30, "connect_seconds": 10, "retry_for": 600}

    def client(number: int) -> dict:
        place = number % len(x)
        outcome = ask(server.address, x[place : place + 1], **usual)
        return {**outcome, "right": np.array_equal(outcome.get("outputs"), expected[place : place + 1])}

    with ThreadPoolExecutor(REAL_CLIENTS) as pool:
        began = time.monotonic()
        outcomes = list(pool.map(client, range(REAL_CLIENTS)))
        took = time.monotonic() - began
    assert [outcome.get("error") for outcome in outcomes if not outcome["right"]] == []
    slowest = sorted(outcome["seconds"] for outcome in outcomes)[-REAL_CLIENTS // 100]
    print(f"{REAL_CLIENTS} clients of ResNet-20: p99 {slowest:.1f} s of {took:.1f} s")
    server.close()


@pytest.fixture
def two_cores():
    """At most two cores for both parties, on whatever machine."""
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(all_cores)[:2])
    yield
    os.sched_setaffinity(0, all_cores)


@pytest.mark.usefixtures("two_cores")
def test_sessions_that_run_are_not_slowed_to_the_pace_of_the_last(resnet20):
    """Where all run at once the first answer comes after nine tenths of the time that all take."""
    model, x = resnet20
    expected = Model(model).simulate(x[:1])
    server = ServerProcess(model, "--plaintext")
    with ThreadPoolExecutor(TOGETHER) as pool:
        outcomes = list(pool.map(lambda _: ask(server.address, x[:1], timeout_seconds=60), range(TOGETHER)))
    assert all(np.array_equal(outcome.get("outputs"), expected) for outcome in outcomes)
    seconds = sorted(outcome["seconds"] for outcome in outcomes)
    print(f"{TOGETHER} clients at once: the first after {seconds[0]:.2f} s, the last after {seconds[-1]:.2f} s")
    assert seconds[0] < seconds[-1] / 2
    server.close()
