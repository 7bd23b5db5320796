"""Text from a private language model: token by token, each by a run of its own.

A run reads the window of the last tokens, or, of a model with steps, one token, and keys and values of earlier ones
stay shared between both parties from run to run.
The client knows its prompt and the tokens that were written so far; it alone learns the next one. The server sees runs
of one size, how many there are, and when they come. Of a model with steps the runs of all tokens of a prompt but the
last are shorter: they end with keys and values, and nobody learns a next token.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.data.decoding import Decoding
from tacit.data.text import Text
from tacit.errors import MisuseError
from tacit.session.sampling import Sampling


class Written(Protocol):
    """What a run gives: the number of the best class, and the cost of the session so far."""

    @property
    def classes(self) -> NDArray[np.int64]:
        """Class numbers (N,)."""

    @property
    def report(self) -> dict[str, Any]:
        """The cost of the session so far."""


FEW = 4
"""Fewer inputs than this part of a pass do not fill one up."""

Step = Callable[..., Written]
"""Runs one input (1, *shape), with noise (tokens,) for the numbers of all tokens where there is some."""
Remember = Callable[[NDArray[np.float32]], Any]
"""Runs one input (1, *shape), or those of a pass, only for keys and values."""


@dataclass(frozen=True)
class Piece:
    """A token that was written, the text that it adds, and what it took.

    Bytes and rounds are of both directions; those of the first token include the setup of the session, and the prompt's
    steps.
    """

    token: int
    text: str
    seconds: float
    bytes: int
    rounds: int


@dataclass(frozen=True)
class Manner:
    """How an answer is written.

    All tokens of a prompt but the last go to `remember`, of a model with steps, `at_once` in a pass; without it to
    the step as well. `sampling` draws each token, of so many `tokens` that there are.
    """

    remember: Remember | None = None
    at_once: int = 1
    tokens: int = 0
    sampling: Sampling = field(default_factory=Sampling)


def generate(step: Step, text: Text, prompt: str, tokens: int, manner: Manner | None = None) -> Iterator[Piece]:
    """The answer to a prompt, at most so many tokens of it, each as soon as it is known.

    It ends at a token that stops, after which `step` is not called again. Raises `MisuseError` for a model that
    writes no text, and what `step` raises: the pieces that came before are the text so far.
    """
    if text.decoding is None:
        raise MisuseError("the model writes no text; compile one for the next token (...ForCausalLM, or a .gguf file)")
    if tokens < 1:
        raise MisuseError(f"--tokens is 1 or more, not {tokens}")
    manner = manner or Manner()
    ids, said, spent = text.prompt(prompt), "", Cost(0, 0)
    start, read = len(ids), 0
    for _ in range(tokens):
        began = monotonic()
        *before, last = text.inputs(unread(text, text.decoding, ids, read))
        for x in passes(np.array(before), manner.at_once if manner.remember else 1):
            (manner.remember or step)(x)
        noise = manner.sampling.noise(manner.tokens)
        made = step(last[None]) if noise is None else step(last[None], noise)
        token, total, read = int(made.classes[0]), cost_of(made.report), len(ids)
        if token in text.decoding.stops:
            return
        ids.append(token)
        whole = str(text.encoder.decode(ids[start:], skip_special_tokens=True))
        # A character of several tokens is shown when it is complete.
        whole = whole.rstrip("\ufffd")
        new, said = (whole[len(said) :], whole) if whole.startswith(said) else ("", said)
        yield Piece(token, new, monotonic() - began, *Cost.between(spent, total))
        spent = total


def unread(text: Text, decoding: Decoding, ids: Sequence[int], read: int) -> NDArray[np.float32]:
    """Inputs (N, rows, sequence) behind the first `read` tokens: the last window, or a step for each token."""
    every = decoding.inputs(ids, text.sequence, text.pad)
    return every if decoding.steps is None else every[read:]


def passes(x: NDArray[np.float32], at_once: int) -> Iterator[NDArray[np.float32]]:
    """Inputs (N, *shape) in runs of `at_once` each, and of one where a few are left.

    Inputs that fill the first run up are copies of the first one. What they leave of keys and values nobody attends to:
    each token attends to those of its own text.
    """
    fill = filled(len(x), at_once) - len(x)
    x = np.concatenate([np.repeat(x[:1], fill, axis=0), x])
    while len(x):
        count = at_once if len(x) >= at_once else 1
        yield x[:count]
        x = x[count:]


def filled(inputs: int, at_once: int) -> int:
    """How many inputs there are with those that fill passes up: a few that are left of a prompt go one by one."""
    left = inputs % at_once
    return inputs if left * FEW < at_once else inputs - left + at_once


def runs(text: Text, prompt: str, tokens: int, at_once: int = 1) -> int:
    """How many inputs of a session an answer of so many tokens takes."""
    return tokens + remembered(text, prompt, at_once)


def remembered(text: Text, prompt: str, at_once: int = 1) -> int:
    """How many inputs of an answer are only for keys and values."""
    stepped = text.decoding is not None and text.decoding.steps is not None
    return filled(len(text.prompt(prompt)) - 1, at_once) if stepped else 0


class Cost(NamedTuple):
    """Bytes of both directions, and rounds."""

    bytes: int
    rounds: int

    @classmethod
    def between(cls, earlier: "Cost", later: "Cost") -> "Cost":
        """What was spent since `earlier`."""
        return cls(later.bytes - earlier.bytes, later.rounds - earlier.rounds)


def cost_of(report: dict[str, Any]) -> Cost:
    """Bytes and rounds of a report."""
    return Cost(sum(report["bytes"].values()), int(report["rounds"]))
