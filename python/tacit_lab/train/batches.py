"""Files of GLUE as tokens, and batches of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tacit.errors import MisuseError
from tokenizers import Tokenizer
from torch import Tensor

from tacit_lab.glue import Task, measured

BUCKET = 50
"""Batches whose inputs are ordered by length together."""


class Batch(NamedTuple):
    """Tokens and mask (N, tokens), and classes or scores (N,)."""

    ids: Tensor
    mask: Tensor
    wanted: Tensor


@dataclass(frozen=True)
class Examples:
    """Tokens of each input, and what is wanted of it."""

    tokens: list[list[int]]
    wanted: NDArray[np.float32]
    estimates: bool

    def batch(self, chosen: NDArray[np.int64]) -> Batch:
        """The chosen inputs, filled up to the longest."""
        longest = max(len(self.tokens[index]) for index in chosen)
        ids, mask = torch.zeros(len(chosen), longest, dtype=torch.long), torch.zeros(len(chosen), longest)
        for row, index in enumerate(chosen):
            ids[row, : len(self.tokens[index])] = torch.tensor(self.tokens[index])
            mask[row, : len(self.tokens[index])] = 1
        wanted = torch.from_numpy(self.wanted[chosen])
        return Batch(ids, mask, wanted if self.estimates else wanted.long())

    def shuffled(self, size: int, seed: int) -> Iterator[Batch]:
        """All inputs in batches of similar lengths, in an order that the seed decides."""
        random = np.random.default_rng(seed)
        order, lengths = random.permutation(len(self.tokens)), np.array([len(t) for t in self.tokens])
        buckets = [order[start : start + BUCKET * size] for start in range(0, len(order), BUCKET * size)]
        sorted_ = [bucket[np.argsort(lengths[bucket], kind="stable")] for bucket in buckets]
        parts = [bucket[start : start + size] for bucket in sorted_ for start in range(0, len(bucket), size)]
        for index in random.permutation(len(parts)):
            yield self.batch(parts[index])

    def ordered(self, size: int) -> Iterator[tuple[NDArray[np.int64], Batch]]:
        """All inputs, shortest first, with their places."""
        order = np.argsort([len(t) for t in self.tokens], kind="stable")
        for start in range(0, len(order), size):
            yield order[start : start + size], self.batch(order[start : start + size])

    def steps(self, size: int) -> int:
        """Batches of an epoch."""
        whole, rest = divmod(len(self.tokens), BUCKET * size)
        return whole * BUCKET + -(-rest // size)


def read(path: Path, task: Task, tokenizer: Tokenizer, sequence: int, limit: int | None = None) -> Examples:
    """The first `limit` lines of a file of the task, cut to `sequence` tokens; else raises `MisuseError`."""
    if not path.is_file():
        raise MisuseError(f"{path} does not exist; --data names the folder with the files of GLUE")
    heading, *rows = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
    if not {*task.sentences, task.label} <= set(heading):
        raise MisuseError(f"{path} lacks one of the columns {', '.join((*task.sentences, task.label))}")
    places = [heading.index(name) for name in task.sentences]
    texts = [tuple(row[place] for place in places) for row in rows[:limit]]
    tokenizer.no_padding()
    tokenizer.enable_truncation(sequence)
    tokens = [entry.ids for entry in tokenizer.encode_batch([text if len(text) > 1 else text[0] for text in texts])]
    column = [row[heading.index(task.label)] for row in rows[:limit]]
    return Examples(tokens, np.array([number(value, task) for value in column], np.float32), task.estimates)


def number(value: str, task: Task) -> float:
    """A class or score as a number."""
    return float(task.labels.index(value)) if value in task.labels else float(value)


def scores(outputs: NDArray[np.float64], examples: Examples) -> dict[str, float]:
    """All measures of outputs (N, classes)."""
    return measured(outputs, examples.wanted.astype(np.float64), examples.estimates)
