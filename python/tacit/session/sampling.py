"""Samples in place of the best token: the client adds noise to its shares of all numbers.

The largest of numbers with independent Gumbel noise is a sample of their softmax (Gumbel, "Statistical theory of
extreme values", 1954). The client draws the noise and adds it to its own shares, so that the server sees nothing of
it, no number is opened, and a token costs what the best one costs.

Of the best `top_k` tokens, or those that have a share `top_p` of the probability together (Holtzman and others, "The
curious case of neural text degeneration", ICLR 2020), more must be known than which token is the best: then the client
learns the numbers of all tokens, and draws by itself.
"""

import secrets
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

MOST_NOISE = 24.0
"""Noise is cut here. A token has a larger one once in 26 billion."""
UNKNOWN = (
    "--top-k and --top-p need the numbers of all tokens, and this server reveals only the best one: serve with "
    "--reveal output, by which clients learn them, or leave both out"
)
HOTTEST = 100.0
"""The highest temperature."""


@dataclass
class Sampling:
    """How tokens are drawn: by softmax of their numbers over `temperature`, or the best one at 0.

    Noise comes from the operating system, or from a `seed`, by which the same numbers give the same tokens. Only the
    best `top_k` tokens are drawn, and of these the best ones that have `top_p` (above 0, at most 1) of the probability
    together. Raises `MisuseError` for a temperature below 0 or above 100, and for what cuts no token or all.
    """

    temperature: float = 0.0
    seed: int | None = None
    top_k: int | None = None
    top_p: float | None = None
    seeded: np.random.Generator | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= HOTTEST:
            raise MisuseError(f"a temperature is 0 to {HOTTEST:.0f}, not {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise MisuseError(f"--top-k is 1 or more, not {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise MisuseError(f"--top-p is above 0 and at most 1, not {self.top_p}")
        if self.cuts and self.temperature == 0:
            raise MisuseError("--top-k and --top-p choose what is drawn from: give a --temperature above 0, as 0.7")
        if self.seed is not None:
            self.seeded = np.random.default_rng(self.seed)

    @property
    def cuts(self) -> bool:
        """Whether tokens are left out, so that the numbers of all must be known."""
        return self.top_k is not None or self.top_p is not None

    def choose(self, numbers: NDArray[np.float64]) -> list[int]:
        """A token for each row of the numbers (N, tokens) of all tokens, of those that are not left out."""
        noise = self.noise(numbers.size)
        scores = numbers if noise is None else numbers + noise.reshape(numbers.shape)
        return [int(token) for token in np.where(self.kept(numbers), scores, -np.inf).argmax(axis=1)]

    def kept(self, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which tokens may be drawn (N, tokens); the best one always may."""
        order = np.argsort(-numbers, axis=1, kind="stable")
        ranked = np.ones(numbers.shape, np.bool_)
        if self.top_k is not None:
            ranked[:, self.top_k :] = False
        if self.top_p is not None:
            sorted_numbers = np.take_along_axis(numbers, order, axis=1) / self.temperature
            chances = np.where(ranked, np.exp(sorted_numbers - sorted_numbers[:, :1]), 0.0)
            before = np.cumsum(chances, axis=1) - chances
            ranked &= before < self.top_p * chances.sum(axis=1, keepdims=True)
        found = np.empty_like(ranked)
        np.put_along_axis(found, order, ranked, axis=1)
        return found

    def check(self, most: float, known: bool = False) -> None:
        """Raise `MisuseError` for a session that cannot draw so.

        `known`: the client learns the numbers of all tokens. `most` is how large noise may be that is added to shares
        of numbers, in their units.
        """
        if self.cuts:
            if not known:
                raise MisuseError(UNKNOWN)
            return
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
