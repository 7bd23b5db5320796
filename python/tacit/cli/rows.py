"""How commands show, write and describe the results of rows of a table."""

import csv
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tacit.data.inputs import Inputs
from tacit.data.schema import Result
from tacit.data.tables import is_table
from tacit.errors import MisuseError
from tacit.report import terminal

FIRST = 10
"""Rows that are shown of many."""
MOST_LABELS = 20
UNDECIDED = "undecided"


@dataclass(frozen=True)
class RowOptions:
    """How results of rows are named and kept."""

    id: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Name each row of a table by this column instead of its number."),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE.csv", help="Write a line for each input: its row or id, scores, label."),
    ] = None

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns that are wanted beside the inputs."""
        return () if self.id is None else (self.id,)

    def results(
        self,
        given: Inputs,
        values: NDArray[np.float64] | None,
        classes: NDArray[np.int64],
        meaning: Result,
        names: Sequence[str],
    ) -> "Results":
        """Results of rows: `values` (N, results) where they are open, else `classes` (N,), which are called `names`."""
        if self.id is not None and self.id not in given.kept:
            raise MisuseError(
                f"--id {self.id} names a column of a .csv or .parquet file; the inputs are of another kind"
            )
        ids = None if self.id is None else tuple(given.kept[self.id])
        return Results(meaning, values, classes, self.id or "row", ids, tuple(names))


@dataclass(frozen=True)
class Results:
    """Results of rows with what they mean; `ids` are None where rows have numbers, from 1.

    `certain` are probabilities (N,) of the classes, where the server reveals those alone.
    """

    meaning: Result
    values: NDArray[np.float64] | None
    classes: NDArray[np.int64]
    key: str
    ids: tuple[Any, ...] | None
    names: tuple[str, ...]
    certain: NDArray[np.float64] | None = None

    @property
    def labels(self) -> list[str | None] | None:
        """The class of each row, None where the error of its score may turn it; no list for estimates."""
        if self.values is not None:
            return self.meaning.labels(self.values)
        names = self.names or self.meaning.names
        return [names[at] if at < len(names) else str(at) for at in self.classes.tolist()]

    def columns(self) -> Iterator[tuple[str, Sequence[Any]]]:
        """The columns of the table of results, by name."""
        yield self.key, self.ids if self.ids is not None else range(1, len(self.classes) + 1)
        if self.values is not None:
            yield from zip(self.headings(self.values.shape[1]), self.values.T.tolist(), strict=True)
            yield from self.estimates(self.values)
        if self.certain is not None:
            yield "probability", self.certain.tolist()
        labels = self.labels
        if labels is not None:
            yield "label", [UNDECIDED if label is None else label for label in labels]

    def estimates(self, values: NDArray[np.float64]) -> Iterator[tuple[str, Sequence[Any]]]:
        """What the link makes of scores: probabilities, or other estimates."""
        link = self.meaning.link
        if link is None:
            return
        word = "probability" if link.function in ("sigmoid", "softmax") else "estimate"
        names = [word] if values.shape[1] == 1 else [f"{word}_{name}" for name in self.short(values.shape[1])]
        yield from zip(names, link.estimates(values).T.tolist(), strict=True)

    def short(self, count: int) -> list[str]:
        """Names of results, or their numbers."""
        names = self.meaning.names
        return [names[at] if at < len(names) else str(at) for at in range(count)]

    def headings(self, count: int) -> list[str]:
        """What columns of scores are called."""
        names = self.meaning.names
        if self.meaning.kind == "scores" and count > 1:
            return [f"score_{name}" for name in self.short(count)]
        if self.meaning.kind == "value" and len(names) == count:
            return list(names)
        word = "score" if self.meaning.kind != "value" else "value"
        return [word] if count == 1 else [f"{word}_{at}" for at in range(count)]

    def fields(self) -> dict[str, Any]:
        """What `--json` says beside the integers: `rows`, `undecided`, `error_bound`, `ids`."""
        labels = self.labels
        found: dict[str, Any] = {"error_bound": self.meaning.error}
        if labels is not None:
            found |= {"label": labels, "undecided": labels.count(None)}
        return found if self.ids is None else {**found, "ids": [plain(value) for value in self.ids]}

    def write(self, path: Path) -> None:
        """A .csv file with a line for each row."""
        named = dict(self.columns())
        try:
            with path.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(named)
                writer.writerows(zip(*map(written, named.values()), strict=True))
        except OSError as error:
            raise MisuseError(f"cannot write {path}: {error}") from error

    def show(self) -> None:
        """The first rows as a table, and a summary of all where there are more."""
        named = dict(self.columns())
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in named:
            table.add_column(Text(name), justify="right", overflow="fold")
        for row in zip(*(list(values[:FIRST]) for values in named.values()), strict=True):
            table.add_row(*(Text(shown(value)) for value in row))
        terminal.console.print(table)
        for line in self.summary(named):
            terminal.console.print(line, highlight=False, markup=False)

    def summary(self, named: Mapping[str, Sequence[Any]]) -> Iterator[str]:
        """How many rows there are beyond those shown, how many of each label, and the range of scores."""
        count = len(self.classes)
        if count > FIRST:
            yield f"{count:,} rows; the first {FIRST} are shown (--output FILE.csv writes all)"
        if "label" in named and count > 1:
            most = Counter(named["label"]).most_common(MOST_LABELS)
            yield "labels: " + ", ".join(f"{label} {number:,}" for label, number in most)
        if count > FIRST and self.values is not None and self.values.shape[1] == 1:
            low, middle, high = np.quantile(self.values[:, 0], [0, 0.5, 1])
            yield f"scores: {low:.6g} to {high:.6g}, median {middle:.6g}"
        if self.values is not None and self.meaning.error:
            yield f"scores are within {self.meaning.error:.2g} of the model's"


def are_rows(given: Inputs, options: RowOptions, meaning: Result | None, files: Sequence[str]) -> bool:
    """Whether results are shown as those of rows: of a table, or where someone asks for it."""
    asked = options.id is not None or options.output is not None or meaning is not None
    return given.lengths is None and (asked or any(is_table(Path(name)) for name in files))


def plain(value: Any) -> Any:
    """An id as JSON has it."""
    if value is None or isinstance(value, str | bool | int):
        return value
    return value if isinstance(value, float) and math.isfinite(value) else str(value)


def written(values: Sequence[Any]) -> Sequence[Any]:
    """Cells as a file has them: nine digits tell all scores apart."""
    return [f"{value:.9g}" if isinstance(value, float) else value for value in values]


def shown(value: Any) -> str:
    """A cell for people."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
