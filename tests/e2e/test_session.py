"""A session that stays open between inputs, with a server process, and what it prepares in the pauses."""

import json
import time
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import ASSETS
from tacit import Client, MisuseError, TransportError
from test_serving import serving

SECONDS = 60


@pytest.fixture(scope="module")
def digits():
    """Ten digits, one of each."""
    with np.load(ASSETS / "mnist_digits.npz") as content:
        return content["x"].astype(np.float32)


@contextmanager
def offering(compiled, store, *arguments):
    """A server with a store of `store` inferences: its process and a client for it."""
    with serving(compiled("exact"), "--offline", str(store), *arguments) as (process, line):
        yield process, Client(line["listening"], pin=line["pin"], keep_keys=False)


def wait_for(ready, session):
    """Pause until `ready` inferences wait."""
    deadline = time.monotonic() + SECONDS
    while session.ready != ready:
        assert time.monotonic() < deadline, f"{session.ready} ready, not {ready}"
        time.sleep(0.01)


def traffic(report, phase):
    """Bytes of a phase, both ways."""
    return sum(report["phases"][phase]["bytes"].values())


@pytest.mark.parametrize("store", [1, 2])
def test_the_pause_between_two_inputs_prepares(tacit, compiled, digits, store):
    usual = tacit("plan", compiled("exact"), "--json").json
    with offering(compiled, store) as (process, client):
        with client.session(inputs=store + 2) as session:
            wait_for(store, session)
            first = session.predict(digits[3])
            wait_for(store, session)
            prepared = session.report
            second = session.predict(digits[7:8])
        report = session.report
        theirs = json.loads(process.stdout.readline())
    assert [first.classes.tolist(), second.classes.tolist()] == [[3], [7]]
    assert second.logits is not None
    assert second.logits.shape == (1, 10)
    assert (first.report["inputs"], second.report["inputs"], report["inputs"]) == (1, 2, 2)
    online = [traffic(content, "online") for content in (first.report, prepared, second.report, usual)]
    assert online[0] == online[1]
    assert online[2] - online[1] == online[0] < 0.6 * online[3], online
    assert traffic(second.report, "offline") > traffic(first.report, "offline")
    assert theirs["end"] == "failed"
    assert f"after 2 of {store + 2} inputs" in theirs["error"]["message"]


def test_a_whole_session_costs_what_a_batch_does(compiled, digits):
    with offering(compiled, 1) as (process, client):
        with client.session(inputs=2) as session:
            classes = [int(session.predict(digit).classes[0]) for digit in digits[4:6]]
            with pytest.raises(MisuseError, match="opened for 2 inputs"):
                session.predict(digits[0])
        theirs = json.loads(process.stdout.readline())
        batch = client.predict(digits[4:6])
    assert (classes, batch.classes.tolist(), theirs["end"]) == ([4, 5], [4, 5], "finished")
    assert session.report["bytes"] == theirs["bytes"] == batch.report["bytes"]
    for phase, cost in batch.report["phases"].items():
        measured = session.report["phases"][phase]
        assert (phase, measured["bytes"], measured["rounds"]) == (phase, cost["bytes"], cost["rounds"])


def test_without_a_store_nothing_is_prepared(compiled, digits):
    with offering(compiled, 0) as (_, client), client.session(inputs=3) as session:
        assert session.predict(digits[1]).classes.tolist() == [1]
        assert session.ready == 0


def test_an_early_end_leaves_the_server_to_the_next_client(compiled, digits):
    with offering(compiled, 2) as (process, client):
        with client.session(inputs=5) as session:
            session.predict(digits[0])
        assert session.finish()["inputs"] == 1
        with pytest.raises(MisuseError, match="finished"):
            session.predict(digits[0])
        with pytest.raises(ZeroDivisionError), client.session(inputs=5) as session:
            raise ZeroDivisionError
        ends = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [end["error"]["kind"] for end in ends] == ["transport"] * 2, ends
        assert client.predict(digits[:2]).classes.tolist() == [0, 1]
        assert json.loads(process.stdout.readline())["end"] == "finished"


def test_inputs_that_do_not_fit_leave_the_session_open(compiled, digits):
    with offering(compiled, 1) as (_, client):
        for inputs in (0, -1, 1_000_001):
            with pytest.raises(MisuseError, match="1 to 1000000 inputs"):
                client.session(inputs)
        with client.session(inputs=1) as session:
            for bad in (digits[:2], digits[0, :, :5], digits[0].astype(np.float64), np.full_like(digits[0], np.nan)):
                with pytest.raises(MisuseError):
                    session.predict(bad)
            assert session.predict(digits[9]).classes.tolist() == [9]


@pytest.mark.parametrize("store", [0, 2])
def test_a_server_killed_in_the_pause(compiled, digits, store):
    with offering(compiled, store) as (process, client), client.session(inputs=4) as session:
        session.predict(digits[2])
        wait_for(store, session)
        process.kill()
        process.wait()
        for _ in range(2):
            with pytest.raises(TransportError, match="closed"):
                session.predict(digits[2])
        assert (session.ready, session.finish()["inputs"]) == (0, 1)


def test_a_server_killed_while_preparing(compiled, digits):
    with offering(compiled, 50) as (process, client), client.session(inputs=60) as session:
        wait_for(1, session)
        process.kill()
        process.wait()
        with pytest.raises(TransportError, match="closed"):
            session.predict(digits[2])


def test_a_pause_beyond_the_servers_patience(compiled, digits):
    with offering(compiled, 1, "--timeout", "1") as (process, client), client.session(inputs=3) as session:
        session.predict(digits[2])
        error = json.loads(process.stdout.readline())["error"]
        assert "after 1 of 3 inputs" in error["message"], error
        with pytest.raises(TransportError):
            session.predict(digits[2])
