"""The files that `tacit serve --page` shows: what is sent, to whom, and that sessions go on beside it."""

import gzip
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from encoders import write
from faults.parties import ask
from tacit.cli.serve import PAGE_ADDRESS, ServeOptions
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.reading import Reading
from tacit.data.text import read
from tacit.errors import MisuseError
from tacit.model import Model
from tacit.session import page
from tacit.session.models import Served
from tacit.session.server import Listening, Server

from service.bridge import WebSocket, connected

LONG = np.random.default_rng(3).bytes(20_000_000)
FILES = [
    ("/", "text/html; charset=utf-8", b"<!doctype html>", None),
    ("/main.js", "text/javascript; charset=utf-8", b"export {};" * 200, gzip.compress(b"export {};" * 200)),
    ("/long", "application/wasm", LONG, None),
]


@contextmanager
def showing(job, **how) -> Iterator[tuple[Server, list]]:
    """A server that shows these files, and what it tells of its clients."""
    options = {"plaintext": True, "websocket": "127.0.0.1:0", **how}
    server = Server(job.model, Listening("127.0.0.1:0", **options))
    server.core.show(FILES)
    told: list = []
    thread = threading.Thread(target=lambda: told.extend(server.sessions()))
    thread.start()
    try:
        yield server, told
    finally:
        server.stop()
        thread.join(30)


def asked(server: Server, path: str = "/", method: str = "GET", host: str | None = None, **headers: str):
    """Status, headers and body of an answer."""
    said = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    stream = connected(server.websocket, encrypted=server.pin is not None)
    with stream:
        stream.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host or server.websocket}\r\n{said}\r\n".encode())
        got = bytearray()
        while part := stream.recv(1 << 16):
            got += part
    head, _, body = bytes(got).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body


def until(happened) -> None:
    """Wait for something, and not for ever."""
    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("plaintext", [True, False], ids=["plaintext", "tls"])
def test_files_are_shown_beside_sessions(job, plaintext):
    with showing(job, plaintext=plaintext) as (server, told):
        status, headers, body = asked(server)
        assert (status, body) == (200, b"<!doctype html>")
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-embedder-policy"] == "require-corp"
        assert headers["x-content-type-options"] == "nosniff"
        assert "unsafe-inline" not in headers["content-security-policy"]
        assert asked(server, "/long")[2] == LONG
        packed = asked(server, "/main.js", Accept_Encoding="gzip, br")
        assert gzip.decompress(packed[2]) == FILES[1][2]
        assert asked(server, "/main.js", If_None_Match=packed[1]["etag"])[0] == 200
        again = asked(server, "/main.js", If_None_Match=packed[1]["etag"], Accept_Encoding="gzip")
        assert (again[0], again[2]) == (304, b"")
        assert asked(server, "/main.js", "HEAD")[2] == b""
        for path in ("/no", "/../model.tacit", "/%2e%2e/", f"/{job.model}", "//main.js"):
            assert asked(server, path)[0] == 404
        assert told == []
        trust = {"plaintext": True} if plaintext else {"plaintext": False, "pin": server.pin}
        assert job.right(ask(server.address, job.x, timeout_seconds=30, connect_seconds=30, **trust))
        until(lambda: told)
        WebSocket(server.websocket, encrypted=not plaintext).stream.close()
        until(lambda: len(told) > 1)
    assert [line["end"] for line in told] == ["finished", "failed"]


def test_other_requests_are_refused_and_told(job):
    with showing(job) as (server, told):
        assert asked(server, method="POST")[0] == 400
        assert asked(server, host="evil.org")[0] == 403
        assert asked(server, "/" + "a" * 9000)[0] == 431
        until(lambda: len(told) >= 3)
    assert [(line["end"], line["reached"]) for line in told] == [("failed", "door")] * 3


def test_slow_readers_and_spare_connections_hold_nobody_up(job):
    with showing(job, connect_seconds=1.0) as (server, told):
        slow = [connected(server.websocket) for _ in range(8)]
        for stream in slow:
            stream.sendall(f"GET /long HTTP/1.1\r\nHost: {server.websocket}\r\n\r\n".encode())
        spare = [connected(server.websocket) for _ in range(8)]
        assert asked(server)[0] == 200
        assert job.right(ask(server.address, job.x, timeout_seconds=30, connect_seconds=30))
        time.sleep(1.5)
        for stream in spare:
            assert stream.recv(1) == b""
            stream.close()
        for stream in slow[1:]:
            stream.close()
        got = 0
        while part := slow[0].recv(1 << 16):
            got += len(part)
        assert got > len(LONG)
        slow[0].close()
    assert [line["end"] for line in told] == ["finished"]


def test_once_counts_sessions_and_not_readers(job):
    with showing(job, once=True) as (server, told):
        assert asked(server)[0] == 200
        assert job.right(ask(server.address, job.x, timeout_seconds=30, connect_seconds=30))
    assert [line["end"] for line in told] == ["finished"]


def test_a_server_without_a_page_refuses_as_before(job):
    server = Server(job.model, Listening("127.0.0.1:0", plaintext=True, websocket="127.0.0.1:0"))
    thread = threading.Thread(target=lambda: list(server.sessions()))
    thread.start()
    try:
        assert asked(server)[0] == 426
    finally:
        server.stop()
        thread.join(30)


def test_tables_that_cannot_be_are_refused(job):
    with showing(job) as (server, _):
        for path, kind in (("x", "text/css"), ("/a b", "text/css"), ("/", "text/css\r\na: b")):
            with pytest.raises(MisuseError, match=r"no path|no media type"):
                server.core.show([(path, kind, b"", None)])
        assert asked(server)[0] == 200
    alone = Server(job.model, Listening("127.0.0.1:0", plaintext=True))
    with pytest.raises(MisuseError, match="--websocket"):
        alone.core.show(FILES)
    alone.stop()


def test_what_the_page_may_know_is_what_clients_learn(job):
    offering = {"name": "small", "graph_digest": "ab", "commitment": None, "card": None, "plan_digests": ["cd"]}
    ((path, kind, content, packed),) = page.facts([Served(job.model, {"reveal": "label"})], [offering], "output")
    assert (path, kind) == ("/model.json", "application/json")
    assert packed is None or gzip.decompress(packed) == content
    (known,) = json.loads(content)["models"]
    model = Model(job.model)
    assert known["input"]["shape"] == list(model.input_shape)
    assert (known["name"], known["reveal"], known["preprocessing"], known["text"]) == ("small", "label", None, None)
    assert str(job.model) not in content.decode()


def test_models_of_text_come_with_what_clients_need(tmp_path):
    compiled = tmp_path / "encoder.tacit"
    source = write(tmp_path / "encoder", pooling="mean_tokens")
    compile_model(source, compiled, options=Options(reading=Reading(16, public_embedding=True)))
    offering = {"name": "encoder", "graph_digest": "ab", "commitment": None, "card": None, "plan_digests": ["cd"]}
    (_, _, content, _), (path, kind, text, _) = page.facts([Served(compiled)], [offering], "output")
    (known,) = json.loads(content)["models"]
    assert known["text"] == {"file": "text/0.text", "sequence": 16, "pooling": "mean"}
    assert (path, kind) == ("/text/0.text", "application/octet-stream")
    shown = tmp_path / "shown.text"
    shown.write_bytes(text)
    assert read(shown) == read(compiled.with_suffix(".text"))


def test_files_of_a_folder_by_their_kinds(tmp_path):
    (tmp_path / "client" / "wasm").mkdir(parents=True)
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "notes.txt").write_text("not shown")
    with pytest.raises(MisuseError, match="make page"):
        page.files(tmp_path)
    (tmp_path / "client" / "wasm" / "tacit_web_bg.wasm").write_bytes(bytes(5000))
    found = {path: (kind, content, packed) for path, kind, content, packed in page.files(tmp_path)}
    assert sorted(found) == ["/", "/client/wasm/tacit_web_bg.wasm", "/index.html"]
    kind, content, packed = found["/client/wasm/tacit_web_bg.wasm"]
    assert (kind, gzip.decompress(packed)) == ("application/wasm", content)


def test_where_the_page_is_shown():
    assert ServeOptions(page=True, plaintext=True).listening().websocket == PAGE_ADDRESS
    assert ServeOptions(page=True, websocket="127.0.0.1:9").listening().websocket == "127.0.0.1:9"
    with pytest.raises(MisuseError, match="--listen"):
        ServeOptions().listening()
    with pytest.raises(MisuseError, match="--websocket"):
        Listening("127.0.0.1:0", page=True)
    fleet = {"fleet": "127.0.0.1:1", "fleet_secret": Path("secret")}
    with pytest.raises(MisuseError, match="by itself"):
        Listening("127.0.0.1:0", page=True, websocket="127.0.0.1:0", **fleet)
