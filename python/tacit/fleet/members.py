"""The servers of one model as the head keeps them: started, watched, drained, and replaced when they end unasked."""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from tacit.fleet import cluster
from tacit.fleet.config import Fleet, Pool
from tacit.fleet.rolling import DRAINING, GONE, READY, STARTING, View, reconcile
from tacit.fleet.scaling import Backoff, Load, Scaler
from tacit.fleet.server import ServerHost

EXTRA_DRAIN_SECONDS = 45.0
"""Seconds beyond the drain after which a server that has not ended is killed: tickets that are out live so long."""


@dataclass
class Member:
    """A server."""

    id: str
    generation: str
    actor: Any
    pending: Any
    """The answer that the head waits for: of `start`, then of `look`."""
    asked: float
    """When the head asked."""
    state: str = STARTING
    since: float = field(default_factory=time.monotonic)
    placing: Any = None
    """The answer that comes when its process is there."""
    placed: float | None = None
    """When its process was there; None while Ray has no room for it."""
    info: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    """What it said last of itself."""
    warm: bool = False
    """Whether the door gives tickets to it."""

    def turn(self, state: str) -> None:
        """Change the state."""
        self.state, self.since = state, time.monotonic()

    @property
    def busy(self) -> int:
        """Sessions that run and wait there."""
        return int(self.seen.get("running", 0)) + int(self.seen.get("waiting", 0))

    @property
    def view(self) -> View:
        """The server as the rule of `rolling` sees it."""
        state = STARTING if self.state == READY and not self.warm else self.state
        return View(self.id, self.generation, state, self.busy)


class Members:
    """The servers of one model."""

    def __init__(self, fleet: Fleet, pool: Pool) -> None:
        """No servers yet: `step` starts them."""
        self.fleet, self.pool = fleet, pool
        self.scaler = Scaler(fleet.scaling, pool.min, pool.max, pool.sessions)
        self.backoff = Backoff(fleet.health.longest_backoff)
        self.members: dict[str, Member] = {}
        self.offered = True
        """Whether the fleet file still has the model."""
        self.restarts, self.last_error = 0, ""
        self.queued = 0
        """Clients that wait at the door."""

    def change(self, fleet: Fleet, pool: Pool) -> None:
        """Another file, or other options: servers of another generation are replaced."""
        fixed = self.scaler.fixed if self.offered else None
        wanted = min(max(self.scaler.wanted, pool.min), pool.max)
        self.fleet, self.pool = fleet, pool
        self.scaler = Scaler(fleet.scaling, pool.min, pool.max, pool.sessions)
        self.scaler.fixed, self.scaler.wanted, self.offered = fixed, wanted, True

    def start(self, registration: dict[str, Any]) -> Member:
        """A new server, which Ray places where there is room."""
        ray, pool = cluster.library(), self.pool
        id = f"{pool.name}-{secrets.token_hex(3)}"
        options = {
            "name": cluster.name(self.fleet, f"server-{id}"),
            "namespace": self.fleet.ray.namespace,
            "lifetime": "detached",
            "num_cpus": pool.cores,
            "memory": pool.megabytes * 10**6,
            "resources": pool.resources,
            "max_restarts": 0,
            "max_concurrency": 4,
            "scheduling_strategy": "SPREAD" if pool.placement == "spread" else "DEFAULT",
        }
        actor = (
            ray.remote(ServerHost)
            .options(**options)
            .remote(id, pool, self.fleet, self.fleet.host, registration | {"server_id": id})
        )
        member = Member(id, pool.generation, actor, actor.start.remote(), time.monotonic())
        member.placing = actor.info.remote()
        self.members[id] = member
        return member

    def adopt(self, id: str, actor: Any, info: dict[str, Any]) -> None:
        """A server that runs since before this head."""
        member = Member(id, info["generation"], actor, actor.look.remote(), time.monotonic(), READY, info=info)
        member.placed = member.since
        self.members[id] = member

    def watch(self) -> list[str]:
        """Take the answers that have come, ask anew, and give the lines that tell what changed."""
        said: list[str] = []
        for member in list(self.members.values()):
            said += self.watch_one(member)
        return said

    def watch_one(self, member: Member) -> list[str]:
        """The same for one server."""
        ray, now = cluster.library(), time.monotonic()
        if member.pending is None and now - member.asked >= self.fleet.health.every:
            member.pending, member.asked = member.actor.look.remote(), now
        if member.pending is None or not ray.wait([member.pending], timeout=0)[0]:
            return self.late(member, now)
        try:
            answer = ray.get(member.pending)
        except Exception as error:  # noqa: BLE001 (Ray wraps what the server raised, and its end)
            return self.lost(member, reason(error))
        member.pending = None
        if member.state == STARTING:
            member.info, member.placed = answer, now
            member.turn(READY)
            return [
                f"{member.id} serves at {answer['address']}",
                *(f"{member.id}: {line}" for line in answer["warnings"]),
            ]
        member.seen = answer
        if answer["ended"]:
            if member.state == DRAINING or answer["draining"]:
                self.dismiss(member)
                return [f"{member.id} has drained"]
            return self.lost(member, answer["error"] or "the server ended by itself")
        return []

    def late(self, member: Member, now: float) -> list[str]:
        """A server whose answer has not come yet."""
        health = self.fleet.health
        if member.state == STARTING:
            if member.placed is None:
                member.placed = now if cluster.library().wait([member.placing], timeout=0)[0] else None
            elif now - member.placed > health.start:
                return self.lost(member, f"was not ready within {health.start:g} s")
            return []
        if member.pending is not None and now - member.asked > health.timeout:
            return self.lost(member, f"gave no sign of life for {health.timeout:g} s")
        return []

    def lost(self, member: Member, why: str) -> list[str]:
        """A server that ended unasked, or must."""
        now = time.monotonic()
        if member.state != DRAINING:
            self.restarts += 1
            self.last_error = f"{member.id}: {why}"
            self.backoff.failed(now, now - member.since if member.state == READY else 0.0)
        self.dismiss(member)
        return [f"{member.id} is lost: {why}"]

    def dismiss(self, member: Member) -> None:
        """End a server's process and forget it."""
        cluster.library().kill(member.actor)
        member.turn(GONE)
        del self.members[member.id]

    def load(self) -> Load:
        """What the servers do now."""
        ready = [member for member in self.members.values() if member.view.state == READY]
        seen = [member.seen for member in ready]
        dry = sum(self.pool.offline > 0 and each.get("running", 0) > 0 and not each.get("prepared") for each in seen)
        running, waiting, allowed = (
            sum(int(each.get(name, 0)) for each in seen) for name in ("running", "waiting", "allowed")
        )
        return Load(len(ready), running, waiting + self.queued, allowed, dry)

    def step(self) -> tuple[int, list[str]]:
        """How many servers to start now, and which to drain."""
        now = time.monotonic()
        want = self.scaler.decide(self.load(), now)
        views = [member.view for member in self.members.values()]
        actions = reconcile(views, want, self.pool.generation, self.pool.surge)
        return (0 if self.backoff.waits(now) else actions.start), list(actions.drain)

    def drain(self, member: Member, seconds: float) -> None:
        """A server takes no more sessions and leaves; one that is not ready yet ends at once."""
        if member.state == STARTING:
            self.dismiss(member)
            return
        member.turn(DRAINING)
        member.actor.drain.remote(seconds)

    def overdue(self) -> list[str]:
        """Kill servers that drain for too long, and tell it."""
        now, most = time.monotonic(), self.fleet.drain + EXTRA_DRAIN_SECONDS
        late = [one for one in self.members.values() if one.state == DRAINING and now - one.since > most]
        for member in late:
            self.dismiss(member)
        return [f"{member.id} did not end within {most:g} s and was killed" for member in late]


def reason(error: BaseException) -> str:
    """The first line of what was wrong, without Ray's traceback."""
    cause = getattr(error, "cause", None) or error
    lines = [line for line in str(cause).splitlines() if line.strip()]
    return f"{type(cause).__name__}: {lines[0].strip() if lines else 'no reason given'}"
