"""Who sends a session to which server: the door of a fleet, or chance where there is none.

The door gives a session to the server with the least (running + waiting) / allowed, among those that are not full, and
keeps the others in a queue of its own. It knows of its own tickets at once, and that a session has ended or how many a
server allows with the server's next heartbeat. One session may wait at a server beside those that are allowed, since
servers let more run only when somebody waits.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Any, Protocol

from simpy import Environment, Event
from simpy.events import Timeout

from tacit.fleet.simulation.gate import QUEUE, Server


@dataclass(frozen=True)
class DoorSettings:
    """A door: sessions in its `queue` at most, `heartbeat_seconds` between reports of a server (0: at once)."""

    queue: int = QUEUE
    heartbeat_seconds: float = 0.2
    ahead: int = 1


class Balance(Protocol):
    """A choice of servers."""

    def ask(self) -> Server | Event | None:
        """The server of a session that comes, an event with it as value, or None of a session that is turned away."""

    def refused(self, server: Server) -> None:
        """Take notice that the server's own queue was full."""


class Chance:
    """Each session goes to a server at random, as behind a balancer that knows nothing of them."""

    def __init__(self, servers: Sequence[Server], random: Random) -> None:
        self.servers = servers
        self.random = random

    def ask(self) -> Server:
        """Any server."""
        return self.servers[int(self.random.random() * len(self.servers))]

    def refused(self, server: Server) -> None:
        """Nobody remembers."""


class Turns:
    """Sessions go to the servers in turn."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self.next = 0

    def ask(self) -> Server:
        """The server after that of the last session, which is the first at the beginning."""
        server = self.servers[self.next]
        self.next = (self.next + 1) % len(self.servers)
        return server

    def refused(self, server: Server) -> None:
        """Nobody remembers."""


class Door:
    """The allocator of a fleet."""

    def __init__(self, env: Environment, servers: Sequence[Server], settings: DoorSettings, random: Random) -> None:
        """A door that knows that all servers are idle."""
        self.env = env
        self.servers = servers
        self.settings = settings
        self.random = random
        self.places = {id(server): place for place, server in enumerate(servers)}
        self.known = [0] * len(servers)
        self.allowed = [server.allowed for server in servers]
        self.ended = [0] * len(servers)
        self.pending = [False] * len(servers)
        self.versions = [0] * len(servers)
        self.phases = [random.random() * settings.heartbeat_seconds for _ in servers]
        self.free: list[tuple[float, float, int, int]] = []
        self.queue: deque[Event] = deque()
        for place, server in enumerate(servers):
            server.told = self.told
            self.offer(place)

    def offer(self, place: int) -> None:
        """Remember a server that has room, by how full it is and else at random."""
        self.versions[place] += 1
        known, allowed = self.known[place], self.allowed[place]
        if known < allowed + self.settings.ahead:
            heappush(self.free, (known / allowed, self.random.random(), place, self.versions[place]))

    def choose(self) -> Server | None:
        """A ticket for the server that is least full; None where all are."""
        while self.free:
            *_, place, version = heappop(self.free)
            if version == self.versions[place]:
                self.known[place] += 1
                self.offer(place)
                return self.servers[place]
        return None

    def ask(self) -> Server | Event | None:
        """A server, or a place in the queue, or neither."""
        server = None if self.queue else self.choose()
        if server is not None:
            return server
        if len(self.queue) >= self.settings.queue:
            return None
        turn = Event(self.env)
        self.queue.append(turn)
        return turn

    def refused(self, server: Server) -> None:
        """A ticket that came to nothing."""
        self.told(server)

    def told(self, server: Server) -> None:
        """A session of a server ended: the next heartbeat says so."""
        place = self.places[id(server)]
        self.ended[place] += 1
        every = self.settings.heartbeat_seconds
        if not every:
            self.hear(place)
        elif not self.pending[place]:
            self.pending[place] = True
            heartbeat = Timeout(self.env, every - (self.env.now - self.phases[place]) % every, place)
            heartbeat.callbacks.append(self.beat)

    def beat(self, heartbeat: Any) -> None:
        """The heartbeat of a server."""
        self.pending[heartbeat.value] = False
        self.hear(heartbeat.value)

    def hear(self, place: int) -> None:
        """Learn what has become of a server, and send it those who wait."""
        self.known[place] -= self.ended[place]
        self.ended[place] = 0
        self.allowed[place] = self.servers[place].allowed
        self.offer(place)
        while self.queue and (server := self.choose()) is not None:
            self.queue.popleft().succeed(server)
