"""An interrupt at any moment ends a server."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tacit.session.server import Server


class Core:
    """A server that runs until it is stopped."""

    def __init__(self):
        self.stopped = threading.Event()

    def run(self):
        assert self.stopped.wait(timeout=10)

    def stop(self):
        self.stopped.set()


def test_an_interrupt_while_the_thread_starts(monkeypatch):
    submit = ThreadPoolExecutor.submit

    def interrupted(pool, *work):
        submit(pool, *work)
        raise KeyboardInterrupt

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    server = object.__new__(Server)
    server.core = Core()
    with pytest.raises(KeyboardInterrupt):
        next(server.sessions())
    assert server.core.stopped.is_set()
