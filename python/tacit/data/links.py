"""Links: public functions that make estimates of a model's results, such as probabilities of log-odds.

A link is part of a model's public graph; clients apply it to the results that they learn.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Link:
    """What becomes of results: `function`, one of `FUNCTIONS`, of `scale` times a result."""

    function: str
    scale: float = 1.0

    def content(self) -> dict[str, Any]:
        """The link as JSON has it: `function`, and `scale` where that is not 1."""
        return {"function": self.function} | ({} if self.scale == 1.0 else {"scale": self.scale})

    @property
    def words(self) -> str:
        """What estimates are, for people."""
        scaled = "score" if self.scale == 1.0 else f"{self.scale:.6g} * score"
        return re.sub(r"\bscore\b", scaled, WORDS[self.function])

    def estimates(self, results: Floats) -> Floats:
        """Estimates (N, outputs) of results (N, outputs) in real units."""
        with np.errstate(over="ignore"):
            return FUNCTIONS[self.function](np.asarray(results, np.float64) * self.scale)


def of(content: Any) -> Link | None:
    """The link that a model's description or plan has, which is None without one.

    Raises `MisuseError` for a function that this version does not know.
    """
    if content is None:
        return None
    try:
        link = Link(str(content["function"]), float(content.get("scale", 1.0)))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MisuseError(f"the model has a link that is none: {content}") from error
    if link.function not in FUNCTIONS or not np.isfinite(link.scale):
        raise MisuseError(f"the model has the link {content}, which this version does not know; update tacit")
    return link


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def softmax(x: Floats) -> Floats:
    """exp(x) over its sum along the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True), np.float64)


FUNCTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "sigmoid": sigmoid,
    "softmax": softmax,
    "exp": np.exp,
    "softplus": lambda x: np.logaddexp(0.0, x),
    "signed-square": lambda x: x * np.abs(x),
    "step": lambda x: (x > 0).astype(np.float64),
    "isolation": lambda x: -np.exp2(-x),
}
"""What becomes of scaled results, by name."""
WORDS: Mapping[str, str] = {
    "sigmoid": "probabilities are 1 / (1 + exp(-score))",
    "softmax": "probabilities are the softmax of scores",
    "exp": "estimates are exp(score)",
    "softplus": "estimates are ln(1 + exp(score))",
    "signed-square": "estimates are score * |score|",
    "step": "the label is 1 where the score is above zero",
    "isolation": "score_samples is -2^(-score)",
}
"""What estimates are, for people."""
