"""Who sends a session to which server: the door of a fleet, or chance where there is none.

As `crates/service/src/fleet/roster.rs` decides: the door gives a session to the server that is least full, of those
that have room, and keeps the others in a queue of its own. A server has room for one session more than it allows now,
as far as its limit goes, since it lets more run only when somebody waits. The door knows of its own tickets and of
sessions that end at once, and how many a server allows with its next heartbeat.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Protocol

from simpy import Environment, Event
from simpy.events import Timeout

from tacit.fleet.simulation.gate import QUEUE, Server

FEW = 64
"""Entries of which it does not matter that they are out of date."""


@dataclass(frozen=True)
class DoorSettings:
    """A door: at most so many in its `queue`, `heartbeat_seconds` between reports of a server (0: at once).

    Servers have room for sessions `ahead` of those that they allow. How full one is says its sessions over its room, or
    with `by_limit` over the most that it may ever have, which does not send more to those that allow more just now.
    """

    queue: int = QUEUE
    heartbeat_seconds: float = 0.2
    ahead: int = 1
    by_limit: bool = False


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
        self.places = {id(server): place for place, server in enumerate(servers)}
        self.known = [0] * len(servers)
        self.given = [0] * len(servers)
        self.room = [self.room_of(server) for server in servers]
        self.pending = [False] * len(servers)
        self.versions = [0] * len(servers)
        self.phases = [random.random() * settings.heartbeat_seconds for _ in servers]
        self.free: list[tuple[float, int, int, int]] = []
        self.queue: deque[Event] = deque()
        for place, server in enumerate(servers):
            server.told, server.changed = self.told, self.changed
            self.offer(place)

    def room_of(self, server: Server) -> int:
        """Sessions that a server may have, those that wait there included."""
        return max(1, min(server.allowed + self.settings.ahead, server.limits.sessions))

    def offer(self, place: int) -> None:
        """Remember a server that has room, by how full it is, and then by how many sessions it had."""
        self.versions[place] += 1
        known, room = self.known[place], self.room[place]
        if len(self.free) > 4 * len(self.servers) + FEW:
            self.free = [entry for entry in self.free if entry[3] == self.versions[entry[2]]]
            heapify(self.free)
        if known < room:
            most = self.servers[place].limits.sessions if self.settings.by_limit else room
            heappush(self.free, (known / most, self.given[place], place, self.versions[place]))

    def choose(self) -> Server | None:
        """A ticket for the server that is least full; None where all are."""
        while self.free:
            *_, place, version = heappop(self.free)
            if version == self.versions[place]:
                self.known[place] += 1
                self.given[place] += 1
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
        """A session of a server ended, which it says at once."""
        place = self.places[id(server)]
        self.known[place] -= 1
        self.offer(place)
        self.serve()

    def changed(self, server: Server) -> None:
        """A server allows more or fewer sessions: its next heartbeat says so."""
        place, every = self.places[id(server)], self.settings.heartbeat_seconds
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
        """Learn how many sessions a server allows."""
        self.room[place] = self.room_of(self.servers[place])
        self.offer(place)
        self.serve()

    def serve(self) -> None:
        """Send those who wait to servers with room."""
        while self.queue and (server := self.choose()) is not None:
            self.queue.popleft().succeed(server)
