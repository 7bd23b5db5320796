"""How many servers a model should have: by sessions that run and wait, and by stores that run dry. No Ray here."""

import math
from collections import deque
from dataclasses import dataclass

from tacit.fleet.config import Scaling


@dataclass(frozen=True)
class Load:
    """A model's servers at one moment."""

    ready: int
    """Servers that take sessions."""
    running: int = 0
    waiting: int = 0
    """Sessions that wait, at the servers and at the door."""
    allowed: int = 0
    """Sessions that the ready servers allow at the same time."""
    dry: int = 0
    """Servers that prepare runs ahead and have none left."""


class Scaler:
    """Decides for one model. More servers come soon, fewer only after a while without need of them."""

    def __init__(self, scaling: Scaling, least: int, most: int, sessions: int) -> None:
        """Between `least` and `most` servers, of which each allows at most so many sessions."""
        self.scaling, self.least, self.most, self.sessions = scaling, least, most, sessions
        self.fixed: int | None = None
        """A number that an operator has chosen; None where the load decides."""
        self.wanted = least
        self.more_since: float | None = None
        self.needs: deque[tuple[float, int]] = deque()

    def need(self, load: Load) -> int:
        """Servers for this load alone, whatever was before; within the bounds."""
        each = load.allowed / load.ready if load.ready and load.allowed else self.sessions
        need = math.ceil((load.running + load.waiting) / (each * self.scaling.load))
        if load.ready and load.dry / load.ready >= self.scaling.dry and load.dry:
            need = max(need, load.ready + 1)
        return min(max(need, self.least), self.most)

    def decide(self, load: Load, now: float) -> int:
        """The number of servers from now on; `now` is in seconds of a clock that never goes back."""
        if self.fixed is not None:
            self.more_since = None
            self.needs.clear()
            self.wanted = self.fixed
            return self.wanted
        need = self.need(load)
        self.needs.append((now, need))
        since = now - self.scaling.cool_down
        while len(self.needs) > 1 and self.needs[1][0] <= since:
            self.needs.popleft()
        self.wanted = min(max(self.wanted, self.least), self.most)
        if need > self.wanted:
            self.more_since = now if self.more_since is None else self.more_since
            if now - self.more_since >= self.scaling.after:
                self.wanted, self.more_since = need, None
            return self.wanted
        self.more_since = None
        if self.needs[0][0] <= since:
            self.wanted = min(self.wanted, max(most for _, most in self.needs))
        return self.wanted


class Backoff:
    """How long to wait before another server starts where the last ones failed."""

    def __init__(self, longest: float, lived: float = 10.0) -> None:
        """Pauses double up to `longest` seconds; a server that was ready for `lived` seconds has not failed at once."""
        self.longest, self.lived = longest, lived
        self.failures, self.until = 0, 0.0

    def failed(self, now: float, ready_for: float) -> None:
        """A server ended unasked, after it had been ready for so many seconds."""
        if ready_for >= self.lived:
            self.failures = 0
            return
        self.failures += 1
        self.until = now + min(self.longest, 0.5 * 2.0 ** min(self.failures - 1, 20))

    def waits(self, now: float) -> float:
        """Seconds until another server may start; 0 for now."""
        return max(0.0, self.until - now)
