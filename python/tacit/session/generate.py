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

from tacit.data.decoding import Decoding, Steps
from tacit.data.text import Text
from tacit.errors import MisuseError
from tacit.session.drafts import Draft, agreed
from tacit.session.sampling import UNKNOWN, Sampling


class Written(Protocol):
    """What a run gives: the number of the best class, and the cost of the session so far."""

    @property
    def classes(self) -> NDArray[np.int64]:
        """Class numbers (N,)."""

    @property
    def logits(self) -> NDArray[np.float64] | None:
        """The numbers of all tokens (N, tokens), where the client learns them."""

    @property
    def report(self) -> dict[str, Any]:
        """The cost of the session so far."""


FEW = 4
"""Fewer inputs than this part of a pass do not fill one up."""

Step = Callable[..., Written]
"""Runs one input (1, *shape), or those of a pass, with noise (N * tokens,) for all numbers where there is some."""
Remember = Callable[[NDArray[np.float32]], Any]
"""Runs one input (1, *shape), or those of a pass, only for keys and values."""


@dataclass(frozen=True)
class Piece:
    """A token that was written, the text that it adds, and what it took.

    Bytes and rounds are of both directions; those of the first token include the setup of the session, and the prompt's
    steps. A token that was `drafted` came with the one before it, in whose cost it is.
    """

    token: int
    text: str
    seconds: float
    bytes: int
    rounds: int
    drafted: bool = False


@dataclass(frozen=True)
class Manner:
    """How an answer is written.

    All tokens of a prompt but the last go to `remember`, of a model with steps, `at_once` in a pass; without it to
    the step as well. `sampling` draws each token, of so many `tokens` that there are. With a `draft` every run reads
    `at_once` tokens, of which the last ones are guessed.
    """

    remember: Remember | None = None
    at_once: int = 1
    tokens: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    draft: Draft | None = None


def generate(step: Step, text: Text, prompt: str, tokens: int, manner: Manner | None = None) -> Iterator[Piece]:
    """The answer to a prompt, at most so many tokens of it, each as soon as it is known.

    It ends at a token that stops, after which `step` is not called again. Raises `MisuseError` for a model that
    writes no text, for a draft of one without passes, and what `step` raises: the pieces that came before are the text
    so far.
    """
    if text.decoding is None:
        raise MisuseError("the model writes no text; compile one for the next token (...ForCausalLM, or a .gguf file)")
    if tokens < 1:
        raise MisuseError(f"--tokens is 1 or more, not {tokens}")
    manner = manner or Manner()
    if manner.draft is not None and manner.at_once == 1:
        raise MisuseError("a draft needs runs of several tokens: a model with --context, and a server with --pass")
    ids, said, spent = text.prompt(prompt), "", Cost(0, 0)
    start = len(ids)
    reader = Reader(step, text, text.decoding, manner)
    while len(ids) < start + tokens:
        began = monotonic()
        for place, token in enumerate(reader.read(ids)[: start + tokens - len(ids)]):
            if token in text.decoding.stops:
                return
            ids.append(token)
            whole = str(text.encoder.decode(ids[start:], skip_special_tokens=True))
            # A character of several tokens is shown when it is complete.
            whole = whole.rstrip("\ufffd")
            new, said = (whole[len(said) :], whole) if whole.startswith(said) else ("", said)
            seconds, cost = (0.0, Cost(0, 0)) if place else (monotonic() - began, Cost.between(spent, reader.spent))
            yield Piece(token, new, seconds, *cost, drafted=place > 0)
        spent = reader.spent


class Reader:
    """What a session has read of a text, and which of the keys and values that it keeps belong to that."""

    def __init__(self, step: Step, text: Text, decoding: Decoding, manner: Manner) -> None:
        """Begin a text: what the session has read before is not part of it."""
        self.step, self.text, self.decoding, self.manner = step, text, decoding, manner
        self.done, self.spent = 0, Cost(0, 0)
        self.seen: list[bool] = []

    def read(self, ids: Sequence[int]) -> list[int]:
        """The best token behind the tokens `ids`, of which more have come since the last call, and more with a draft.

        What follows the first one is what was guessed and the model says too, and the token behind that.
        """
        if self.decoding.steps is None:
            return self.learn(self.text.inputs(self.decoding.inputs(ids, self.text.sequence, self.text.pad)))
        if not ids:
            raise MisuseError("a prompt needs at least one token")
        if self.manner.draft is not None:
            return self.read_on(ids, self.manner.draft)
        self.remember(ids[self.done : -1], self.manner.at_once if self.manner.remember else 1)
        return self.learn(self.inputs(self.decoding.steps, ids[self.done :]))

    def read_on(self, ids: Sequence[int], draft: Draft) -> list[int]:
        """Give what `read` gives, by passes alone: the last of them has guesses behind the tokens `ids`."""
        steps, at_once = self.steps(), self.manner.at_once
        unread = len(ids) - self.done
        self.remember(ids[self.done :][: (unread - 1) // at_once * at_once], at_once)
        known = ids[self.done :]
        room = min(at_once - len(known), steps.room(len(ids), self.decoding.beginning))
        proposed = draft.propose(ids, room) if room > 0 else []
        fill = at_once - len(known) - len(proposed)
        found = self.learn(self.inputs(steps, [*known, *proposed], fill))[fill + len(known) - 1 :]
        right = agreed(proposed, found)
        self.forget(len(proposed) - right)
        return found[: right + 1]

    def remember(self, tokens: Sequence[int], at_once: int) -> None:
        """Read tokens of which nobody learns what follows, as many as a pass has `at_once`.

        Inputs that fill the first pass up are copies of the first one, whose keys and values nobody attends to. A few
        that are left go one by one.
        """
        fill = filled(len(tokens), at_once) - len(tokens)
        while tokens:
            count = at_once - fill if len(tokens) + fill >= at_once else 1
            (self.manner.remember or self.step)(self.inputs(self.steps(), tokens[:count], fill))
            tokens, fill = tokens[count:], 0

    def learn(self, x: NDArray[np.float32]) -> list[int]:
        """The tokens behind inputs (N, rows, columns)."""
        sampling = self.manner.sampling
        noise = None if sampling.cuts else sampling.noise(len(x) * self.manner.tokens)
        made = self.step(x) if noise is None else self.step(x, noise)
        self.spent = cost_of(made.report)
        if not sampling.cuts:
            return [int(token) for token in made.classes]
        if made.logits is None:
            raise MisuseError(UNKNOWN)
        return sampling.choose(made.logits)

    def inputs(self, steps: Steps, tokens: Sequence[int], fill: int = 0) -> NDArray[np.float32]:
        """Inputs (fill + N, rows, 1) of the tokens that come next, behind so many copies of the first of them."""
        placed = []
        for token, place, own in [
            *[(tokens[0], self.done, False)] * fill,
            *((token, self.done + at, True) for at, token in enumerate(tokens)),
        ]:
            placed.append(steps.placed(token, place, self.decoding.beginning, self.seen))
            self.seen.append(own)
        self.done += len(tokens)
        return self.text.inputs(np.stack(placed))

    def forget(self, count: int) -> None:
        """The last `count` tokens that were read are not part of the text."""
        self.done -= count
        self.seen[len(self.seen) - count :] = [False] * count

    def steps(self) -> Steps:
        """How one token becomes an input."""
        assert self.decoding.steps is not None
        return self.decoding.steps


def filled(inputs: int, at_once: int) -> int:
    """How many inputs there are with those that fill passes up: a few that are left of a prompt go one by one."""
    left = inputs % at_once
    return inputs if left * FEW < at_once else inputs - left + at_once


def runs(text: Text, prompt: str, tokens: int, at_once: int = 1, drafted: bool = False) -> int:
    """How many inputs of a session an answer of so many tokens takes; `drafted`, where no guess is right."""
    if drafted:
        return (tokens + (len(text.prompt(prompt)) - 1) // at_once) * at_once
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
