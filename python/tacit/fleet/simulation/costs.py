"""What a session costs: processor time of both parties, bytes and rounds by phase, as `tacit bench model` measures."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.errors import MisuseError
from tacit.session import network
from tacit.session.network import Network

PHASES = ("setup", "offline", "online")
LOOPBACK = Network(0.0, float("inf"))
LEAST_CONTENTION = 0.5
"""Sessions on busy cores take at least this part of the processor time of a session alone."""


@dataclass(frozen=True)
class Phase:
    """A part of a session, in seconds of an idle machine.

    `server` and `client` are processor time, of which `both` passes at the same time; `idle` passes while neither
    computes and nothing is on its way. `bytes` are of both directions, `rounds` changes of direction. So much of what
    is on the wire as `hidden` says passes while a party computes.
    """

    server: float
    client: float
    both: float
    idle: float
    bytes: int
    rounds: int
    hidden: float = 0.0

    def seconds(self, link: Network = LOOPBACK) -> float:
        """How long it takes on an idle machine over a link."""
        return self.server + self.client - self.both + self.idle + max(0.0, self.wire(link) - self.hidden)

    def wire(self, link: Network) -> float:
        """Time on the wire: bytes at the link's bandwidth, and half a round trip for each round."""
        return 8 * self.bytes / link.bits_per_second + self.rounds * link.round_trip_seconds / 2


@dataclass(frozen=True)
class Costs:
    """A session of a `model` with so many `inputs`, and how its duration varies: factors of measured repeats.

    Phases are the means of all repeats, to which the factors are relative, so that these do not change how much is
    computed in all. `egress_bytes` go from the server to the client. `network` is the link that the session was
    planned for. `contention` says how many times the processor time of a session alone one takes while all cores of a
    machine are busy with others: more where they share caches and memory, and less where a session alone finds its
    cores asleep.
    """

    model: str
    inputs: int
    phases: tuple[Phase, ...]
    egress_bytes: int
    network: str | None = None
    factors: tuple[float, ...] = (1.0,)
    contention: float = 1.0

    @property
    def server_seconds(self) -> float:
        """Processor time of the server."""
        return sum(phase.server for phase in self.phases)

    @property
    def client_seconds(self) -> float:
        """Processor time of the client."""
        return sum(phase.client for phase in self.phases)

    @property
    def bytes(self) -> int:
        """Bytes of both directions."""
        return sum(phase.bytes for phase in self.phases)

    @property
    def rounds(self) -> int:
        """Changes of direction."""
        return sum(phase.rounds for phase in self.phases)

    def seconds(self, link: Network = LOOPBACK) -> float:
        """How long a session takes on an idle machine over a link."""
        return sum(phase.seconds(link) for phase in self.phases)

    def contended(self, busy_seconds: float) -> "Costs":
        """Costs with the contention of sessions that take `busy_seconds` of processors while all cores are busy.

        Parties that compute at the same time slow each other in the measured session already. It is at least
        `LEAST_CONTENTION`.
        """
        together = 2 * sum(phase.both for phase in self.phases)
        alone = self.server_seconds + self.client_seconds - together
        if alone <= 0:
            return self
        return replace(self, contention=max(LEAST_CONTENTION, (busy_seconds - together) / alone))


def link_of(text: str | None) -> Network:
    """A link by name or `RTTms,Mbps`; `loopback` and None are a link without delay and bound."""
    return LOOPBACK if text in (None, "loopback") else network.parse(str(text))


def read(path: Path, planned_for: str | None = None) -> Costs:
    """Costs of a file that `bench model --json` or `plan --json` wrote; raises `MisuseError` that says what lacks.

    A plan does not name its link, which is the one it was `planned_for`.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MisuseError(f"{path} does not exist; write it with: tacit bench model X.tacit --json > {path}") from None
    except ValueError as error:
        raise MisuseError(f"{path} is no JSON: {error}") from error
    if isinstance(content, dict) and content.get("network_seconds") and "network" not in content:
        if planned_for is None:
            raise MisuseError(f"{path} is a plan for a link that it does not name: say --network as `plan` was told")
        content["network"] = planned_for
    return of(content, str(path))


def of(report: dict[str, Any], name: str = "the report") -> Costs:
    """Costs of what `bench model --json` or `plan --json` printed.

    A plan does not say what each party computes: both are taken to compute all the time that is not on the wire.
    Raises `MisuseError` where phases lack, and of sessions with several threads, whose processor time overlaps.
    """
    try:
        if (report.get("threads") or 1) != 1:
            raise MisuseError(f"{name} was measured with several threads; measure with --threads 1")
        link, total = link_of(report.get("network")), float(report["seconds"])
        cpu, runs = report.get("cpu_seconds"), [float(each) for each in report.get("all_seconds") or [total]]
        mean = sum(runs) / len(runs)
        phases = tuple(phase(report["phases"][each], total, mean / total, cpu, link) for each in PHASES)
        return Costs(
            model=Path(str(report["model"])).stem,
            inputs=int(report["inputs"]),
            phases=phases,
            egress_bytes=int(report["bytes"]["server_to_client"]),
            network=report.get("network"),
            factors=tuple(each / mean for each in sorted(runs)),
            contention=float(report.get("contention") or 1.0),
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise MisuseError(
            f"{name} has no costs of a session ({error!r}); make them with: tacit bench model X.tacit --json"
        ) from error


def phase(cost: dict[str, Any], total: float, stretch: float, cpu: dict[str, float] | None, link: Network) -> Phase:
    """A phase of a report of a session that took `total` seconds, of which processor time belongs to it by its part.

    Processor time is the mean of all runs: `stretch` is how many times as long they took, on average, as this one.
    """
    seconds, rounds = float(cost["seconds"]), int(cost["rounds"])
    moved = sum(map(int, cost["bytes"].values()))
    wire = Phase(0, 0, 0, 0, moved, rounds).wire(link)
    if cpu is None:
        computed = max(0.0, seconds - wire)
        return Phase(computed, computed, computed, 0.0, moved, rounds, max(0.0, wire - seconds))
    part = seconds / total
    seconds *= stretch
    server, client = float(cpu["server"]) * part, float(cpu["client"]) * part
    surplus = server + client + wire - seconds
    both = min(max(surplus, 0.0), server, client)
    hidden = min(max(surplus - both, 0.0), wire)
    return Phase(server, client, both, max(0.0, -surplus), moved, rounds, hidden)
