"""How many servers a load needs, so that 99 of 100 sessions take no longer than a target."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil

from tacit.errors import MisuseError
from tacit.fleet.simulation.arrivals import HOUR, Closed, Load, Open
from tacit.fleet.simulation.costs import Costs
from tacit.fleet.simulation.model import MOST_SERVERS, Fleet, run
from tacit.fleet.simulation.outcome import Outcome

WARM = 0.05
"""Part of a duration that is not counted, when the fleet is still empty."""
TRIAL_SESSIONS = 20_000
TRIAL_LENGTHS = 50
"""Shortest trial, in durations of a session."""


@dataclass(frozen=True)
class Target:
    """At most so many `seconds` for 99 of 100 sessions, and nobody turned away."""

    seconds: float

    def met(self, outcome: Outcome) -> bool:
        """Whether a simulation met it."""
        p99 = outcome.fields()["session"]["p99"]
        return outcome.refused == 0 and p99 is not None and p99 <= self.seconds


def least(costs: Costs, fleet: Fleet, load: Load) -> int:
    """Servers whose processors and cards just do the work of the busiest part: no fewer can be enough."""
    if isinstance(load, Closed):
        return 1
    work = costs.server_seconds + (costs.client_seconds if fleet.clients_share_cores else 0.0)
    sent = 8 * costs.bytes / fleet.card
    return max(1, ceil(load.peak_rate * max(work / fleet.cores, sent)))


def trial(costs: Costs, fleet: Fleet, load: Load) -> Load:
    """The busiest part of a load, as long as a trial needs."""
    if not isinstance(load, Open):
        return load
    seconds = max(TRIAL_SESSIONS / load.peak_rate, TRIAL_LENGTHS * costs.seconds(fleet.link))
    seconds = min(seconds, max(HOUR, TRIAL_LENGTHS * costs.seconds(fleet.link)))
    return Open(load.peak_rate * seconds, seconds)


def servers(costs: Costs, fleet: Fleet, load: Load, target: Target, seed: int = 0) -> int:
    """The smallest number of servers that meets a target in trials of the busiest part of a load.

    Raises `MisuseError` for a target that is shorter than a session on idle servers, and where the largest fleet is
    too small.
    """
    fastest = unhurried(costs, fleet, seed)
    if fastest > target.seconds:
        raise MisuseError(
            f"99 of 100 sessions take up to {fastest:.3g} s on idle servers alone; the target is {target.seconds:g} s"
        )
    short = trial(costs, fleet, load)

    def meets(count: int) -> bool:
        if count > MOST_SERVERS:
            return False
        return target.met(run(costs, replace(fleet, servers=count), short, seed, WARM * short.seconds))

    found = first(meets, least(costs, fleet, load), MOST_SERVERS)
    if found is None:
        raise MisuseError(f"{MOST_SERVERS:,} servers do not meet a 99th percentile of {target.seconds:g} s")
    return found


def unhurried(costs: Costs, fleet: Fleet, seed: int) -> float:
    """The 99th percentile of sessions that hardly ever meet another."""
    sessions = 500
    rare = Open(sessions, 1e3 * sessions * costs.seconds(fleet.link))
    found: float = run(costs, replace(fleet, servers=1), rare, seed).fields()["session"]["p99"]
    return found


def first(meets: Callable[[int], bool], low: int, most: int) -> int | None:
    """The smallest number from `low` to `most` that meets something which all larger ones meet; None of none.

    Steps grow from `low`, where the answer mostly is near, and the last step is halved.
    """
    step, missed, now = 1, low - 1, low
    while not meets(now):
        if now >= most:
            return None
        missed, now, step = now, min(now + step, most), 2 * step
    while now - missed > 1:
        middle = (missed + now) // 2
        if meets(middle):
            now = middle
        else:
            missed = middle
    return now
