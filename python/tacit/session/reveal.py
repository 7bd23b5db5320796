"""What a client learns of a result, as commands and servers say it: output, label, probability or bucket:EDGES."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

WORDS = {"output": "output", "score": "output", "label": "label", "probability": "probability"}
"""What may stand alone, and what the core calls it."""
BUCKET = "bucket"
FORM = "one of output, label, probability, score (the same as output) and bucket:EDGE,... in units of the score"
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Reveal:
    """What a client learns, by the core's word, and the edges between buckets in real units of the score."""

    word: str = "output"
    edges: tuple[float, ...] = ()

    @classmethod
    def of(cls, text: str) -> Self:
        """Read `text`; raises `MisuseError` for what is none."""
        word, colon, edges = text.partition(":")
        if not colon and word in WORDS:
            return cls(WORDS[word])
        values = numbers(edges) if word == BUCKET else ()
        if not values:
            raise MisuseError(f"what is revealed is {FORM}, not {text!r}")
        if not np.isfinite(values).all() or any(low >= high for low, high in pairwise(values)):
            raise MisuseError(f"edges of buckets are finite numbers, each above the one before, not {edges!r}")
        return cls(BUCKET, values)

    def options(self) -> dict[str, Any]:
        """Fields of the core's options of servers and plans."""
        return {"reveal": self.word, **({"edges": list(self.edges)} if self.edges else {})}

    def labels(self, outputs: Integers, scale: float) -> Integers:
        """What a client learns (N,) as a whole number of the interpreter's integers (N, results), of this scale.

        It is the bucket, whether a single result is above zero where labels are revealed, and the best class of others.
        """
        if self.word == BUCKET:
            edges = np.ceil(np.asarray(self.edges) / scale)
            return np.asarray((outputs[:, -1:] >= edges).sum(axis=1), np.int64)
        if self.word == "label" and outputs.shape[1] == 1:
            return np.asarray(outputs[:, 0] > 0, np.int64)
        return np.asarray(np.argmax(outputs, axis=1), np.int64)


def is_reveal(text: str) -> bool:
    """Whether `Reveal.of` reads a text."""
    try:
        Reveal.of(text)
    except MisuseError:
        return False
    return True


def numbers(text: str) -> tuple[float, ...]:
    """Numbers with commas between; none where one of them is no number."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        return ()


def buckets(graph: dict[str, Any]) -> int:
    """How many buckets the result of a public graph tells apart; 0 where it is none."""
    writers = (node["op"] for node in graph["nodes"] if node["output"] == graph["output"])
    edges = (op["bands"]["edges"] for op in writers if isinstance(op, dict) and "bands" in op)
    return next((int(count) + 1 for count in edges), 0)
