"""Browsers at `tacit serve --websocket`: the sessions of other clients, and requests and frames that are refused."""

import socket
import ssl
import time
from contextlib import suppress

import pytest
from faults.parties import ServerProcess, ask
from tacit.errors import MisuseError
from tacit.session.server import Listening

from service.bridge import BINARY, CLOSE, Bridge, WebSocket, connected, frame, request

SHOWN = ("--websocket", "127.0.0.1:0")


@pytest.fixture(scope="module")
def server(job):
    server = job.serve("--plaintext", *SHOWN)
    yield server
    assert server.alive
    assert "panicked" not in server.close()


def failed(server: ServerProcess, words: str) -> None:
    """The next client came to nothing, and these words are in the reason."""
    line = server.line(30)
    assert line["end"] == "failed", line
    assert (line["error"]["kind"], line["reached"]) == ("peer", "door"), line
    assert words in line["error"]["message"], line


def ended(stream: socket.socket) -> bytes:
    """All that the server still says before it closes the connection."""
    got = b""
    with suppress(ConnectionError):
        while part := stream.recv(4096):
            got += part
    return got


@pytest.mark.parametrize("options", [("--plaintext",), ()], ids=["plaintext", "tls"])
def test_a_session_in_frames_is_that_of_a_socket(job, options):
    server = job.serve(*options, "--batch", 1, *SHOWN)
    assert server.websocket is not None
    bridge = Bridge(server.websocket, encrypted=not options)
    patient = {"timeout_seconds": 30, "connect_seconds": 30}
    framed = ask(bridge.address, job.x, **patient)
    assert job.right(framed), framed
    line = server.line(30)
    assert line["end"] == "finished"
    bridge.thread.join(10)
    assert bridge.kinds[-1] == CLOSE
    assert set(bridge.kinds[:-1]) == {BINARY}
    trust = {"plaintext": True} if options else {"plaintext": False, "pin": server.pin}
    other = ask(server.address, job.x, **patient, **trust)
    assert job.right(other)
    plain = server.line(30)
    for key in ("bytes", "rounds", "inputs", "digest"):
        assert framed["report"].get(key) == other["report"].get(key), key
        assert line.get(key) == plain.get(key), key
    server.close()


def test_pages_of_others_are_refused(job, server):
    for origin in ("https://evil.org", "null"):
        with pytest.raises(ConnectionError, match=r"403 Forbidden[^$]*another origin"):
            WebSocket(server.websocket, Origin=origin)
        failed(server, "another origin")
    with pytest.raises(ConnectionError, match="localhost"):
        WebSocket(server.websocket, Host="evil.org", Origin="http://evil.org")
    failed(server, "another host")
    WebSocket(server.websocket, Origin="http://127.0.0.1:8000").stream.close()
    assert server.line(30)["reached"] == "door"
    named = job.serve("--plaintext", *SHOWN, "--origin", "https://shop.org,https://test.org:8443")
    for origin in ("https://shop.org", "https://test.org:8443"):
        WebSocket(named.websocket, Origin=origin).stream.close()
        assert named.line(30)["error"]["kind"] == "transport"
    with pytest.raises(ConnectionError, match="403"):
        WebSocket(named.websocket, Origin="http://127.0.0.1")
    failed(named, "another origin")
    named.close()


REQUESTS = {
    "no HTTP": (b"\x16\x03\x01\x02\x00hello\n\n", b"400", "none"),
    "a page is asked for": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"426", "a page"),
    "another method": (request("localhost").replace(b"GET", b"POST"), b"400", "none"),
    "another version": (request("localhost", Sec_WebSocket_Version="8"), b"426", "another"),
    "no key": (request("localhost", Sec_WebSocket_Key=None), b"426", "another"),
    "a header without end": (b"GET / HTTP/1.1\r\nHost: " + b"a" * 9000, b"431", "longer"),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_other_requests_are_answered(server, case):
    sent, status, words = REQUESTS[case]
    stream = connected(server.websocket)
    stream.sendall(sent)
    assert ended(stream).startswith(b"HTTP/1.1 " + status)
    stream.close()
    failed(server, words)


FRAMES = {
    "text": (frame(b"hello", 1), "a text"),
    "no mask": (b"\x82\x03abc", "without a mask"),
    "too long": (b"\x82\xff" + (1 << 40).to_bytes(8) + b"mask", "16777216"),
    "a long ping": (b"\x89\xfe\x01\x00mask", "125"),
    "no session": (frame(b"\xee" * 200), "expected"),
}


@pytest.mark.parametrize("case", FRAMES)
def test_other_frames_are_refused(server, case):
    sent, words = FRAMES[case]
    websocket = WebSocket(server.websocket)
    websocket.stream.sendall(sent)
    said = ended(websocket.stream)
    websocket.stream.close()
    assert case == "no session" or said.startswith(b"\x88"), said
    failed(server, words)


def test_a_request_that_trickles_in_has_the_time_of_the_opening(job):
    server = job.serve("--plaintext", "--connect-timeout", 1, *SHOWN)
    stream, began = connected(server.websocket), time.monotonic()
    with suppress(OSError):
        for byte in request(server.websocket):
            stream.sendall(bytes([byte]))
            time.sleep(0.05)
    assert time.monotonic() - began < 10
    stream.close()
    line = server.line(30)
    assert (line["error"]["kind"], line["reached"]) == ("transport", "door")
    assert job.served_by(server)
    server.close()


def test_a_browser_is_turned_away_in_frames(job):
    server = job.serve("--plaintext", "--ledger", job.model.with_name("used"), "--budget", "total=0", *SHOWN)
    bridge = Bridge(server.websocket)
    refused = ask(bridge.address, job.x, timeout_seconds=30, connect_seconds=30)
    assert refused["error"]["kind"] == "refused", refused
    assert server.line(30)["refused"] == "budget"
    server.close()


def test_a_port_for_browsers_speaks_tls_where_the_other_does(job):
    server = job.serve(*SHOWN, "--timeout", 5)
    with pytest.raises(ConnectionError):
        WebSocket(server.websocket)
    assert server.line(30)["end"] == "failed"
    websocket = WebSocket(server.websocket, encrypted=True, Origin="https://127.0.0.1")
    assert isinstance(websocket.stream, ssl.SSLSocket)
    websocket.stream.close()
    server.close()


def test_options_for_browsers_belong_together(tacit, job):
    with pytest.raises(MisuseError, match="--websocket"):
        Listening("127.0.0.1:0", origins=("https://a.org",))
    done = tacit("serve", job.model, "--listen", "127.0.0.1:0", *SHOWN, "--origin", "a.org/page")
    assert done.code != 0
    assert "no origin" in done.err
    done = tacit("serve", job.model, "--listen", "127.0.0.1:0", "--websocket", "0.0.0.0:0", "--plaintext")
    assert done.code != 0
    assert "loopback" in done.err
