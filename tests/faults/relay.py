"""A relay between a real client and a real server that knows the frame format and spoils one frame."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

HEADER = 5
LENGTH_BITS = 28
DOOR_REQUEST = 0x09
TO_SERVER, TO_CLIENT = "client", "server"  # named after the sender


@dataclass(frozen=True)
class Frame:
    """One message as it crosses the wire; `index` counts per sender."""

    sender: str
    index: int
    tag: int
    body: bytes

    @property
    def bytes(self) -> bytes:
        return framed(self.tag, self.body, self.index)


def framed(tag: int, body: bytes, index: int) -> bytes:
    """Frame number `index` of its direction: tag, length below 2^28 with the number above it, body."""
    return struct.pack("<BI", tag, len(body) | index % 16 << LENGTH_BITS) + body


def parsed(header: bytes) -> tuple[int, int]:
    """Tag and length of a header."""
    tag, word = struct.unpack("<BI", header)
    return tag, word & ((1 << LENGTH_BITS) - 1)


class Stall(Exception):  # noqa: N818 (an order to the relay)
    """Forward nothing more in this direction; keep the connection open."""


class Cut(Exception):  # noqa: N818
    """Close both connections."""


def forward(frame: Frame) -> bytes:
    return frame.bytes


@dataclass
class Relay:
    """Listens on loopback, serves one client, and hands each frame to `fault`.

    `fault` returns the bytes to send in its place; `raw` relays bytes without looking for frames.
    """

    server: str
    fault: Callable[[Frame], bytes] = forward
    raw: Callable[[str, int, bytes], bytes] | None = None
    frames: list[Frame] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> "Relay":
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.sockets: list[socket.socket] = []
        self.threads = [threading.Thread(target=self.serve, daemon=True)]
        self.threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.close()
        for thread in self.threads:
            thread.join(10)
        for end in self.sockets:
            end.close()

    def close(self) -> None:
        for end in self.sockets:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        try:
            client = self.listener.accept()[0]
            host, port = self.server.rsplit(":", 1)
            server = socket.create_connection((host, int(port)))
        except OSError:
            return
        self.sockets += [client, server]
        for name, source, sink in ((TO_SERVER, client, server), (TO_CLIENT, server, client)):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pump = threading.Thread(target=self.pump, args=(name, source, sink), daemon=True)
            self.threads.append(pump)
            pump.start()

    def pump(self, sender: str, source: socket.socket, sink: socket.socket) -> None:
        try:
            if self.raw is not None:
                self.pump_bytes(sender, source, sink)
            else:
                self.pump_frames(sender, source, sink)
            sink.shutdown(socket.SHUT_WR)
        except Stall:
            return
        except (OSError, Cut, EOFError):
            self.close()

    def pump_bytes(self, sender: str, source: socket.socket, sink: socket.socket) -> None:
        assert self.raw is not None
        seen = 0
        while data := source.recv(65536):
            sink.sendall(self.raw(sender, seen, data))
            seen += len(data)

    def pump_frames(self, sender: str, source: socket.socket, sink: socket.socket) -> None:
        index = 0
        while (header := exactly(source, HEADER)) is not None:
            tag, length = parsed(header)
            body = exactly(source, length)
            if body is None:
                raise EOFError
            if tag == DOOR_REQUEST and index == 0:  # it stands before the first frame, and no server answers it
                sink.sendall(header + body)
                continue
            frame = Frame(sender, index, tag, body)
            with self.lock:
                self.frames.append(frame)
            index += 1
            sink.sendall(self.fault(frame))


def exactly(source: socket.socket, count: int) -> bytes | None:
    """`count` bytes, or None when the connection ends before the first."""
    parts, rest = [], count
    while rest:
        part = source.recv(min(rest, 1 << 20))
        if not part:
            if rest == count:
                return None
            raise EOFError
        parts.append(part)
        rest -= len(part)
    return b"".join(parts)
