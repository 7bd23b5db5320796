"""When sessions begin: at random at a rate, at a rate that follows the day, or from clients that come back."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

HOUR = 3600.0
DAY = 24 * HOUR
OFFICE = (2, 1, 1, 1, 1, 2, 3, 5, 8, 10, 10, 10, 9, 10, 10, 10, 9, 8, 7, 6, 5, 4, 3, 2)
"""Sessions in each hour of a day, relative to one another: the profile `day`."""


@dataclass(frozen=True)
class Open:
    """Clients who come whatever others do: `weights` are those of equal parts of the duration."""

    sessions: float
    seconds: float = DAY
    weights: tuple[float, ...] = (1.0,)

    @property
    def peak_rate(self) -> float:
        """Sessions a second in the busiest part."""
        return self.sessions * max(self.weights) / sum(self.weights) * len(self.weights) / self.seconds

    def times(self, random: np.random.Generator) -> NDArray[np.float64]:
        """Seconds at which sessions begin, in order: a Poisson process in each part."""
        parts = np.asarray(self.weights, np.float64)
        numbers = random.poisson(self.sessions * parts / parts.sum())
        length = self.seconds / len(parts)
        places = np.repeat(np.arange(len(parts)), numbers)
        return np.sort((places + random.random(len(places))) * length)


@dataclass(frozen=True)
class Closed:
    """So many clients who ask, wait for the answer, think for `think_seconds` on average, and ask again."""

    clients: int
    seconds: float = HOUR
    think_seconds: float = 0.0

    @property
    def peak_rate(self) -> float | None:
        """It depends on the answers."""
        return None


@dataclass(frozen=True)
class Recorded:
    """Sessions that began at known `moments`, in seconds and in order, such as those of a log."""

    moments: tuple[float, ...]
    seconds: float

    @property
    def peak_rate(self) -> float:
        """Sessions a second over the whole time."""
        return len(self.moments) / self.seconds

    def times(self, _: np.random.Generator) -> NDArray[np.float64]:
        """Nothing is drawn."""
        return np.asarray(self.moments, np.float64)


Load = Open | Closed | Recorded


def profile(text: str) -> tuple[float, ...]:
    """Weights of hours: of `flat`, of `day`, or of a file with a number in each line; else `MisuseError`."""
    if text in ("flat", "day"):
        return (1.0,) if text == "flat" else tuple(map(float, OFFICE))
    try:
        weights = tuple(float(line) for line in Path(text).read_text(encoding="utf-8").split())
    except FileNotFoundError:
        raise MisuseError(f"`{text}` is no profile: flat, day, or a file with the weight of an hour per line") from None
    except ValueError as error:
        raise MisuseError(f"{text}: {error}; it has the weight of an hour per line") from error
    if not weights or min(weights) < 0 or not 0 < sum(weights) < float("inf"):
        raise MisuseError(f"{text} needs weights that are not negative, and one above 0")
    return weights
