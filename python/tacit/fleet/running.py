"""A fleet from the side of the command that starts it: up, followed, and down again."""

import time
from collections.abc import Iterator
from typing import Any

from tacit.errors import MisuseError, TransportError
from tacit.fleet import cluster
from tacit.fleet.config import Fleet
from tacit.fleet.door import DoorHost
from tacit.fleet.head import Head

FOLLOW_SECONDS = 0.25
ANSWER_SECONDS = 60.0


class Running:
    """A fleet that this process has started, or found."""

    def __init__(self, fleet: Fleet, detached: bool) -> None:
        """Start the door and the head, which starts the servers; or find the fleet of this name that runs.

        Raises `MisuseError` for what cannot be and `TransportError` where Ray's cluster does not answer.
        """
        if detached and fleet.ray.address is None:
            raise MisuseError("--detach needs a Ray cluster that stays: `ray start --head`, and `address` of [ray]")
        self.fleet = fleet
        cluster.connect(fleet)
        ray = cluster.library()
        self.found = self.existing()
        if self.found is not None:
            self.head = self.found
            return
        place = {"scheduling_strategy": cluster.here(), "num_cpus": 0, "lifetime": "detached", "max_restarts": -1}
        options = {**place, "name": cluster.name(fleet, "door"), "max_concurrency": 16}
        self.door = ray.remote(DoorHost).options(**options).remote(fleet)
        ask(self.door.info)
        options = {**place, "name": cluster.name(fleet, "head"), "max_concurrency": 16}
        self.head = ray.remote(Head).options(**options).remote(fleet, self.door, not detached)
        ask(self.head.lines, 0)

    def existing(self) -> Any:
        """The head of a fleet of this name, None where there is none."""
        try:
            return cluster.library().get_actor(cluster.name(self.fleet, "head"))
        except ValueError:
            return None

    def status(self) -> dict[str, Any]:
        """What the fleet does now."""
        state: dict[str, Any] = ask(self.head.status)
        return state

    def apply(self, fleet: Fleet) -> dict[str, list[str]]:
        """Another file; see `Head.apply`."""
        found: dict[str, list[str]] = ask(self.head.apply, fleet)
        return found

    def drain(self) -> None:
        """Begin to drain all servers."""
        ask(self.head.drain, None)

    def lines(self) -> Iterator[str | None]:
        """What happens, line by line, until the fleet has ended; None whenever nothing did for a moment."""
        after = 0
        while True:
            told, ended = ask(self.head.lines, after)
            for number, line in told:
                after = number
                yield line
            if ended and not told:
                return
            yield None
            time.sleep(FOLLOW_SECONDS)

    def close(self) -> None:
        """End what is left: the head, servers and the door; and Ray, where it was started here."""
        ray = cluster.library()
        left = [self.head, *cluster.servers(self.fleet).values(), self.door]
        for actor in left:
            ray.kill(actor)
        (self.fleet.state / cluster.PLACE).unlink(missing_ok=True)
        ray.shutdown()


def ask(method: Any, *arguments: Any, seconds: float = ANSWER_SECONDS) -> Any:
    """What a method of an actor gives; what it raises is raised as it was.

    An actor that Ray is starting anew is asked again for so many seconds; what is asked here may be asked twice.
    """
    ray, end = cluster.library(), time.monotonic() + seconds
    while True:
        try:
            return ray.get(method.remote(*arguments), timeout=max(0.1, end - time.monotonic()))
        except ray.exceptions.ActorUnavailableError as error:
            if time.monotonic() > end:
                raise TransportError(f"the fleet does not answer: {error}") from error
            time.sleep(FOLLOW_SECONDS)
        except ray.exceptions.GetTimeoutError as error:
            raise TransportError(f"the fleet does not answer within {seconds:g} s") from error
        except ray.exceptions.RayTaskError as error:
            raise error.cause or error from error
        except ray.exceptions.ActorDiedError as error:
            cause = str(error).strip().splitlines()
            raise MisuseError(f"the fleet could not start: {cause[-1] if cause else error}") from error
