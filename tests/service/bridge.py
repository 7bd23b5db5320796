"""WebSockets as a browser opens them: a client of one, and a bridge by which a client of TCP talks through it."""

import select
import socket
import ssl
import threading
from contextlib import suppress

HEADERS = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
BINARY, CLOSE = 2, 8
PIECE = 50_000
SECONDS = 30


class Encrypted(ssl.SSLSocket):
    """A TLS connection that one thread reads while another writes.

    OpenSSL lets only one thread at a time into a connection, and Python 3.11 does not see to that: a bridge whose
    threads met there lost its session. Both wait outside the lock.
    """

    lock: threading.Lock

    def recv(self, count: int = 1024, flags: int = 0) -> bytes:
        """What has come, as soon as there is something."""
        return self.taking_turns(lambda: super(Encrypted, self).recv(count, flags))

    def sendall(self, data: bytes, flags: int = 0) -> None:
        """Send all of it."""
        rest = memoryview(data)
        while rest:
            part = rest
            rest = rest[self.taking_turns(lambda part=part: super(Encrypted, self).send(part, flags)) :]

    def taking_turns(self, step):
        """The result of a step that does not wait, once it can be done."""
        while True:
            try:
                with self.lock:
                    return step()
            except ssl.SSLWantReadError:
                ready = select.select([self], [], [], SECONDS)
            except ssl.SSLWantWriteError:
                ready = select.select([], [self], [], SECONDS)
            if not any(ready):
                raise TimeoutError(f"nothing moved for {SECONDS} s")


def connected(address: str, encrypted: bool = False) -> socket.socket:
    """A connection to a port for WebSockets."""
    host, port = address.rsplit(":", 1)
    stream = socket.create_connection((host, int(port)), timeout=SECONDS)
    if not encrypted:
        return stream
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.sslsocket_class = Encrypted
    secure = context.wrap_socket(stream)
    assert isinstance(secure, Encrypted)
    secure.lock = threading.Lock()
    secure.setblocking(False)
    return secure


def request(address: str, **headers: str | None) -> bytes:
    """A request to open a WebSocket; of a header that is None there is none."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    all_of_them = {"Host": address, **HEADERS, **named}
    lines = [f"{name}: {value}" for name, value in all_of_them.items() if value is not None]
    return "\r\n".join(["GET / HTTP/1.1", *lines, "", ""]).encode()


def frame(payload: bytes, kind: int = BINARY, mask: bytes = b"\x11\x22\x33\x44") -> bytes:
    """A frame of a client."""
    length = len(payload)
    if length < 126:
        size = bytes([0x80 | length])
    else:
        size = bytes([0x80 | 126]) + length.to_bytes(2) if length < 65536 else bytes([0x80 | 127]) + length.to_bytes(8)
    pattern = mask * (length // 4 + 1)
    masked = (int.from_bytes(payload) ^ int.from_bytes(pattern[:length])).to_bytes(length)
    return bytes([0x80 | kind]) + size + mask + masked


class WebSocket:
    """An open WebSocket."""

    def __init__(self, address: str, encrypted: bool = False, **headers: str | None) -> None:
        """Open one; raises `ConnectionError` with the response where the server does not take it."""
        self.stream = connected(address, encrypted)
        try:
            self.open(address, **headers)
        except OSError:
            self.stream.close()
            raise

    def open(self, address: str, **headers: str | None) -> None:
        """Ask for a WebSocket, and read the response."""
        self.stream.sendall(request(address, **headers))
        response = b""
        while not response.endswith(b"\r\n\r\n"):
            part = self.stream.recv(1)
            if not part:
                raise ConnectionError(response.decode())
            response += part
        if not response.startswith(b"HTTP/1.1 101 "):
            raise ConnectionError((response + self.stream.recv(4096)).decode())

    def exactly(self, count: int) -> bytes:
        """So many bytes."""
        got = b""
        while len(got) < count:
            part = self.stream.recv(count - len(got))
            if not part:
                raise ConnectionError("the server closed the connection")
            got += part
        return got

    def receive(self) -> tuple[int, bytes]:
        """The next frame: its kind and its payload."""
        first, second = self.exactly(2)
        length = second & 127
        assert first & 0x80
        assert not second & 0x80
        if length > 125:
            length = int.from_bytes(self.exactly(2 if length == 126 else 8))
        return first & 15, self.exactly(length)


class Bridge:
    """Takes one client of TCP at `address` and carries its bytes in the frames of a WebSocket."""

    def __init__(self, server: str, encrypted: bool = False) -> None:
        """Listen for a client of the server whose port for WebSockets is `server`."""
        self.server, self.encrypted = server, encrypted
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.kinds: list[int] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        """Carry bytes both ways until the server says that it is done."""
        with self.listener:
            client, _ = self.listener.accept()
        websocket = self.connect()
        thread = threading.Thread(target=self.send, args=(client, websocket), daemon=True)
        thread.start()
        with suppress(OSError):
            while True:
                kind, payload = websocket.receive()
                self.kinds.append(kind)
                if kind != BINARY:
                    break
                client.sendall(payload)
        thread.join(10)
        client.close()
        websocket.stream.close()

    def connect(self) -> WebSocket:
        """The WebSocket that carries the session."""
        return WebSocket(self.server, self.encrypted)

    def send(self, client: socket.socket, websocket: WebSocket) -> None:
        """Carry what the client says, and then a close."""
        with suppress(OSError):
            while part := client.recv(PIECE):
                websocket.stream.sendall(frame(part))
            websocket.stream.sendall(frame((1000).to_bytes(2), CLOSE))
