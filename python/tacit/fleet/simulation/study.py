"""A load on fleets of several sizes, and what each costs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from time import monotonic
from typing import Any

from tacit.fleet.simulation import sizing
from tacit.fleet.simulation.arrivals import Closed, Load, Open
from tacit.fleet.simulation.costs import Costs
from tacit.fleet.simulation.model import MOST_SERVERS, Fleet, run
from tacit.fleet.simulation.prices import Prices
from tacit.model import Progress


@dataclass(frozen=True)
class Study:
    """What is simulated: a load of sessions on fleets that differ in the number of servers."""

    costs: Costs
    fleet: Fleet
    load: Load
    prices: Prices
    seed: int = 0

    @property
    def warm(self) -> float:
        """Seconds that are not counted; a day that has a profile begins quietly."""
        steady = not isinstance(self.load, Open) or len(self.load.weights) == 1
        return sizing.WARM * self.load.seconds if steady else 0.0

    def row(self, servers: int) -> dict[str, Any]:
        """A fleet of so many servers: what its sessions saw, how busy it was, and dollars."""
        fleet = replace(self.fleet, servers=servers)
        outcome = run(self.costs, fleet, self.load, self.seed, self.warm)
        cores = fleet.cores * (1 if fleet.clients_share_cores else servers)
        dollars = self.prices.of(cores, self.load.seconds, outcome.finished, self.costs)
        return {"servers": servers, "cores": cores, **outcome.fields(), "dollars": dollars}

    def enough(self, target: sizing.Target) -> dict[str, Any]:
        """The smallest fleet that meets a target over the whole load, which begins from trials of the busiest part."""
        servers = sizing.servers(self.costs, self.fleet, self.load, target, self.seed)
        while True:
            row = self.row(servers)
            late = row["session"]["p99"]
            if (row["refused"] == 0 and late is not None and late <= target.seconds) or servers >= MOST_SERVERS:
                return row
            servers = min(MOST_SERVERS, servers + max(1, servers // 50))

    def report(
        self, servers: Sequence[int], target: sizing.Target | None, progress: Progress | None = None
    ) -> dict[str, Any]:
        """All rows, and what they were made of; with a `target` first that of the smallest fleet that meets it."""
        began, rows = monotonic(), []
        many = len(servers) + (target is not None)
        if target is not None:
            rows.append(self.enough(target))
        for count in servers:
            rows.append(self.row(count))
            if progress is not None:
                progress(len(rows), many)
        costs, fleet, load = self.costs, self.fleet, self.load
        return {
            "model": costs.model,
            "inputs": costs.inputs,
            "costs": {
                "seconds": costs.seconds(fleet.link),
                "cpu_seconds": {"client": costs.client_seconds, "server": costs.server_seconds},
                "bytes": costs.bytes,
                "egress_bytes": costs.egress_bytes,
                "rounds": costs.rounds,
                "contention": costs.contention,
            },
            "load": shown(load),
            "fleet": {
                "cores_of_each": fleet.cores,
                "sessions_limit": fleet.limits.sessions,
                "balance": fleet.balance,
                "clients_share_cores": fleet.clients_share_cores,
            },
            "prices": asdict(self.prices),
            "seed": self.seed,
            "target_p99": None if target is None else target.seconds,
            "servers_needed": None if target is None else rows[0]["servers"],
            "runs": rows,
            "seconds": monotonic() - began,
        }


def shown(load: Load) -> dict[str, Any]:
    """A load as `--json` shows it."""
    if isinstance(load, Closed):
        return {"clients": load.clients, "think_seconds": load.think_seconds, "seconds": load.seconds}
    sessions = load.sessions if isinstance(load, Open) else len(load.moments)
    return {"sessions": sessions, "seconds": load.seconds, "peak_rate": load.peak_rate}
