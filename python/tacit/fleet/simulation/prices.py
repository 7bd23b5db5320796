"""What a fleet costs in dollars."""

from dataclasses import dataclass
from typing import Any

from tacit.fleet.simulation.arrivals import HOUR
from tacit.fleet.simulation.costs import Costs

CORE_HOUR = 0.04
"""Dollars for a core and an hour: about what clouds ask for a virtual processor on demand."""
EGRESS_GB = 0.09
"""Dollars for 10^9 bytes to the internet: about what clouds ask for the first terabytes."""


@dataclass(frozen=True)
class Prices:
    """Dollars for a core and an hour, and for 10^9 bytes that leave a server; what comes in is free."""

    core_hour: float = CORE_HOUR
    egress_gb: float = EGRESS_GB

    def of_server(self, cpu_seconds: float, sent: float) -> float:
        """Dollars of so many processor seconds of a server, and of so many bytes that it sends."""
        return self.core_hour * cpu_seconds / HOUR + self.egress_gb * sent / 1e9

    def of(self, cores: int, seconds: float, sessions: int, costs: Costs) -> dict[str, Any]:
        """Dollars of so many cores for so long, used or not, and of what sessions send to clients."""
        egress = sessions * costs.egress_bytes / 1e9
        machines, sent = cores * seconds / HOUR * self.core_hour, egress * self.egress_gb
        answered = sessions * costs.inputs
        return {
            "core_hours": cores * seconds / HOUR,
            "egress_gb": egress,
            "cores": machines,
            "egress": sent,
            "total": machines + sent,
            "per_million": (machines + sent) / answered * 1e6 if answered else None,
        }
