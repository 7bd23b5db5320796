"""A server's gate: which sessions run and which wait, as `crates/service/src/gate.rs` and `pace.rs` decide it.

While processors are busy, one session more than there are cores runs. More begin only while processors have nothing to
do: then the number that may run doubles with each look at the processors, up to what the operator allows.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simpy import Environment, Event
from simpy.events import Timeout

from tacit.fleet.simulation.sharing import Sharing, User

LOOK_SECONDS = 0.1
"""Shortest time between two looks at the processors."""
ALL, LITTLE, IDLE = 0.9, 0.25, 0.5
"""Parts of all cores with which a server has all it can get, and below which its sessions wait for something else; and
idle cores in which one session more runs."""
SESSIONS_PER_CORE = 8
QUEUE = 256


@dataclass(frozen=True)
class Limits:
    """What a server allows: `sessions` at a time, `queue` that wait, and `spare` more than `cores` while busy.

    Without `paced` as many run as `sessions` says, whatever processors do.
    """

    cores: int
    sessions: int
    queue: int = QUEUE
    spare: int = 1
    paced: bool = True

    @property
    def least(self) -> int:
        """Sessions that may always run."""
        return max(1, min(self.cores + self.spare, self.sessions)) if self.paced else self.sessions


class Server:
    """Sessions that run on a machine, and a queue of those that come later."""

    def __init__(self, env: Environment, machine: Sharing, limits: Limits, alone: bool = True) -> None:
        """An idle server, `alone` on its machine or beside others."""
        self.env = env
        self.alone = alone
        self.limits = limits
        self.user = User(machine)
        self.running = 0
        self.allowed = limits.least
        self.queue: deque[Event] = deque()
        self.told: Callable[[Server], None] | None = None
        self.changed: Callable[[Server], None] | None = None
        self.peak = 0
        self.seen: tuple[float, float, float] = (env.now, 0.0, 0.0)
        self.moved = False
        self.timer: Timeout | None = None

    def enters(self) -> bool:
        """Whether a session that comes begins at once; it holds a slot then."""
        self.look()
        if self.queue or self.running >= self.allowed:
            return False
        self.begin()
        return True

    def begin(self) -> None:
        """Take a slot."""
        self.running += 1
        self.moved = True
        self.peak = max(self.peak, self.running)

    def wait(self) -> Event | None:
        """The event of a slot for a session that waits; None where the queue is full."""
        if len(self.queue) >= self.limits.queue:
            return None
        turn = Event(self.env)
        self.queue.append(turn)
        self.watch()
        return turn

    def leave(self) -> None:
        """A session ends."""
        self.running -= 1
        self.moved = True
        self.look()
        self.admit()
        if self.told is not None:
            self.told(self)

    def admit(self) -> None:
        """Let those in who have room now, in the order in which they came."""
        while self.queue and self.running < self.allowed:
            self.begin()
            self.queue.popleft().succeed()

    def look(self) -> None:
        """Look at the processors again, unless that was just done."""
        now = self.env.now
        seconds = now - self.seen[0]
        if not self.limits.paced or seconds < LOOK_SECONDS:
            return
        machine = self.user.sharing
        own, busy = self.user.used(), machine.busy()
        used = (own - self.seen[1]) / seconds
        idle = machine.capacity - (busy - self.seen[2]) / seconds
        self.seen = (now, own, busy)
        self.decide(used, idle)

    def decide(self, used: float, idle: float) -> None:
        """Set how many may run, by the cores that this server used and those that nobody did."""
        cores, least = self.limits.cores, self.limits.least
        (peak, self.peak), before = (self.peak, self.running), self.allowed
        if not (used < ALL * cores and (idle >= IDLE or used < LITTLE * cores)):
            self.allowed = max(self.allowed - 1, least)
        elif self.queue:
            self.allowed = min(2 * self.allowed, self.limits.sessions)
        else:
            self.allowed = min(max(peak + 1, least), max(self.allowed, least))
        if self.allowed != before and self.changed is not None:
            self.changed(self)

    def watch(self) -> None:
        """While sessions wait, look again when that is due."""
        if self.timer is None and self.limits.paced:
            due = max(0.0, self.seen[0] + LOOK_SECONDS - self.env.now)
            self.timer = Timeout(self.env, due + 1e-9)
            self.timer.callbacks.append(self.wake)

    def wake(self, _: Any) -> None:
        """Look, let those in who have room, and look again while that can change anything."""
        self.timer = None
        if not self.queue:
            return
        before, moved, self.moved = self.allowed, self.moved, False
        self.look()
        self.admit()
        if self.queue and (moved or self.moved or self.allowed != before or not self.alone):
            self.watch()

    def stirs(self) -> None:
        """A session that runs begins or ends to compute: processors may become idle."""
        self.moved = True
        if self.queue:
            self.watch()
