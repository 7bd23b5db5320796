"""What the zoo says of a model, before it is made."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
RANDOM = "random weights, fixed seed"
TRAINED = "trained weights"
BRIEFLY = "trained briefly on digits"
Labels = Callable[[NDArray[np.float64]], NDArray[Any]]
"""The labels of results (N, *shape), one or several of each."""


def largest(results: NDArray[np.float64]) -> NDArray[Any]:
    """The class of the largest result along the first axis, whether there are more axes or not."""
    return np.asarray(results.argmax(1))


def largest_last(results: NDArray[np.float64]) -> NDArray[Any]:
    """The class of the largest result along the last axis, one for each step."""
    return np.asarray(results.argmax(-1))


def above(threshold: float) -> Labels:
    """Whether a probability is above a threshold."""
    return lambda results: results > threshold


@dataclass(frozen=True)
class Entry:
    """A model: `make` writes its ONNX file, and raises `ImportError` where a package is missing.

    `sequence` is the number of tokens of a model that reads text, 0 for others; `input_shape` fixes dynamic sizes,
    the batch first, and `state` names an input that is kept and its next value. A `private` one is also run between two
    parties over loopback. `labels` says what people read from a result, None of one that is a picture or an embedding,
    and `note` what else is to be known of the row.
    """

    name: str
    family: str
    source: str
    licence: str
    make: Callable[[Path], None]
    weights: str = RANDOM
    sequence: int = 0
    input_shape: Shape = ()
    input_value: tuple[str, float] | None = None
    state: tuple[str, str] | None = None
    private: bool = False
    labels: Labels | None = largest
    note: str = ""

    def command(self, folder: str) -> str:
        """How people compile it, once they have inputs to calibrate it."""
        path = f"{folder}/{self.name}"
        words = [f"tacit compile {path}.onnx -o {path}.tacit"]
        if self.sequence:
            words.append(f"--sequence {self.sequence} --tokenizer {folder}/tokenizer.json")
        else:
            words.append(f"--calibrate {path}.npz")
        if self.input_shape:
            name = "input=" if self.state else ""
            words.append(f"--input-shape {name}{'x'.join(map(str, self.input_shape))}")
        if self.input_value:
            words.append(f"--input-value {self.input_value[0]}={self.input_value[1]:g}")
        if self.state:
            words.append(f"--state {'='.join(self.state)}")
        return " ".join(words)
