"""Samples in place of the best token: the client adds noise to its shares of all numbers.

The largest of numbers with independent Gumbel noise is a sample of their softmax (Gumbel, "Statistical theory of
extreme values", 1954). The client draws the noise and adds it to its own shares, so that the server sees nothing of
it, no number is opened, and a token costs what the best one costs.
"""

import secrets
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

MOST_NOISE = 24.0
"""Noise is cut here. A token has a larger one once in 26 billion."""
HOTTEST = 100.0
"""The highest temperature."""


@dataclass
class Sampling:
    """How tokens are drawn: by softmax of their numbers over `temperature`, or the best one at 0.

    Noise comes from the operating system, or from a `seed`, by which the same numbers give the same tokens. Raises
    `MisuseError` for a temperature below 0 or above 100.
    """

    temperature: float = 0.0
    seed: int | None = None
    seeded: np.random.Generator | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= HOTTEST:
            raise MisuseError(f"a temperature is 0 to {HOTTEST:.0f}, not {self.temperature}")
        if self.seed is not None:
            self.seeded = np.random.default_rng(self.seed)

    def check(self, most: float) -> None:
        """Raise `MisuseError` unless all noise is at most so large, in units of the numbers that it is added to."""
        if self.temperature * MOST_NOISE > most:
            raise MisuseError(f"this model has room for temperatures up to {most / MOST_NOISE:.2f}")

    def noise(self, count: int) -> NDArray[np.float32] | None:
        """What is added to the numbers of `count` tokens, in their units; None where the best one is wanted."""
        if self.temperature == 0:
            return None
        gumbel = -np.log(-np.log(self.uniform(count)))
        return np.asarray(self.temperature * np.minimum(gumbel, MOST_NOISE), np.float32)

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Numbers between 0 and 1, neither of them among them."""
        if self.seeded is not None:
            words = self.seeded.integers(0, 1 << 52, count, dtype=np.uint64)
        else:
            words = np.frombuffer(secrets.token_bytes(8 * count), np.uint64) >> np.uint64(12)
        return (words.astype(np.float64) + 0.5) / float(1 << 52)
