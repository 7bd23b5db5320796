"""What results of token classification and question answering say of a text: labels of words, and answers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.text import Text, parted

LONGEST_ANSWER = 30
"""Tokens of an answer at most."""
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Word:
    """A word of a text, and its label or the number of its class."""

    word: str
    label: str

    def content(self) -> dict[str, Any]:
        """The fields for JSON."""
        return {"word": self.word, "label": self.label}


@dataclass(frozen=True)
class Answer:
    """A part of a text from one place to before another, in characters, and the sum of the scores of its ends."""

    text: str
    start: int
    end: int
    score: float

    def content(self) -> dict[str, Any]:
        """The fields for JSON."""
        score = self.score if np.isfinite(self.score) else None
        return {"answer": self.text, "start": self.start, "end": self.end, "score": score}


def words(text: Text, sentence: str, values: Values) -> list[Word]:
    """The words that fit into the model, each labelled as its first token; `values` (sequence, classes)."""
    encoding, found, last = text.encoded(sentence), [], None
    parts = parted(sentence)
    for index, (part, place) in enumerate(zip(encoding.sequence_ids, encoding.word_ids, strict=True)):
        if index >= text.sequence or part is None or (part, place) == last:
            continue
        last = part, place
        start, end = encoding.word_to_chars(place, part)
        best = int(values[index].argmax())
        label = text.labels[best] if best < len(text.labels) else str(best)
        found.append(Word(parts[part][start:end], label))
    return found


def answer(text: Text, sentence: str, values: Values) -> Answer:
    """The best answer in the last part of a text; `values` (sequence, 2) score where it starts and where it ends.

    Where no token of that part fits into the model the answer is empty, with a score of minus infinity.
    """
    encoding, parts = text.encoded(sentence), parted(sentence)
    last = len(parts) - 1
    inside = [index for index, part in enumerate(encoding.sequence_ids[: text.sequence]) if part == last]
    best = max(spans(inside, values), default=None)
    if best is None:
        return Answer("", 0, 0, -np.inf)
    score, first, final = best
    start, end = encoding.offsets[first][0], encoding.offsets[final][1]
    return Answer(parts[last][start:end], start, end, score)


def spans(inside: list[int], values: Values) -> Iterator[tuple[float, int, int]]:
    """Scores, first and last token of all answers among the tokens `inside`."""
    for place, first in enumerate(inside):
        for final in inside[place : place + LONGEST_ANSWER]:
            yield float(values[first, 0] + values[final, 1]), first, final
