"""Files of text: a sentence per line, or tables of sentences, pairs and scores (.tsv)."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

LARGEST_FILE = 1 << 28
SENTENCES = ("sentence", "text", "sentence1")
ENDINGS = {".txt", ".tsv"}
PAIR = "\t"
"""What stands between the two texts of a pair that a model reads together."""


@dataclass(frozen=True)
class Corpus:
    """Texts of a file. With `pairs`, `texts` has each different text once and `pairs` (N, 2) which two belong together.

    `scores` (N,) are the similarities of pairs, `labels` (N,) the classes of texts or pairs, where the file has them.
    """

    texts: tuple[str, ...]
    pairs: NDArray[np.int64] | None = None
    scores: NDArray[np.float64] | None = None
    labels: NDArray[np.int64] | None = None

    def inputs(self, classifies: bool) -> tuple[str, ...]:
        """What a model reads: texts each by itself, or for one that `classifies` both of a pair with a tab between."""
        if self.pairs is None or not classifies:
            return self.texts
        return tuple(f"{self.texts[first]}{PAIR}{self.texts[second]}" for first, second in self.pairs)

    def first(self, limit: int | None) -> "Corpus":
        """The first `limit` texts or pairs."""
        if limit is None:
            return self
        labels = None if self.labels is None else self.labels[:limit]
        if self.pairs is None:
            return Corpus(self.texts[:limit], None, None, labels)
        pairs = [(self.texts[first], self.texts[second]) for first, second in self.pairs[:limit]]
        return paired(pairs, None if self.scores is None else self.scores[:limit], labels)


def is_text(path: Path) -> bool:
    """Whether the name is that of a file of text."""
    return path.suffix.lower() in ENDINGS


def own() -> tuple[str, ...]:
    """Thirty texts of various lengths that come with the package."""
    with as_file(files("tacit") / "assets" / "calibration_texts.txt") as path:
        return load(path).texts


def load(path: Path, classes: Sequence[str] = ()) -> Corpus:
    """Read a file: of a .tsv file the columns sentence1 and sentence2, or sentence, or text; else a text per line.

    Labels are numbers, or names among `classes`; names of which nothing is known are left out.
    Raises `MisuseError` for a file that is absent, no UTF-8, empty, or a table without such columns.
    """
    lines = read_lines(path)
    if path.suffix.lower() != ".tsv":
        texts = tuple(line for line in (line.strip() for line in lines) if line)
        return Corpus(filled(path, texts))
    heading, *rows = [line.split("\t") for line in lines if line.strip()] or [[]]
    if any(len(row) != len(heading) for row in rows):
        number = next(index for index, row in enumerate(rows, 2) if len(row) != len(heading))
        raise MisuseError(f"{path}: line {number} has not the {len(heading)} columns of the first")
    columns = {name: tuple(row[index] for row in rows) for index, name in enumerate(heading)}
    if "sentence1" in columns and "sentence2" in columns:
        filled(path, columns["sentence1"])
        pairs = list(zip(columns["sentence1"], columns["sentence2"], strict=True))
        scores = numbers(path, columns["score"]) if "score" in columns else None
        return paired(pairs, scores, numbered(path, columns.get("label"), classes))
    names = [name for name in SENTENCES if name in columns]
    if not names:
        raise MisuseError(f"{path} has no column sentence1 and sentence2, sentence, or text; its first line names them")
    return Corpus(filled(path, columns[names[0]]), None, None, numbered(path, columns.get("label"), classes))


def read_lines(path: Path) -> list[str]:
    """The lines of a regular file in UTF-8."""
    if not path.is_file():
        raise MisuseError(f"{path} does not exist" if not path.exists() else f"{path} is not a regular file")
    if path.stat().st_size > LARGEST_FILE:
        raise MisuseError(f"{path} is larger than {LARGEST_FILE >> 20} MiB; split it")
    try:
        return path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise MisuseError(f"{path} is no text in UTF-8: {error}") from error


def filled(path: Path, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The texts, of which there must be some."""
    if not texts:
        raise MisuseError(f"{path} holds no text")
    return texts


def paired(
    pairs: Sequence[tuple[str, str]], scores: NDArray[np.float64] | None, labels: NDArray[np.int64] | None = None
) -> Corpus:
    """Pairs, with each different text once."""
    places: dict[str, int] = {}
    found = [[places.setdefault(text, len(places)) for text in pair] for pair in pairs]
    return Corpus(tuple(places), np.array(found, np.int64), scores, labels)


def numbered(path: Path, column: Sequence[str] | None, classes: Sequence[str]) -> NDArray[np.int64] | None:
    """A column of classes, by name or number; None if it is absent, or has names and no `classes` are known."""
    if column is None:
        return None
    places = {name: index for index, name in enumerate(classes)}
    found = [places.get(value, int(value) if value.isdecimal() else -1) for value in column]
    if -1 not in found:
        return np.array(found, np.int64)
    if classes:
        raise MisuseError(f"{path}: label `{column[found.index(-1)]}` is none of {', '.join(classes)}")
    return None


def numbers(path: Path, column: Sequence[str]) -> NDArray[np.float64]:
    """A column of finite numbers."""
    try:
        values = np.array([float(value) for value in column])
    except ValueError as error:
        raise MisuseError(f"{path} has a score that is no number: {error}") from error
    if not np.isfinite(values).all():
        raise MisuseError(f"{path} has a score that is not finite")
    return values
