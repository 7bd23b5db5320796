"""What a simulation found."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Outcome:
    """Numbers of sessions, and of those after the warm-up `records` (N, 3): begin, wait and whole duration in seconds.

    `cores` and `cards` are how much of all processors and network cards was used, 0 to 1, in the `seconds` between
    warm-up and end. `core_seconds` are all that were used until the last session ended.
    """

    begun: int
    finished: int
    refused: int
    records: NDArray[np.float64]
    seconds: float
    cores: float
    cards: float
    most_inside: int
    core_seconds: float

    @property
    def waits(self) -> NDArray[np.float64]:
        """Seconds in queues (N,)."""
        return self.records[:, 1]

    @property
    def durations(self) -> NDArray[np.float64]:
        """Seconds from the dial to the result (N,), waits included."""
        return self.records[:, 2]

    def fields(self) -> dict[str, Any]:
        """What `--json` shows of it."""
        return {
            "sessions": self.finished,
            "refused": self.refused,
            "most_at_once": self.most_inside,
            "wait": spread(self.waits),
            "session": spread(self.durations),
            "utilisation": {"cores": self.cores, "network": self.cards},
        }


def spread(seconds: NDArray[np.float64]) -> dict[str, float | None]:
    """Mean and percentiles; None of nothing."""
    names = ["mean", *(f"p{each}" for each in PERCENTILES)]
    if not len(seconds):
        return dict.fromkeys(names)
    found = [seconds.mean(), *np.percentile(seconds, PERCENTILES)]
    return dict(zip(names, map(float, found), strict=True))
