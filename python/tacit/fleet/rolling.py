"""Which servers start and which drain, so that a model has as many as wanted, all of its current generation.

A replaced model rolls: new servers become ready before old ones drain, so that as many as wanted are ready all the
time. The same rule scales up and down and fills gaps. No Ray here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

STARTING, READY, DRAINING, GONE = "starting", "ready", "draining", "gone"


@dataclass(frozen=True)
class View:
    """A server as the rule sees it."""

    id: str
    generation: str
    state: str
    busy: int = 0
    """Sessions that run and wait there."""


@dataclass(frozen=True)
class Actions:
    """What to do now."""

    start: int = 0
    """Servers of the current generation."""
    drain: tuple[str, ...] = ()
    """Servers that take no more sessions and leave when theirs have ended."""


def reconcile(views: Sequence[View], want: int, generation: str, surge: int) -> Actions:
    """The next step towards `want` ready servers of a generation, with at most `surge` more at the same time.

    With `surge` 0 an old server drains before its successor starts, so one fewer is ready meanwhile.
    """
    alive = [view for view in views if view.state in (STARTING, READY)]
    current = [view for view in alive if view.generation == generation]
    old = [view for view in alive if view.generation != generation]
    if not old:
        start = max(0, want - len(current))
        return Actions(start, tuple(view.id for view in leaving(current, len(current) - want)))
    start = max(0, min(want - len(current), want + surge - len(alive)))
    begun = [view.id for view in old if view.state == STARTING]
    ready = [view for view in old if view.state == READY]
    fresh = sum(view.state == READY for view in current)
    spare = len(ready) + fresh - want
    if surge == 0 and spare == 0:
        spare = 1
    return Actions(start, (*begun, *(view.id for view in leaving(ready, spare))))


def leaving(views: Sequence[View], count: int) -> Sequence[View]:
    """The servers that are missed least: those that are not ready yet, then those with the fewest sessions."""
    order = sorted(views, key=lambda view: (view.state == READY, view.busy))
    return order[: max(0, count)]
