"""The head of a fleet: the Ray actor that keeps as many servers of each model as wanted.

It holds no session and no key. When its process ends, Ray starts it anew, and it finds the servers that run.
"""

import threading
import time
from collections import deque
from typing import Any

from tacit.fleet import cluster
from tacit.fleet.config import Fleet
from tacit.fleet.members import Members
from tacit.fleet.rolling import READY, STARTING
from tacit.fleet.scrape import Scrape
from tacit.fleet.status import state_of

LINES = 1000
"""The last lines that are kept for those who follow."""
GIVE_UP_SECONDS = 60.0
"""A fleet in the foreground drains when the command that started it has not asked for so long."""
FIRST_SECONDS = 60.0


class Head:
    """The actor; its methods are called from the commands."""

    def __init__(self, fleet: Fleet, door: Any, followed: bool) -> None:
        """Run a fleet behind a door, an actor of `DoorHost`.

        With `followed` the fleet drains when nobody asks `lines` for a minute.
        """
        self.fleet, self.door, self.followed = fleet, door, followed
        self.lock = threading.RLock()
        self.told: deque[tuple[int, str]] = deque(maxlen=LINES)
        self.number, self.asked = time.time_ns() // 1000, time.monotonic()  # beyond those of a head before this one
        self.stopping, self.stopped = False, threading.Event()
        self.since = time.time()
        self.entrance: dict[str, Any] = {}
        self.at_door: dict[str, Any] = {}
        self.question: Any = None
        self.pools = {pool.name: Members(fleet, pool) for pool in fleet.pools}
        self.scrape = Scrape(fleet.metrics, self.metrics) if fleet.metrics else None
        self.adopt()
        threading.Thread(target=self.run, name="tacit-fleet-head", daemon=True).start()

    def adopt(self) -> None:
        """Take over the servers that run since before this process."""
        ray = cluster.library()
        for id, actor in cluster.servers(self.fleet).items():
            try:
                info = ray.get(actor.info.remote(), timeout=self.fleet.health.timeout)
            except Exception:  # noqa: BLE001 (a server that is about to end is none)
                continue
            if info["model"] in self.pools:
                self.pools[info["model"]].adopt(id, actor, info)
                self.tell(f"{id} runs already, at {info['address']}")

    def tell(self, line: str) -> None:
        """Keep a line for those who follow; it also goes to the actor's log."""
        self.number += 1
        self.told.append((self.number, line))
        print(line, flush=True)

    def run(self) -> None:
        """Look and act until the fleet has ended."""
        while not self.stopped.is_set():
            try:
                with self.lock:
                    self.look()
                    self.act()
            except Exception as error:  # noqa: BLE001 (the next look may succeed; the line says what was wrong)
                self.tell(f"the head could not act: {type(error).__name__}: {error}")
            self.stopped.wait(self.fleet.scaling.every)
        self.close()

    def close(self) -> None:
        """End the door, and the head itself where no command is there that would do it."""
        ray = cluster.library()
        try:
            ray.get(self.door.stop.remote(1.0), timeout=FIRST_SECONDS)
        except Exception as error:  # noqa: BLE001 (it is killed in any case)
            self.tell(f"the door did not end by itself: {type(error).__name__}")
        ray.kill(self.door)
        if not self.followed or self.gone():
            (self.fleet.state / cluster.PLACE).unlink(missing_ok=True)
            ray.kill(ray.get_actor(cluster.name(self.fleet, "head")))

    def gone(self) -> bool:
        """Whether the command in the foreground has not asked for a minute."""
        return time.monotonic() - self.asked > GIVE_UP_SECONDS

    def look(self) -> None:
        """Take what the door and the servers say."""
        self.ask_door()
        known = {each["id"]: each for each in self.at_door.get("servers", [])}
        waiting: dict[str, int] = self.at_door.get("waiting_by_model", {})
        for pool in self.pools.values():
            for line in pool.watch():
                self.tell(line)
            pool.queued = waiting.get(pool.name, 0)
            for member in pool.members.values():
                member.warm = known.get(member.id, {}).get("state") == "ready"
        if self.followed and self.gone() and not self.stopping:
            self.tell("the command that started this fleet is gone: it drains")
            self.stopping = True

    def ask_door(self) -> None:
        """The door's state, without waiting for it, and where it is."""
        ray = cluster.library()
        if self.question is not None and ray.wait([self.question], timeout=0)[0]:
            try:
                self.at_door = ray.get(self.question)
            except Exception as error:  # noqa: BLE001 (Ray starts the door anew)
                self.at_door, self.entrance = {}, {}
                self.tell(f"the door does not answer: {type(error).__name__}")
            self.question = None
        if not self.entrance:
            self.entrance = ray.get(self.door.info.remote(), timeout=FIRST_SECONDS)
        if self.question is None:
            self.question = self.door.state.remote()

    def registration(self) -> dict[str, Any]:
        """How servers register with the door."""
        return {"fleet": self.entrance["control"], "fleet_secret": self.fleet.secret_path}

    def act(self) -> None:
        """Start and drain what the rules say."""
        for pool in self.pools.values():
            for line in pool.overdue():
                self.tell(line)
            start, leave = pool.step() if not self.stopping else (0, [one.id for one in active(pool)])
            for id in leave:
                self.tell(f"{id} drains")
                pool.drain(pool.members[id], self.fleet.drain)
            for _ in range(start):
                member = pool.start(self.registration())
                self.tell(f"{member.id} starts: {pool.pool.cores:g} cores, {pool.pool.megabytes} MB")
        if self.stopping and not any(pool.members for pool in self.pools.values()):
            self.tell("all servers have drained")
            self.stopped.set()

    def lines(self, after: int) -> tuple[list[tuple[int, str]], bool]:
        """Numbered lines after one, and whether the fleet has ended."""
        self.asked = time.monotonic()
        return [line for line in list(self.told) if line[0] > after], self.stopped.is_set()

    def status(self) -> dict[str, Any]:
        """What the fleet does now."""
        with self.lock:
            return state_of(self)

    def scale(self, model: str | None, count: int | None) -> dict[str, Any]:
        """So many servers of a model from now on; None gives the number back to the load. Raises `MisuseError`."""
        with self.lock:
            name = self.fleet.pool(model).name
            scaler = self.pools[name].scaler
            before, scaler.fixed = scaler.wanted, count
            self.tell(f"{name}: {'as many as the load needs' if count is None else f'{count} servers'}, as asked")
            return {"model": name, "before": before, "wanted": count}

    def drain(self, server: str | None) -> list[str]:
        """Drain one server, which is replaced as far as it is wanted; None drains all and ends the fleet."""
        with self.lock:
            if server is None:
                ready = [member.id for pool in self.pools.values() for member in active(pool)]
                self.stopping = True
                return ready
            for pool in self.pools.values():
                if server in pool.members:
                    self.tell(f"{server} drains, as asked")
                    pool.drain(pool.members[server], self.fleet.drain)
                    return [server]
        known = [id for pool in self.pools.values() for id in pool.members]
        raise ValueError(f"there is no server `{server}`; there are {', '.join(known) or 'none'}")

    def apply(self, fleet: Fleet) -> dict[str, list[str]]:
        """Another fleet file: models whose file or options differ are replaced, without a session that fails.

        Gives the models by what becomes of them. The door reads tokens and certificates anew; its options, Ray and the
        identity stay as they are.
        """
        with self.lock:
            cluster.library().get(self.door.reload.remote(), timeout=FIRST_SECONDS)
            names = {pool.name: pool for pool in fleet.pools}
            found: dict[str, list[str]] = {"replaced": [], "added": [], "kept": [], "removed": []}
            for name, pool in names.items():
                if name not in self.pools or not self.pools[name].offered:
                    self.pools.setdefault(name, Members(fleet, pool)).change(fleet, pool)
                    found["added"].append(name)
                    continue
                same = self.pools[name].pool.generation == pool.generation
                self.pools[name].change(fleet, pool)
                found["kept" if same else "replaced"].append(name)
            for name in self.pools.keys() - names.keys():
                if self.pools[name].offered:
                    self.pools[name].offered, self.pools[name].scaler.fixed = False, 0
                    found["removed"].append(name)
            self.fleet = fleet
            for what, models in found.items():
                if models and what != "kept":
                    self.tell(f"{', '.join(models)}: {what}")
            return found

    def metrics(self) -> list[tuple[str, str]]:
        """The metrics of the door and of each server as text, by identifier."""
        with self.lock:
            ready = [one for pool in self.pools.values() for one in pool.members.values() if one.state != STARTING]
        ray = cluster.library()
        asked = {self.door.metrics.remote(): "door"} | {one.actor.metrics.remote(): one.id for one in ready}
        done, _ = ray.wait(list(asked), num_returns=len(asked), timeout=5.0)
        found: list[tuple[str, str]] = []
        for each in done:
            try:
                found.append((asked[each], ray.get(each)))
            except Exception:  # noqa: BLE001 (a server that ended has no metrics)
                continue
        return sorted(found)


def active(pool: Members) -> list[Any]:
    """Servers that have not been asked to drain."""
    return [member for member in pool.members.values() if member.state in (READY, STARTING)]
