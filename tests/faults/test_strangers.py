"""Peers that are no Tacit client or server, or one that lies: written here, byte by byte."""

import contextlib
import json
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from faults.parties import IDLE, SLACK, ServerProcess, ask, named
from faults.relay import HEADER, Relay, exactly, framed, parsed

VERSION, PARAMETERS = 27, b"rlwe1-cw-frt5-b3"
HELLO, PLAN, ACCEPT, PROBE, REQUEST, ADMISSION = 1, 2, 3, 5, 6, 8
ADMITTED, MEASURED, WAITING, BUSY, DENIED = range(5)


LONGEST = 2**28 - 1
NOTHING = bytes(32 + 4 + 4)
"""A request that expects no offer: the digest, inputs, and bytes that follow."""


def expecting(digest: bytes, inputs: int, ahead: int, kept: bytes = b"\x01" * 32) -> bytes:
    """A request that expects an offer, and names base OTs of an earlier session."""
    return frame(REQUEST, bytes(64) + b"\x01" + kept + digest + struct.pack("<II", inputs, ahead), 1)


def frame(tag: int, body: bytes, index: int = 0) -> bytes:
    return framed(tag, body, index)


def hello(version: int = VERSION, parameters: bytes = PARAMETERS) -> bytes:
    return frame(HELLO, struct.pack("<I", version) + parameters + bytes(32))


def opening(version: int = VERSION) -> bytes:
    """All that a client says before it waits: no model by name, no token."""
    return hello(version) + frame(REQUEST, bytes(97) + NOTHING, 1)


def accept(inputs: int, digest: bytes = bytes(32)) -> bytes:
    return frame(ACCEPT, struct.pack("<I", inputs) + digest, 2)


def admitting(verdict: int = ADMITTED, number: int = 0, text: bytes = b"") -> bytes:
    """A server's hello and admission."""
    return hello() + frame(ADMISSION, struct.pack("<BII", verdict, number, 0) + text, 1)


def offering(body: bytes) -> bytes:
    return admitting() + frame(PLAN, body, 2)


def read(peer: socket.socket) -> bytes:
    """The body of the next frame."""
    header = exactly(peer, HEADER)
    assert header is not None
    body = exactly(peer, parsed(header)[1])
    assert body is not None
    return body


def begun(peer: socket.socket) -> None:
    """Read what a client says first: a request for doors alone, hello and request."""
    for _ in range(3):
        read(peer)


@contextmanager
def connected(address: str) -> Iterator[socket.socket]:
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=IDLE + SLACK) as peer:
        yield peer


CLIENTS = {
    "older version": (hello(0), "version"),
    "newer version": (hello(2**32 - 1), "version"),
    "other parameters": (hello(parameters=b"rlwe0-weak-weak!"), "parameters"),
    "another plan": (opening() + accept(1), "digest"),
    "no inputs": (opening() + accept(0), "inputs"),
    "too many inputs": (opening() + accept(2**32 - 1), "inputs"),
    "a second hello": (hello() + hello(), "tag 0x01"),
    "no hello": (accept(1), "tag 0x03"),
    "a short hello": (frame(HELLO, b""), "0 bytes"),
    "a long hello": (frame(HELLO, bytes(53)), "53 bytes"),
    "a hello of 256 MiB": (struct.pack("<BI", HELLO, LONGEST), f"{LONGEST} bytes"),
    "a hello out of turn": (frame(HELLO, hello()[HEADER:], 5), "number 5: a frame was lost"),
    "a model that is not there": (hello() + frame(REQUEST, b"\x01" * 32 + bytes(65) + NOTHING, 1), "no such model"),
    "a token that nobody gave out": (
        hello() + frame(REQUEST, bytes(32) + b"\x01" * 32 + bytes(33) + NOTHING, 1),
        "the token is not one",
    ),
    "a short request": (hello() + frame(REQUEST, bytes(136), 1), "136 bytes"),
    "inputs of no offer": (hello() + expecting(bytes(32), 1, 1), "137 bytes"),
    "an offer without inputs": (hello() + expecting(b"\x01" * 32, 0, 1), "137 bytes"),
    "more ahead than 4 MiB": (hello() + expecting(b"\x01" * 32, 1, (4 << 20) + 1), "137 bytes"),
    "an offer without base OTs": (hello() + expecting(b"\x01" * 32, 1, 1, bytes(32)), "137 bytes"),
    "an offer with base OTs that nobody has, then gone": (hello() + expecting(b"\x01" * 32, 1, 4 << 20), "closed"),
    "an acceptance out of turn": (opening() + frame(ACCEPT, bytes(36)), "number 0: a frame was lost"),
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "tag 0x47"),
    "TLS": (bytes.fromhex("1603010200010001fc0303") + bytes(64), "tag 0x16"),
    "zeros": (bytes(4096), "tag 0x00"),
    "nothing, then gone": (b"", "closed"),
    "half a header": (b"\x01\x34", "closed"),
    "half a hello": (hello()[:20], "closed"),
    "hello, then gone": (hello(), "closed"),
    "opening, then gone": (opening(), "closed"),
}


REFUSED = {
    "a model that is not there",
    "a token that nobody gave out",
    "a refusal",
    "a refusal in the place of a plan",
}
"""Cases that end in a refusal and in nothing else; all others are somebody's fault."""


@pytest.mark.parametrize("case", CLIENTS)
def test_clients_that_lie(job, server, case):
    sent, word = CLIENTS[case]
    with connected(server.address) as peer:
        with contextlib.suppress(OSError):  # the server may have hung up already
            peer.sendall(sent)
            peer.shutdown(socket.SHUT_WR)
        error = server.line(IDLE + SLACK)["error"]
    assert named(error, {"refused"} if case in REFUSED else {"peer", "transport"})
    assert word in error["message"]
    assert job.served_by(server)


@pytest.mark.parametrize("length", [1, 5, 57, 1000, 100_000])
def test_random_bytes(job, server, length):
    with connected(server.address) as peer:
        with contextlib.suppress(OSError):
            peer.sendall(b"\xff" + os.urandom(length))
            peer.shutdown(socket.SHUT_WR)
        assert named(server.line(IDLE + SLACK)["error"], {"peer", "transport"})
    assert job.served_by(server)


@pytest.mark.parametrize("sent", [b"", b"\x01", hello()[:30], hello(), opening()])
def test_half_open_clients_are_dropped(job, server, sent):
    began = time.monotonic()
    with connected(server.address) as peer:
        peer.sendall(sent)
        error = server.line(IDLE + SLACK)["error"]
        assert time.monotonic() - began >= IDLE - 0.1
        assert named(error, {"transport"})
        assert "did not finish its hello within 2 s" in error["message"] or "sent nothing for 2 s" in error["message"]
    assert job.served_by(server)


def drip(server: ServerProcess, peer: socket.socket, data: bytes, limit: float) -> tuple[dict[str, Any], float]:
    """Send a byte every tenth of a second until the server gives up: its error, and when it came."""
    began = time.monotonic()
    sent = 0
    while server.lines.empty() and time.monotonic() - began < limit + SLACK:
        with contextlib.suppress(OSError):
            peer.sendall(data[sent : sent + 1])
        sent += 1
        time.sleep(0.1)
    took = time.monotonic() - began
    assert 0 < sent < len(data)  # it was still talking
    return server.line(1)["error"], took


def test_dripping_clients_meet_the_session_limit(job):
    limit = 2
    server = job.serve("--plaintext", "--timeout", 30, "--session-timeout", limit)
    for sent, what in (
        (b"", "the peer did not finish its hello within 2 s"),
        (opening(), "longer than its time limit"),
    ):
        with connected(server.address) as peer:
            peer.sendall(sent)
            rest = accept(1) * 10 if sent else opening() * 10
            error, took = drip(server, peer, rest, limit)
            assert what in error["message"]
            assert limit - 0.1 <= took < limit + SLACK
    assert job.served_by(server)
    server.close()


def test_silent_clients_meet_the_session_limit(job):
    server = job.serve("--plaintext", "--timeout", 60, "--session-timeout", 1)
    with connected(server.address) as peer:
        peer.sendall(opening())
        began = time.monotonic()
        error = server.line(1 + SLACK)["error"]
        assert 0.9 <= time.monotonic() - began < 1 + SLACK
        assert error["message"] == "connection: the session took longer than its time limit"
        assert job.served_by(server)
    server.close()


def test_slow_tls_handshakes_meet_the_connect_limit(job):
    limit = 2
    server = job.serve("--timeout", 60, "--connect-timeout", limit)
    with connected(server.address) as peer:
        record = bytes.fromhex("16030102000100 01fc 0303") + bytes(500)  # a ClientHello that never ends
        error, took = drip(server, peer, record, limit)
        assert error["message"] == "connection: the peer did not finish the TLS handshake within 2 s"
        assert limit - 0.1 <= took < limit + SLACK
        assert job.served_by(server, plaintext=False, pin=server.pin)
    server.close()


def test_a_flood_of_connections_does_not_end_the_server(job):
    limit = (48, 48)
    server = job.serve(
        "--plaintext", "--timeout", 2, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    )
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connected(server.address))
        time.sleep(1)
    assert job.right(ask(server.address, job.x, timeout_seconds=30, connect_seconds=30))
    assert server.alive
    server.close()


# Servers that lie


@contextmanager
def lying_server(script: Callable[[socket.socket], None]) -> Iterator[str]:
    """Runs `script` with the first client and then closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            with contextlib.suppress(OSError, AssertionError, EOFError):
                peer = listener.accept()[0]
                with peer:
                    peer.settimeout(IDLE + SLACK)
                    script(peer)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(IDLE + SLACK)


def says(*parts: bytes) -> Callable[[socket.socket], None]:
    """Answers an opening with `parts`, then waits for the client to leave."""

    def script(peer: socket.socket) -> None:
        begun(peer)
        peer.sendall(b"".join(parts))
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1)

    return script


SERVERS = {
    "older version": (hello(0), "version"),
    "newer version": (hello(VERSION + 1), "version"),
    "other parameters": (hello(parameters=b"rlwe0-weak-weak!"), "parameters"),
    "HTTP": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "tag 0x48"),
    "a TLS alert": (bytes.fromhex("15030100020232"), "tag 0x15"),
    "no admission": (hello(), "closed"),
    "no plan": (admitting(), "closed"),
    "an admission that is none": (admitting(9), "an admission"),
    "a refusal that steers terminals": (admitting(DENIED, text=b"\x1b[2J"), "an admission"),
    "a refusal": (admitting(DENIED, text=b"not today"), "the server refuses: not today"),
    "a refusal in the place of a plan": (
        admitting() + frame(ADMISSION, bytes([DENIED]) + bytes(8) + b"no", 2),
        "refuses: no",
    ),
    "an empty plan": (offering(b""), "0 bytes"),
    "a plan of 256 MiB": (admitting() + struct.pack("<BI", PLAN, 2 << 28 | LONGEST), f"{LONGEST} bytes"),
    "a plan out of turn": (admitting() + frame(PLAN, b"{}", 1), "number 1: a frame was lost"),
    "a plan that is no text": (offering(b"\xff\xfe\xfd"), "UTF-8"),
    "a plan that is no JSON": (offering(b"\x1b[2J\x1b[H"), "other JSON"),
    "a plan that steers terminals": (offering(b'{"\\u001b[2J": 1}'), "other JSON"),
    "a probe that says something": (admitting(MEASURED) + frame(PROBE, b"\x01" * 8, 2), "other bytes"),
    "a probe of another length": (admitting(MEASURED) + frame(PROBE, bytes(9), 2), "9 bytes"),
    "a plan in place of a probe": (admitting(MEASURED) + frame(PLAN, b"{}", 2), "tag 0x02"),
    "a deep plan": (offering(b"[" * 100_000), "other JSON"),
    "half a plan": (offering(bytes(100))[:121], "closed"),
}


@pytest.mark.parametrize("case", SERVERS)
def test_servers_that_lie(job, case):
    sent, word = SERVERS[case]
    with lying_server(says(sent)) as address:
        outcome = ask(address, job.x)
    assert named(outcome["error"], {"refused"} if case in REFUSED else {"peer", "transport"})
    assert word in outcome["error"]["message"]
    assert outcome["seconds"] < IDLE + SLACK


@pytest.fixture(scope="module")
def offer(job) -> dict[str, Any]:
    """The plan that an honest server offers."""
    server = job.serve()
    with Relay(server.address) as relay:
        assert job.right(ask(relay.address, job.x))
    server.close()
    plan: dict[str, Any] = json.loads(next(f.body for f in relay.frames if f.tag == PLAN))
    return plan


def at(value: Any, *path: Any) -> Any:
    for step in path:
        value = value[step]
    return value


def setting(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(plan: dict[str, Any]) -> None:
        at(plan, *path[:-1])[path[-1]] = to

    return change


CONV = ("graph", "nodes", 0, "op", "linear")
PLANS = {
    "another reveal": setting("settings", "reveal", to="everything"),
    "chosen parameters": setting("settings", "degree", to=1024),
    "unknown field": setting("graph", "\x1b[2J", to=1),
    "huge shape": setting("graph", "tensors", 0, "shape", to=[2**31, 2**31]),
    "large shape": setting("graph", "tensors", 0, "shape", to=[2, 2**27]),
    "negative shape": setting("graph", "tensors", 0, "shape", to=[-2, 6, 6]),
    "empty shape": setting("graph", "tensors", 0, "shape", to=[]),
    "cycle": setting("graph", "nodes", 0, "inputs", to=[3]),
    "own output": setting("graph", "nodes", 0, "inputs", to=[1]),
    "no such tensor": setting("graph", "nodes", 0, "inputs", to=[2**40]),
    "no nodes": setting("graph", "nodes", to=[]),
    "weak accumulator": setting(*CONV, "accumulator_bits", to=60),
    "no accumulator": setting(*CONV, "accumulator_bits", to=0),
    "huge shift": setting(*CONV, "shift", to=2**31),
    "zero stride": setting(*CONV, "conv", "stride", to=[0, 0]),
    "huge kernel": setting(*CONV, "conv", "kernel", to=[2**40, 2**40]),
    "huge channels": setting(*CONV, "conv", "out_channels", to=2**62),
    "width 0": setting("graph", "tensors", 1, "format", "bits", to=0),
    "width 64": setting("graph", "tensors", 1, "format", "bits", to=64),
    "scale 0": setting("graph", "tensors", 0, "format", "scale", to=0.0),
    "huge range": setting("graph", "input_range", to=[0, 2**62]),
    "names that steer terminals": setting("graph", "name", to="\x1b[2J"),
    "labels that steer terminals": setting("graph", "labels", to=["\x1b[2J"] * 5),
    "another suite": setting("graph", "suite", to="trust-me"),
    "another graph version": setting("graph", "version", to=99),
}


@pytest.mark.parametrize("case", PLANS)
def test_hostile_plans_are_refused_before_anything_is_sent(job, offer, case):
    plan = json.loads(json.dumps(offer))
    PLANS[case](plan)
    answers: list[bytes] = []

    def script(peer: socket.socket) -> None:
        begun(peer)
        peer.sendall(offering(json.dumps(plan).encode()))
        answers.append(peer.recv(1))

    with lying_server(script) as address:
        outcome = ask(address, job.x)
    assert named(outcome["error"], {"peer", "unsupported"})
    assert answers in ([b""], [])
    assert outcome["seconds"] < 2


def test_absent_servers(job):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        outcome = ask(f"127.0.0.1:{held.getsockname()[1]}", job.x)
    assert named(outcome["error"], {"transport"})


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1", "127.0.0.1:99999", "no.such.host.invalid:1", ":", ""])
def test_addresses_that_are_none(job, address):
    assert ask(address, job.x)["error"]["kind"] == "misuse"


@pytest.mark.parametrize("tls", [False, True], ids=["plaintext", "tls"])
def test_servers_that_never_answer(job, tls):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        how = {"plaintext": False, "pin": "0" * 64} if tls else {}
        outcome = ask(f"127.0.0.1:{silent.getsockname()[1]}", job.x, **how)
    assert named(outcome["error"], {"transport"})
    assert IDLE - 0.1 <= outcome["seconds"] < IDLE + SLACK
