"""A decoder in the clear behind the beginning of all prompts, with keys and values that are kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Weights
from tacit.importers.architectures.llama_floats import logits
from tacit.importers.huggingface import load

Kept = dict[str, NDArray[np.float32]]
"""Keys and values (heads, tokens, width) by the layer: `0.key`, `0.value`, ..."""


class Floats:
    """The float model of a directory; keys and values of the `beginning`, its tokens, are computed once."""

    def __init__(self, config: Config, weights: Weights, beginning: Sequence[int]) -> None:
        self.config, self.weights, self.beginning = config, weights, len(beginning)
        self.kept: Kept = {}
        if beginning:
            logits(config, weights, beginning, self.kept)

    @classmethod
    def of(cls, folder: Path, beginning: Sequence[int]) -> Self:
        """The model in a directory of Hugging Face, all of whose weights are read."""
        architecture, config, stored = load(folder)
        prepared = architecture.prepare(config, stored)
        return cls(config, {name: prepared[name] for name in prepared}, beginning)

    def begun(self) -> Kept:
        """Keys and values of the beginning, to which `logits` adds."""
        return dict(self.kept)

    def cut(self, kept: Kept, tokens: int) -> Kept:
        """Keys and values of the beginning and of the first `tokens` behind it."""
        return {name: one[:, : self.beginning + tokens] for name, one in kept.items()}

    def logits(self, tokens: Sequence[int], kept: Kept) -> NDArray[np.float32]:
        """A number for each token (tokens, vocabulary) that may come after each of `tokens`.

        They follow those whose keys and values are `kept`, and theirs are added.
        """
        return logits(self.config, self.weights, tokens, kept)
