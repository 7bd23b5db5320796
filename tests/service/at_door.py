"""What a browser says to the door of a fleet, and a bridge by which a client of TCP follows it as a browser does."""

import struct
from dataclasses import dataclass

from service.bridge import BINARY, Bridge, WebSocket, frame

ADMISSION, REQUEST, TICKET, SHOWN = 8, 9, 10, 11
WAITING = 2
PROTOCOL = 27


def message(tag: int, body: bytes, position: int = 0) -> bytes:
    """A message with its header."""
    return struct.pack("<BI", tag, len(body) | position << 28) + body


def request(token: str = "0" * 64, values: int = 72, protocol: int = PROTOCOL) -> bytes:
    """A request to a door, for a session of so many numbers of the only model."""
    body = struct.pack("<I", protocol) + bytes(32) + bytes.fromhex(token) + bytes(32) + struct.pack("<BQ", 0, values)
    return message(REQUEST, body)


@dataclass(frozen=True)
class Answer:
    """What a door said at last, and the places in the queue that it told before."""

    tag: int
    body: bytes
    places: tuple[int, ...] = ()

    @property
    def why(self) -> str:
        """The words of a refusal."""
        assert self.tag == ADMISSION, self
        return self.body[9:].decode()

    @property
    def ticket(self) -> tuple[str, bytes]:
        """The address of a server, and what is shown there."""
        assert self.tag == TICKET, self
        (length,) = struct.unpack_from("<H", self.body)
        return self.body[2 : 2 + length].decode(), self.body[2 + length :]


def heard(websocket: WebSocket) -> Answer:
    """The answer of a door; raises `ConnectionError` where there is none."""
    places: list[int] = []
    while True:
        kind, payload = websocket.receive()
        if kind != BINARY or not payload:
            raise ConnectionError(f"frame {kind}: {payload!r}")
        tag, word = struct.unpack_from("<BI", payload)
        body = payload[5:]
        assert len(body) == word & 0xFFFFFFF
        if tag != ADMISSION or body[0] != WAITING:
            return Answer(tag, body, tuple(places))
        places.append(int.from_bytes(body[5:9], "little"))


def asked(door: str, encrypted: bool = False, said: bytes = b"", **headers: str) -> Answer:
    """What a door answers to a browser that says this, or asks for a ticket."""
    websocket = WebSocket(door, encrypted, **headers)
    try:
        websocket.stream.sendall(frame(said or request()))
        return heard(websocket)
    finally:
        websocket.stream.close()


class Following(Bridge):
    """Carries the bytes of one client of TCP to the server that a door names."""

    values = 72
    """Numbers of the session."""
    answer: Answer

    def connect(self) -> WebSocket:
        """Ask the door, go where it says, and show the ticket there."""
        self.answer = asked(self.server, self.encrypted, request(values=self.values))
        server, ticket = self.answer.ticket
        websocket = WebSocket(server, self.encrypted)
        websocket.stream.sendall(frame(message(SHOWN, ticket)))
        return websocket
