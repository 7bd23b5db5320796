"""Processor sharing: tasks divide a capacity evenly, as threads divide cores and transfers divide a network card.

All tasks get the same part of the capacity: 1 each while there are no more of them than the capacity, else the
capacity over their number. Tasks that run at the same time slow each other besides, by caches and memory that they
share. So one clock (`virtual`) says how far every task has come, and the next to end is at the top of a heap.
"""

from heapq import heappop, heappush
from itertools import count
from typing import Any

from simpy import Environment, Event
from simpy.events import Timeout

NEAR = 1e-12
"""Relative difference of two ends that are the same but for rounding."""


def slowness(contention: float, tasks: float, capacity: float) -> float:
    """How many times its time alone a task takes of a core while so many `tasks` run, below 1 where it takes less.

    It is 1 for one task and `contention` while all cores are busy, and grows evenly between them.
    """
    if capacity <= 1 or tasks <= 1:
        return 1.0
    return 1 + (contention - 1) * (min(tasks, capacity) - 1) / (capacity - 1)


class Sharing:
    """A capacity in tasks that run at full speed: the cores of a machine, or the streams that fill a card."""

    def __init__(self, env: Environment, capacity: float, contention: float = 1.0) -> None:
        """An idle one; `capacity` is above 0, `contention` (above 0) that of `slowness`."""
        self.env = env
        self.capacity = capacity
        self.contention = contention
        self.virtual = self.spent = 0.0
        self.done = 0.0
        self.since: float = env.now
        self.tasks: list[tuple[float, int, Event, User | None]] = []
        self.numbers = count()
        self.alarm: Timeout | None = None
        self.planned = (-1, 0.0)

    def part(self) -> float:
        """The part of the capacity that each task has, at most 1."""
        tasks = len(self.tasks)
        return 1.0 if tasks <= self.capacity else self.capacity / tasks

    def rate(self) -> float:
        """The speed of each task, at most 1."""
        return self.part() / slowness(self.contention, len(self.tasks), self.capacity)

    def advance(self) -> None:
        """Bring the clocks of the tasks to the present."""
        now = self.env.now
        if self.tasks and now > self.since:
            part = (now - self.since) * self.part()
            self.virtual += part / slowness(self.contention, len(self.tasks), self.capacity)
            self.spent += part
            self.done += part * len(self.tasks)
        self.since = now

    def work(self, seconds: float, user: "User | None" = None) -> Event:
        """An event at the end of a task that takes `seconds` (0 or more) at full speed, on behalf of `user`."""
        self.advance()
        end = Event(self.env)
        heappush(self.tasks, (self.virtual + seconds, next(self.numbers), end, user))
        if user is not None:
            user.change(1)
        self.arm()
        return end

    def arm(self) -> None:
        """See to it that somebody looks when the next task ends."""
        if not self.tasks:
            self.alarm, self.planned, self.virtual, self.spent = None, (-1, 0.0), 0.0, 0.0
            return
        rate, (end, number, *_) = self.rate(), self.tasks[0]
        if self.planned != (number, rate):
            self.planned = (number, rate)
            self.alarm = Timeout(self.env, max(0.0, end - self.virtual) / rate)
            self.alarm.callbacks.append(self.ring)

    def ring(self, alarm: Any) -> None:
        """The next tasks end, unless the alarm was set for what has changed since."""
        if alarm is not self.alarm:
            return
        self.advance()
        self.virtual = max(self.virtual, self.tasks[0][0])
        limit = self.virtual * (1 + NEAR)
        while self.tasks and self.tasks[0][0] <= limit:
            _, _, end, user = heappop(self.tasks)
            if user is not None:
                user.change(-1)
            end.succeed()
        self.planned = (-1, 0.0)
        self.arm()

    def busy(self) -> float:
        """Capacity times seconds that tasks have had so far."""
        self.advance()
        return self.done


class User:
    """Whom tasks of a capacity belong to, such as a server process: how much of it they had."""

    def __init__(self, sharing: Sharing) -> None:
        """Somebody without tasks."""
        self.sharing = sharing
        self.tasks = 0
        self.had = 0.0
        self.mark = sharing.spent

    def change(self, by: int) -> None:
        """Take notice that a task begins or ends; the clock of the capacity is at the present."""
        self.settle()
        self.tasks += by

    def settle(self) -> None:
        """Count what the tasks had since the last change."""
        spent = self.sharing.spent
        self.had += self.tasks * (spent - self.mark)
        self.mark = spent

    def used(self) -> float:
        """Capacity times seconds that the tasks have had so far."""
        self.sharing.advance()
        self.settle()
        return self.had
