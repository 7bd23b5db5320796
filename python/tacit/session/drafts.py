"""Drafts: tokens that a client guesses an answer to go on with, so that one private run can write several of them.

A run of several tokens that follow each other (`--pass`) takes about the rounds of one. The client has the last token
and what it guesses to come behind it read together, and learns the best token behind each of them. Guesses that were
right cost no run of their own, and behind the first wrong one the text goes on with what the model said. The text is
the one that steps would have written: each token is the model's, given the tokens before it (Leviathan, Kalman and
Matias, "Fast inference from transformers via speculative decoding", ICML 2023, with one guess at a time; POST, ICML
2025, for private inference). What a client guesses by is public, or its own.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

LONGEST = 4
"""Tokens that an earlier place has to have in common with the end of a text, at most."""


class Draft(Protocol):
    """What guesses how a text goes on."""

    def propose(self, ids: Sequence[int], count: int) -> list[int]:
        """At most `count` tokens that may follow the tokens `ids` of a prompt and its answer."""


class NGrams:
    """Guesses that a text goes on as it did before, or as others do, behind the same tokens.

    The longest end of the text, of at most four tokens, that was there before decides: in the text itself, where it was
    last, or else among `texts`, by what follows most often there.
    """

    def __init__(self, texts: Iterable[Sequence[int]] = ()) -> None:
        """Count what follows what in `texts`, each the tokens of one."""
        self.following: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for ids in texts:
            self.learn(ids)

    def learn(self, ids: Sequence[int]) -> None:
        """Count what follows what in one more text, such as an earlier prompt with its answer."""
        for place in range(1, len(ids)):
            for size in range(1, min(place, LONGEST) + 1):
                self.following[tuple(ids[place - size : place])][ids[place]] += 1

    def propose(self, ids: Sequence[int], count: int) -> list[int]:
        """Tokens that follow, fewer than `count` where the end of the text is new."""
        text = list(ids)
        while len(text) < len(ids) + count:
            token = self.next(text)
            if token is None:
                break
            text.append(token)
        return text[len(ids) :]

    def next(self, text: Sequence[int]) -> int | None:
        """The token that follows, if there is a guess."""
        for size in range(min(LONGEST, len(text)), 0, -1):
            end = list(text[-size:])
            for place in range(len(text) - 1, size - 1, -1):
                if list(text[place - size : place]) == end:
                    return text[place]
            if (found := self.following.get(tuple(end))) is not None:
                return found.most_common(1)[0][0]
        return None


class Guesses(NamedTuple):
    """What guesses, and how many tokens a run reads: the last known one, and guesses behind it."""

    draft: Draft
    at_once: int


def agreed(proposed: Sequence[int], found: Sequence[int]) -> int:
    """How many of the proposed tokens the model says too, up to the first that it does not.

    `found` are the model's tokens behind the last known token and behind each of the proposed ones.
    """
    pairs = enumerate(zip(proposed, found, strict=False))
    return next((place for place, (guess, token) in pairs if guess != token), min(len(proposed), len(found)))


def runs_of(guesses: Guesses, prompt: Sequence[int], answer: Sequence[int]) -> int:
    """How many runs write an `answer` to a `prompt`, where the model writes exactly that.

    Runs that only read the prompt are not counted.
    """
    written, runs = 0, 0
    known = (len(prompt) - 1) % guesses.at_once + 1
    while written < len(answer):
        proposed = guesses.draft.propose([*prompt, *answer[:written]], guesses.at_once - known)
        written += agreed(proposed, answer[written:]) + 1
        runs, known = runs + 1, 1
    return runs
