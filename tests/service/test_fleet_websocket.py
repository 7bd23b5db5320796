"""Browsers at the door of a fleet: tickets, refusals, requests and frames that are none, and who is passed on."""

import os
import socket

import pytest
from faults.parties import ask

from service.at_door import PROTOCOL, SHOWN, Answer, Following, asked, message, request
from service.bridge import Bridge, WebSocket, connected, frame
from service.fleets import DoorProcess

SHOWS = ("--websocket", "127.0.0.1:0")
PATIENT = {"timeout_seconds": 30, "connect_seconds": 30}


@pytest.mark.parametrize("plaintext", [False, True])
def test_browsers_follow_the_door_to_the_least_busy_server(job, tmp_path, plaintext):
    door = DoorProcess(tmp_path, "--ledger", tmp_path / "ledger", "--budget", "total=3", *SHOWS, plaintext=plaintext)
    servers = [door.serve(job.model, name, *SHOWS) for name in ("one", "two")]
    met = set()
    for _ in range(2):
        bridge = Following(door.websocket, encrypted=not plaintext)
        assert job.right(ask(bridge.address, job.x, follow=False, **PATIENT))
        met.add(bridge.answer.ticket[0])
    assert met == {server.websocket for server in servers}
    door.until(lambda state: state["tickets"] == {"issued": 2, "redeemed": 2, "expired": 0, "out": 0})
    # One budget for clients of both kinds.
    assert job.right(ask(door.address, job.x, **PATIENT, **door.how))
    spent = asked(door.websocket, not plaintext)
    assert "budget" in spent.why
    assert {one["id"]: one["websocket"] for one in door.state()["servers"]} == {
        "one": servers[0].websocket,
        "two": servers[1].websocket,
    }
    for server in servers:
        assert server.line(10)["end"] == "finished"
        assert "panicked" not in server.close()
    assert "panicked" not in door.close()


def test_what_a_door_cannot_serve_is_said_in_words(job, tmp_path):
    door = DoorProcess(tmp_path, *SHOWS, "--queue", 0, plaintext=True)
    deaf = door.serve(job.model, "deaf")
    assert "--websocket" in asked(door.websocket).why, "its servers take TCP alone"
    server = door.serve(job.model, "one", *SHOWS, "--sessions", 1)
    deaf.close()
    door.until(lambda state: any(one["state"] == "gone" for one in state["servers"]))
    refusals = {
        "release": asked(door.websocket, said=request(protocol=PROTOCOL - 1)),
        "1 to 1000000": asked(door.websocket, said=request(values=1 << 40)),
        "--relay always": asked(door.websocket, said=opening()),
    }
    for words, answer in refusals.items():
        assert words in answer.why, answer
    tickets = [asked(door.websocket) for _ in range(3)]
    assert "full" in tickets[-1].why
    shown = [Answer.ticket.fget(one) for one in tickets if one.tag != 8]
    assert {address for address, _ in shown} == {server.websocket}
    assert "panicked" not in server.close()
    assert "panicked" not in door.close()


def opening() -> bytes:
    """The beginning of a session of a client that follows no doors."""
    return message(1, PROTOCOL.to_bytes(4, "little") + bytes(48))


def test_a_ticket_is_good_for_one_session_and_a_short_time(job, tmp_path):
    door = DoorProcess(tmp_path, *SHOWS, "--ticket", 5, plaintext=True)
    server = door.serve(job.model, "one", *SHOWS)
    bridge = Following(door.websocket)
    assert job.right(ask(bridge.address, job.x, follow=False, **PATIENT))
    again = Shown(server.websocket, bridge.answer.ticket[1])
    assert "shown before" in ask(again.address, job.x, follow=False, **PATIENT)["error"]["message"]
    late = asked(door.websocket).ticket[1]
    door.until(lambda state: state["tickets"]["expired"] == 1, 20)
    over = ask(Shown(server.websocket, late).address, job.x, follow=False, **PATIENT)["error"]
    assert over["kind"] == "busy"
    assert "ask the door" in over["message"]
    bare = ask(Bridge(server.websocket).address, job.x, follow=False, **PATIENT)["error"]
    assert bare["kind"] == "refused"
    assert "connect to its door" in bare["message"]
    server.close()
    door.close()


class Shown(Bridge):
    """Carries the bytes of a client to a server, after a ticket."""

    def __init__(self, server: str, ticket: bytes) -> None:
        self.ticket = ticket
        super().__init__(server)

    def connect(self) -> WebSocket:
        websocket = super().connect()
        websocket.stream.sendall(frame(message(SHOWN, self.ticket)))
        return websocket


@pytest.mark.parametrize("plaintext", [False, True])
def test_a_door_that_passes_all_clients_on_passes_browsers_on(job, tmp_path, plaintext):
    door = DoorProcess(tmp_path, *SHOWS, "--relay", "always", plaintext=plaintext)
    server = door.serve(job.model, "one", *SHOWS)
    bridge = Bridge(door.websocket, encrypted=not plaintext)
    assert job.right(ask(bridge.address, job.x, follow=False, **PATIENT))
    line = server.line(10)
    assert line["end"] == "finished"
    assert line["client"].startswith("127.0.0.1:")
    assert door.state()["tickets"]["issued"] == 0
    server.close()
    door.close()


def test_other_pages_requests_and_frames_harm_nobody(job, tmp_path):
    door = DoorProcess(tmp_path, *SHOWS, "--origin", "https://shop.org", plaintext=True)
    server = door.serve(job.model, "one", *SHOWS)
    for origin in ("https://evil.org", "null", "http://127.0.0.1"):
        with pytest.raises(ConnectionError, match=r"403 Forbidden[^$]*another origin"):
            WebSocket(door.websocket, Origin=origin)
    door.until(lambda _: sum("another origin" in event.get("error", "") for event in door.events) == 3)
    assert asked(door.websocket, Origin="https://shop.org").ticket
    stream = connected(door.websocket)
    stream.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert stream.recv(4096).startswith(b"HTTP/1.1 426")
    stream.close()
    garbage = [
        frame(os.urandom(5000)),
        frame(b"hello", 1),
        b"\x82\xff" + b"\xff" * 12,
        frame(message(SHOWN, b"no ticket")),
    ]
    garbage += [frame(b"\x09\xff\xff\xff\xff" + bytes(200)), frame(request()[:50]), os.urandom(300)]
    held: list[socket.socket] = []
    for text in garbage:
        websocket = WebSocket(door.websocket)
        held.append(websocket.stream)
        websocket.stream.sendall(text)
    with pytest.raises(ConnectionError):
        asked(door.websocket, said=message(SHOWN, b"no ticket"))
    assert job.right(ask(Following(door.websocket).address, job.x, follow=False, **PATIENT))
    for stream in held:
        stream.close()
    assert "panicked" not in server.close()
    assert "panicked" not in door.close()


def test_options_for_browsers_belong_together_at_a_door(job, tmp_path, tacit):
    common = ("fleet", "door", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--secret", tmp_path / "secret")
    done = tacit(*common, "--plaintext", "--origin", "https://a.org")
    assert done.code != 0
    assert "--websocket" in done.err
    done = tacit(*common, "--plaintext", "--websocket", "0.0.0.0:0")
    assert done.code != 0
    assert "loopback" in done.err
    own = ("--fleet", "127.0.0.1:1", "--fleet-secret", tmp_path / "secret", "--advertise-websocket", "a.org:0")
    done = tacit("serve", job.model, "--listen", "127.0.0.1:0", "--plaintext", *own)
    assert done.code != 0
    assert "--websocket" in done.err
