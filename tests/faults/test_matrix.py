"""Every kind of fault at every phase of a session, between real processes.

Each case needs a client, a server and a relay between them that strikes at one frame. What must
hold: the survivor ends within its timeout with an error that names the guilty side, the server
reports the failed session, and then answers the next client correctly.
"""

import itertools
import os
import queue
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from faults.moments import PHASES, SILENT, Moment, moments
from faults.parties import IDLE, SLACK, ClientProcess, ServerProcess, ask, named
from faults.relay import TO_CLIENT, TO_SERVER, Cut, Frame, Relay, Stall

SERVERS = {"output": 6, "label": 2}
LABEL_PHASES = {"argmax"}
BLAMES = {"peer", "transport"}

Spoil = Callable[[Frame, dict[str, bytes]], bytes]


def drop(_frame: Frame, _held: dict[str, bytes]) -> bytes:
    return b""


def truncate(_frame: Frame, _held: dict[str, bytes]) -> bytes:
    raise Cut


def stall(_frame: Frame, _held: dict[str, bytes]) -> bytes:
    raise Stall


def replay(frame: Frame, _held: dict[str, bytes]) -> bytes:
    return frame.bytes * 2


def swap(frame: Frame, held: dict[str, bytes]) -> bytes:
    held["next"] = frame.bytes
    return b""


def retag(frame: Frame, _held: dict[str, bytes]) -> bytes:
    return bytes([frame.tag ^ 0x7F]) + frame.bytes[1:]


def oversize(frame: Frame, _held: dict[str, bytes]) -> bytes:
    return frame.bytes[:1] + b"\xff" * 4 + frame.bytes[5:]


def shorten(frame: Frame, _held: dict[str, bytes]) -> bytes:
    return Frame(frame.sender, frame.index, frame.tag, frame.body[:-1]).bytes


def noise(frame: Frame, _held: dict[str, bytes]) -> bytes:
    return os.urandom(len(frame.bytes))


SPOILS: dict[str, Spoil] = {
    spoil.__name__: spoil for spoil in (drop, truncate, stall, replay, swap, retag, oversize, shorten, noise)
}
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
PAUSE_SECONDS = 0.5


class Case(NamedTuple):
    """`kind` is a spoil of a frame that `party` sends, or a signal to it: `kill`, `stop` or `pause`."""

    kind: str
    phase: str
    party: str

    @property
    def reveal(self) -> str:
        return "label" if self.phase in LABEL_PHASES else "output"

    def __str__(self) -> str:
        return f"{self.kind}-{self.phase}-{self.party}"


CASES = [
    *(Case(*case) for case in itertools.product(SPOILS, PHASES, (TO_SERVER, TO_CLIENT)) if case[1:] not in SILENT),
    *(Case(*case) for case in itertools.product((*SIGNALS, "pause"), PHASES, (TO_SERVER, TO_CLIENT))),
]


class Arena:
    """Servers for concurrent cases, and the moments of a clean session with them."""

    def __init__(self, job: Any):
        self.job = job
        self.idle: dict[str, queue.Queue[ServerProcess]] = {reveal: queue.Queue() for reveal in SERVERS}
        for reveal, count in SERVERS.items():
            for _ in range(count):
                self.idle[reveal].put(self.start(reveal))
        self.moments = {reveal: self.watch(reveal) for reveal in SERVERS}

    def start(self, reveal: str) -> ServerProcess:
        return self.job.serve("--plaintext", "--timeout", IDLE, "--reveal", reveal)

    @contextmanager
    def server(self, reveal: str) -> Iterator[ServerProcess]:
        """One server for one case; replaced when the case killed it or failed."""
        server = self.idle[reveal].get()
        try:
            yield server
        except BaseException:
            server.close()  # one failure must not look like several
            raise
        finally:
            if not server.alive:
                server.close()
                server = self.start(reveal)
            self.idle[reveal].put(server)

    def watch(self, reveal: str) -> dict[tuple[str, str], Moment]:
        with self.server(reveal) as server, Relay(server.address) as relay:
            outcome = ask(relay.address, self.job.x, timeout_seconds=30)
            assert self.job.right(outcome, reveal)
            assert "outputs" in outcome
            server.line(30)
        return moments(relay.frames, outcome["report"])

    def close(self) -> None:
        for servers in self.idle.values():
            while not servers.empty():
                assert "panicked" not in servers.get().close()

    def run(self, case: Case) -> None:
        with self.server(case.reveal) as server:
            if case.kind in SPOILS:
                self.spoil(case, server)
            elif case.kind == "pause":
                self.pause(case, server)
            else:
                self.strike(case, server)
            if server.alive:
                self.still_serves(case, server)

    def still_serves(self, case: Case, server: ServerProcess) -> None:
        after = ask(server.address, self.job.x, timeout_seconds=30, connect_seconds=30)
        assert self.job.right(after, case.reveal), after.get("error")
        assert server.line(30)["end"] == "finished"

    def server_noticed(self, case: Case, server: ServerProcess) -> None:
        """It reports the failed session; after its last message only silence can tell, without TLS."""
        line = server.line(IDLE + SLACK)
        if case.phase == "result":
            silent = (case.kind, case.party) == ("stop", TO_SERVER)
            assert line["end"] in (("client gone",) if silent else ("finished", "client gone")), line
        else:
            assert named(line["error"], BLAMES)
            assert line["end"] == "failed"

    def spoil(self, case: Case, server: ServerProcess) -> None:
        """One frame is spoilt: both parties are alive and must both notice."""
        moment = self.moments[case.reveal][case.phase, case.party]
        held: dict[str, bytes] = {}

        def fault(frame: Frame) -> bytes:
            if (frame.sender, frame.index) == moment:
                if case.kind in ("truncate", "stall"):
                    half = frame.bytes[: max(1, len(frame.bytes) // 2)]
                    relay.sockets[1 if case.party == TO_SERVER else 0].sendall(half)
                return SPOILS[case.kind](frame, held)
            late = held.pop("next", b"") if frame.sender == moment.sender else b""
            return frame.bytes + late

        with Relay(server.address, fault) as relay:
            outcome = ask(relay.address, self.job.x)
            assert outcome["seconds"] < IDLE + SLACK
            if (case.kind, case.phase) == ("replay", "result"):
                assert self.job.right(outcome)  # the session was over already
            else:
                assert named(outcome["error"], BLAMES)
            self.server_noticed(case, server)

    def strike(self, case: Case, server: ServerProcess) -> None:
        """One process gets a signal: the other must notice."""
        own = self.moments[case.reveal]
        moment = own.get((case.phase, case.party)) or own[case.phase, TO_CLIENT]
        struck: queue.Queue[float] = queue.Queue()

        def fault(frame: Frame) -> bytes:
            if (frame.sender, frame.index) == moment:
                victim.signal(SIGNALS[case.kind])
                struck.put(time.monotonic())
                return b"" if case.phase == "result" else frame.bytes
            return frame.bytes

        with Relay(server.address, fault) as relay:
            client = ClientProcess(relay.address, self.job.file)
            victim = client if case.party == TO_SERVER else server
            try:
                began = struck.get(timeout=60)  # a client process takes its time to start on a busy machine
                if case.party == TO_SERVER:
                    self.server_noticed(case, server)
                else:
                    assert named(client.outcome(30)["error"], BLAMES)
                assert time.monotonic() - began < IDLE + SLACK
            finally:
                client.kill()
        if case.kind == "stop" and case.party == TO_CLIENT:
            server.signal(signal.SIGCONT)
            self.server_noticed(case, server)

    def pause(self, case: Case, server: ServerProcess) -> None:
        """One process is stopped for less than the other's patience: nothing is lost."""
        own = self.moments[case.reveal]
        moment = own.get((case.phase, case.party)) or own[case.phase, TO_CLIENT]

        def fault(frame: Frame) -> bytes:
            if (frame.sender, frame.index) == moment:
                victim.signal(signal.SIGSTOP)
                time.sleep(PAUSE_SECONDS)
                victim.signal(signal.SIGCONT)
            return frame.bytes

        with Relay(server.address, fault) as relay:
            client = ClientProcess(relay.address, self.job.file, "--plaintext", "--timeout", 30)
            victim = client if case.party == TO_SERVER else server
            try:
                outcome = client.outcome(60)
            finally:
                client.kill()
        assert "error" not in outcome, outcome
        assert server.line(IDLE + SLACK)["end"] == "finished"


@pytest.fixture(scope="module")
def results(request, job) -> Iterator[dict[Case, "Future[None]"]]:
    """The selected cases, under way at the same time: most of them wait for a timeout."""
    parameters = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = [case for case in (some.get("case") for some in parameters) if isinstance(case, Case)]
    arena = Arena(job)
    with ThreadPoolExecutor(sum(SERVERS.values())) as pool:
        yield {case: pool.submit(arena.run, case) for case in chosen}
    arena.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_faults_are_named_and_survived(case, results):
    results[case].result()
