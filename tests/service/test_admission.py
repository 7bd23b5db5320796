"""Crowds of strangers cost a client that is served well almost nothing."""

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from conftest import ASSETS
from faults.authorities import Authority
from faults.parties import ServerProcess, ask
from tacit import Model

HOSTILE = Path(__file__).with_name("hostile.py")
CROWDS = {
    "a thousand that say nothing": ("idle", 1000),
    "64 that drip": ("drip", 64),
    "500 that drip": ("drip", 500),
    "150 that reopen": ("reopen", 150),
    "garbage": ("garbage", 32),
    "garbage in TLS": ("tls", 32),
}
LATER = 1.0
"""Seconds that a crowd may cost a client."""


@pytest.fixture(scope="module")
def digits():
    with np.load(ASSETS / "mnist_digits.npz") as archive:
        return archive["x"]


@pytest.fixture(scope="module")
def mnist(compiled, digits):
    """A compiled network and what it must say of the first digit."""
    model = compiled("exact")
    return model, Model(model).simulate(digits[:1])


@contextmanager
def crowd(kind: str, address: str, count: int) -> Iterator[None]:
    command = [sys.executable, str(HOSTILE), kind, address, str(count)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == count
            yield
        finally:
            process.kill()


def served(server: ServerProcess, mnist, digits, **how: object) -> float:
    """Seconds of the median of three sessions, all of which must be right."""
    seconds = []
    for _ in range(3):
        outcome = ask(server.address, digits[:1], **{"timeout_seconds": 30, "connect_seconds": 30, **how})
        assert np.array_equal(outcome["outputs"], mnist[1]), outcome.get("error")
        seconds.append(outcome["seconds"])
    return statistics.median(seconds)


@pytest.mark.parametrize("name", CROWDS)
def test_a_crowd_of_strangers_delays_nobody(mnist, digits, name):
    server = ServerProcess(mnist[0])
    how = {"plaintext": False, "pin": server.pin}
    alone = served(server, mnist, digits, **how)
    kind, count = CROWDS[name]
    with crowd(kind, server.address, count):
        time.sleep(1)
        beside = served(server, mnist, digits, **how)
        threads = server.status("Threads")
    print(f"{name}: {alone:.2f} s alone, {beside:.2f} s beside, {threads} threads")
    assert beside <= alone + LATER
    assert threads <= 16, "a stranger costs no thread"
    assert server.alive
    server.close()


def test_strangers_without_a_certificate_do_not_delay_one_who_has_it(mnist, digits, tmp_path):
    authority = Authority(tmp_path, "ours")
    own, ours = authority.issue("server", "IP:127.0.0.1"), authority.issue("client", "DNS:client")
    server = ServerProcess(mnist[0], *own.served(), "--client-ca", authority.ca)
    how = {"plaintext": False, "ca": authority.ca, "certificate": ours.certificate, "key": ours.key}
    alone = served(server, mnist, digits, **how)
    with crowd("tls", server.address, 64), crowd("drip", server.address, 64):
        time.sleep(1)
        assert served(server, mnist, digits, **how) <= alone + LATER
    server.close()


def test_a_full_server_says_when_to_come_back(job):
    """One session runs, one waits, the third is told to come back and does."""
    server = job.serve("--plaintext", "--sessions", 1, "--queue", 1, "--network", "200ms,100")
    patient = {"timeout_seconds": 60, "connect_seconds": 60, "network": "200ms,100"}
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(ask, server.address, job.x, **patient)
        time.sleep(0.5)
        second = pool.submit(ask, server.address, job.x, **patient)
        time.sleep(0.5)
        third = ask(server.address, job.x, **patient)
        assert third["error"]["kind"] == "busy"
        assert third["error"]["message"].startswith("the server is full, 1 session waits; try again in ")
        again = pool.submit(ask, server.address, job.x, retry_for=120, **patient)
        outcomes = [future.result() for future in (first, second, again)]
    assert all(job.right(outcome) for outcome in outcomes), outcomes
    lines = [server.line(10)]
    while sum(line["end"] == "finished" for line in lines) < 3:
        lines.append(server.line(10))
    assert {line["end"] for line in lines} == {"finished", "refused"}
    assert max(line["waited_seconds"] for line in lines) > 0.5
    server.close()


def test_a_waiting_client_that_leaves_holds_nobody_up(job):
    server = job.serve("--plaintext", "--sessions", 1, "--network", "200ms,100")
    patient = {"timeout_seconds": 60, "connect_seconds": 60, "network": "200ms,100"}
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(ask, server.address, job.x, **patient)
        time.sleep(0.5)
        leaves = pool.submit(ask, server.address, job.x, **{**patient, "session_seconds": 0.7})
        time.sleep(0.2)
        stays = pool.submit(ask, server.address, job.x, **patient)
        assert "error" in leaves.result()
        assert job.right(first.result())
        assert job.right(stays.result())
    server.close()


@pytest.mark.parametrize("options", [("--memory", 1), ("--memory", 30)])
def test_too_little_memory_is_said_at_the_start(job, tacit, options):
    done = tacit("serve", job.model, "--listen", "127.0.0.1:0", "--plaintext", *options)
    assert done.code == 1
    assert "raise --memory" in done.err
