"""What a server or a door tells last is heard, however late a thread gets the processor."""

import json
import queue
from concurrent.futures import Future

import pytest
from tacit.session import server as served
from tacit.session.door import Door
from tacit.session.server import Server

REPORT = json.dumps({"session": 1})


class Core:
    """The core of a server or a door that tells one thing and is over while somebody who waited in vain looks up."""

    def __init__(self):
        self.told, self.running = queue.SimpleQueue(), Future()
        self.asked = 0

    def say(self, seconds):
        assert seconds > 0 or self.running.done()
        self.asked += 1
        said = None if self.told.empty() else self.told.get()
        if self.asked == 1:
            self.told.put(REPORT)
            self.running.set_result(None)
        return said

    next_report = next_event = say

    def run(self):
        self.running.result(timeout=10)

    def stop(self):
        pass


class Pool:
    """Runs nothing: the core says itself when it is over."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, run):
        return run.__self__.running


@pytest.fixture
def core():
    return Core()


def test_a_server_that_ends_while_nobody_looks_has_told_of_its_last_session(core, monkeypatch):
    monkeypatch.setattr(served, "ThreadPoolExecutor", Pool)
    server = object.__new__(Server)
    server.core = core
    assert [report["session"] for report in server.sessions()] == [1]


def test_a_door_that_ends_while_nobody_looks_has_told_what_happened_last(core):
    door = object.__new__(Door)
    door.core, door.serving = core, core.running
    assert [event["session"] for event in door.events()] == [1]
