"""A fleet under a load: sessions come, wait, compute, send and leave."""

from collections.abc import Generator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np
from simpy import Environment, Event
from simpy.events import Timeout

from tacit.errors import MisuseError
from tacit.fleet.simulation.arrivals import Closed, Load
from tacit.fleet.simulation.costs import LOOPBACK, Costs
from tacit.fleet.simulation.door import Balance, Chance, Door, DoorSettings, Turns
from tacit.fleet.simulation.gate import SESSIONS_PER_CORE, Limits, Server
from tacit.fleet.simulation.outcome import Outcome
from tacit.fleet.simulation.sharing import Sharing, slowness
from tacit.session.network import Network

CONNECT_TRIPS = 2
"""Round trips of TCP and of TLS before the first byte of a session, which costs that were measured on loopback lack."""
ASK_TRIPS = CONNECT_TRIPS + 1
"""Round trips at the door: a connection of its own, and a question."""
MOST_SERVERS = 10_000
SLICES = 6
Steps = Generator[Event, Any, None]


@dataclass(frozen=True)
class Fleet:
    """Machines of `cores` each, one server on each, and how sessions get there.

    With `clients_share_cores` all servers and all clients are on one machine with `cores` cores. `card` is the speed
    of a server's network card in bits per second, which its sessions share. `door_seconds` is what a door adds beside
    round trips. `wake_seconds` is how long a party that a message wakes waits on average, while all cores are busy,
    until the scheduler takes a core from another.
    """

    servers: int = 1
    cores: int = 2
    sessions: int | None = None
    queue: int = 256
    paced: bool = True
    spare: int = 1
    balance: str = "door"
    door: DoorSettings = field(default_factory=DoorSettings)
    door_seconds: float = 0.003
    card: float = 10e9
    link: Network = LOOPBACK
    clients_share_cores: bool = False
    wake_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.servers <= MOST_SERVERS:
            raise MisuseError(f"a fleet has 1 to {MOST_SERVERS:,} servers, not {self.servers:,}")
        if self.balance not in ("door", "random", "turns"):
            raise MisuseError(f"`{self.balance}` is no balance: door, random or turns")

    @property
    def limits(self) -> Limits:
        """What each server allows."""
        most = self.sessions or SESSIONS_PER_CORE * self.cores
        return Limits(self.cores, most, self.queue, self.spare, self.paced)


class Slice(NamedTuple):
    """A piece of a session, in seconds: `wire` on the link, `away` at the client, `sent` a transfer at full speed.

    A transfer that is `beside` passes while the parties compute. What is on the link is the same for all sessions.
    `wakes` says how often a message wakes a party on the machines that are simulated.
    """

    wire: float
    away: float
    sent: float
    beside: float
    server: float
    client: float
    both: float
    wakes: float

    @property
    def computed(self) -> float:
        """Seconds of an idle machine in which somebody computes."""
        return self.server + self.client + self.both


def slices(costs: Costs, fleet: Fleet, number: int = SLICES) -> list[Slice]:
    """The phases of a session cut into about `number` pieces, at least one for each that takes any time."""
    link, whole, cut = fleet.link, costs.seconds(fleet.link), []
    for phase in costs.phases:
        pieces = max(1, round(number * phase.seconds(link) / whole)) if whole else 0
        sent = 8 * phase.bytes / link.bits_per_second
        beside, away = min(phase.hidden, sent), phase.idle
        wire, sent = max(0.0, phase.wire(link) - sent - (phase.hidden - beside)), sent - beside
        if fleet.card >= 1e3 * link.bits_per_second:  # no card is ever full
            wire, sent, beside = wire + sent, 0.0, 0.0
        # A client on a machine of its own computes while its server does, or while nobody waits for it.
        server, client, both = phase.server - phase.both, phase.client - phase.both, phase.both
        wakes = phase.rounds if fleet.clients_share_cores else phase.rounds / 2
        both /= slowness(costs.contention, 2, fleet.cores)  # both parties already slowed each other there
        if not fleet.clients_share_cores:
            away, server, client, both = away + client, phase.server, 0.0, 0.0
        parts = (wire, away, sent, beside, server, client, both, wakes)
        if pieces and sum(parts[:-1]) > 0:
            cut += [Slice(*(part / pieces for part in parts))] * pieces
    return cut


class Simulation:
    """The state of a run; `run` makes it."""

    def __init__(self, costs: Costs, fleet: Fleet, load: Load, seed: int, warm: float) -> None:
        """Idle servers. Sessions that begin in the first `warm` seconds are not counted."""
        self.env = Environment()
        self.costs, self.fleet, self.load, self.warm = costs, fleet, load, warm
        self.random, self.numbers = Random(seed), np.random.default_rng(seed)
        self.slices = slices(costs, fleet)
        count = 1 if fleet.clients_share_cores else fleet.servers
        machines = [Sharing(self.env, fleet.cores, costs.contention) for _ in range(count)]
        alone = not fleet.clients_share_cores
        self.machines = machines
        self.servers = [
            Server(self.env, machines[at % len(machines)], fleet.limits, alone) for at in range(fleet.servers)
        ]
        streams = max(1.0, fleet.card / fleet.link.bits_per_second) if fleet.link.bits_per_second < float("inf") else 1
        self.cards = {id(server): Sharing(self.env, streams) for server in self.servers}
        self.balance = self.balanced()
        trip = fleet.link.round_trip_seconds
        asks = fleet.balance == "door"
        self.ask_seconds = ASK_TRIPS * trip + fleet.door_seconds if asks else 0.0
        self.dial_seconds = CONNECT_TRIPS * trip
        self.began = self.finished = self.refused = self.inside = self.most_inside = 0
        self.records: list[tuple[float, float, float]] = []
        self.busy = (0.0, 0.0, 0.0, 0.0)

    def balanced(self) -> Balance:
        """How sessions find servers."""
        if self.fleet.balance == "random":
            return Chance(self.servers, self.random)
        if self.fleet.balance == "turns":
            return Turns(self.servers)
        return Door(self.env, self.servers, self.fleet.door, self.random)

    def session(self, factor: float) -> Steps:
        """A session from the moment a client dials until it has its result."""
        env, begun = self.env, self.env.now
        self.began += 1
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        if self.ask_seconds:
            yield Timeout(env, self.ask_seconds)
        asked = env.now
        found: Any = self.balance.ask()
        if isinstance(found, Event):
            found = yield found
        waited = env.now - asked
        if found is None:
            self.turned_away()
            return
        if self.dial_seconds:
            yield Timeout(env, self.dial_seconds)
        arrived = env.now
        if not found.enters():
            turn = found.wait()
            if turn is None:
                self.balance.refused(found)
                self.turned_away()
                return
            yield turn
            waited += env.now - arrived
        yield from self.computes(found, factor)
        found.leave()
        self.inside -= 1
        self.finished += 1
        if begun >= self.warm:
            self.records.append((begun, waited, env.now - begun))

    def turned_away(self) -> None:
        """A session that found all queues full."""
        self.inside -= 1
        self.refused += 1

    def computes(self, server: Server, factor: float) -> Steps:
        """A session that runs."""
        env, machine, user, card = self.env, server.user.sharing, server.user, self.cards[id(server)]
        for piece in self.slices:
            moving = card.work(piece.beside) if piece.beside else None
            if piece.wire or piece.away:
                yield Timeout(env, piece.wire + piece.away * factor)
            if piece.sent:
                yield card.work(piece.sent)
            if piece.client:
                yield from self.scheduled(machine, 1, piece.wakes * piece.client / piece.computed)
                yield machine.work(piece.client * factor)
            if piece.server:
                yield from self.scheduled(machine, 1, piece.wakes * piece.server / piece.computed)
                yield machine.work(piece.server * factor, user)
            if piece.both:
                yield from self.scheduled(machine, 2, piece.wakes * piece.both / piece.computed)
                machine.work(piece.both * factor)
                yield machine.work(piece.both * factor, user)
            if moving is not None:
                yield moving
            if server.queue:
                server.stirs()

    def scheduled(self, machine: Sharing, cores: int, wakes: float) -> Steps:
        """Wait as often as `wakes` says until the scheduler gives so many `cores`; there is no wait for idle ones."""
        seconds = wakes * self.fleet.wake_seconds
        if seconds and len(machine.tasks) + cores > machine.capacity:
            yield Timeout(self.env, seconds * (0.5 + self.random.random()))

    def factor(self) -> float:
        """How much longer than on average a session takes: as one of those that were measured."""
        factors = self.costs.factors
        return factors[int(self.random.random() * len(factors))]

    def comes(self) -> Steps:
        """Sessions of an open load."""
        env = self.env
        if isinstance(self.load, Closed):
            raise TypeError("a closed load has clients")
        for time in self.load.times(self.numbers).tolist():
            if time > env.now:
                yield Timeout(env, time - env.now)
            env.process(self.session(self.factor()))

    def client(self, load: Closed) -> Steps:
        """A client of a closed load, who comes back until the time is over."""
        env, think = self.env, load.think_seconds
        while True:
            if think:
                yield Timeout(env, self.random.expovariate(1 / think))
            if env.now >= load.seconds:
                return
            before = self.refused
            yield from self.session(self.factor())
            if self.refused > before and not think:
                yield Timeout(env, 1.0)

    def used(self) -> tuple[float, float]:
        """Core seconds and card seconds so far, of all machines."""
        return (
            sum(machine.busy() for machine in self.machines),
            sum(card.busy() / card.capacity for card in self.cards.values()),
        )

    def observed(self) -> Steps:
        """Note what was used between the end of the warm-up and that of the load."""
        yield Timeout(self.env, self.warm)
        first = self.used()
        yield Timeout(self.env, self.load.seconds - self.warm)
        last = self.used()
        self.busy = (*first, *last)

    def run(self) -> Outcome:
        """Run until the last session has ended."""
        if isinstance(self.load, Closed):
            for _ in range(self.load.clients):
                self.env.process(self.client(self.load))
        else:
            self.env.process(self.comes())
        self.env.process(self.observed())
        self.env.run()
        seconds = self.load.seconds - self.warm
        cores, cards = (self.busy[2] - self.busy[0]) / seconds, (self.busy[3] - self.busy[1]) / seconds
        return Outcome(
            begun=self.began,
            finished=self.finished,
            refused=self.refused,
            records=np.asarray(self.records, np.float64).reshape(-1, 3),
            seconds=seconds,
            cores=cores / (len(self.machines) * self.fleet.cores),
            cards=cards / len(self.cards),
            most_inside=self.most_inside,
            core_seconds=sum(machine.busy() for machine in self.machines),
        )


def run(costs: Costs, fleet: Fleet, load: Load, seed: int = 0, warm: float = 0.0) -> Outcome:
    """What becomes of a load; the same seed gives the same outcome. Raises `MisuseError` for a warm-up that is no part.

    `warm` is in seconds, 0 or more and below those of the load.
    """
    if not 0 <= warm < load.seconds:
        raise MisuseError(f"the warm-up takes less than all {load.seconds:g} s, not {warm:g} s")
    return Simulation(costs, fleet, load, seed, warm).run()
