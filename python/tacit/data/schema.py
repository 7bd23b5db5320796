"""What clients of a model of tables know: the columns of a row, how they become inputs, and what results mean.

All of it is public. A number is sent as it is; of a category the client sends what the encoder's public list of
categories says. Statistics of the training data (means, deviations, what stands in for missing values) stay in the
server's weights and thresholds.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tacit.data.cells import numbers, texts
from tacit.data.links import Link
from tacit.data.links import of as link_of
from tacit.errors import MisuseError

ENDING = ".schema"
MOST_BYTES = 1 << 26
MOST_NAMED = 50
Category = str | float | None
Floats = NDArray[np.float32]
Values = Mapping[str, Any]
Kind = Literal["value", "filled", "missing", "lookup", "normalised"]
TWO = ("sigmoid", "step")
"""Links of scores that tell two classes apart by their sign."""
NORMS: Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "l1": lambda x: np.abs(x).sum(axis=1),
    "l2": lambda x: np.sqrt((x * x).sum(axis=1)),
    "max": lambda x: np.abs(x).max(axis=1),
}


@dataclass(frozen=True)
class Column:
    """A column of a row: of numbers, or of `categories` in the order of the encoder, where None is a missing value.

    A category that is not among them is refused, or with `unknown` stands behind the last.
    """

    name: str
    categories: tuple[Category, ...] | None = None
    unknown: bool = False


@dataclass(frozen=True)
class Feature:
    """A number that the client sends, made of `column` (its place in the schema).

    `value` is the number itself; `filled` is 0 where it is missing, `missing` is 1 there and else 0; `lookup` is what
    `table` says of a category, the last entry being that of unknown ones; `normalised` is the number divided by the
    norm of all columns in `together`.
    """

    kind: Kind
    column: int
    table: tuple[float, ...] = ()
    norm: str = ""
    together: tuple[int, ...] = ()


@dataclass(frozen=True)
class Result:
    """What results mean.

    `margin`: one number, above zero for the second of two `names`; `scores`: a number for each class in `names`, the
    largest wins; `value`: estimates, one for each of `names`, or one without a name. `link` makes estimates of scores.
    Scores differ from the library's by at most `error`, where that is known.
    """

    kind: Literal["margin", "scores", "value"] = "value"
    names: tuple[str, ...] = ()
    error: float | None = None
    link: Link | None = None

    def labels(self, values: NDArray[np.float64]) -> list[str | None] | None:
        """The class of each row of scores (N, results); None where the error may turn it. No list for estimates."""
        if self.kind == "value":
            return None
        error = self.error or 0.0
        if self.kind == "margin":
            first, second = self.names if len(self.names) == 2 else ("0", "1")
            score = values[:, 0]
            chosen = np.where(score > 0, second, first).tolist()
            near = np.abs(score) < error
        else:
            count = values.shape[1]
            names = self.names if len(self.names) == count else tuple(map(str, range(count)))
            order = np.sort(values, axis=1)
            chosen = [names[at] for at in values.argmax(axis=1)]
            near = order[:, -1] - order[:, -2] < 2 * error if values.shape[1] > 1 else np.zeros(len(values), bool)
        return [None if doubt else label for label, doubt in zip(chosen, near, strict=True)]


def usual(count: int, names: Sequence[str] = (), link: Link | None = None) -> Result:
    """What `count` results mean where nothing but their `names` and their `link` is known."""
    if count > 1:
        return Result("scores", tuple(names), link=link)
    two = link is not None and link.function in TWO
    return Result("margin" if two else "value", tuple(names) if len(names) == 2 else (), link=link)


@dataclass(frozen=True)
class Schema:
    """The columns of a row in the model's order, the features that are made of them, and what results mean."""

    columns: tuple[Column, ...]
    features: tuple[Feature, ...]
    result: Result = field(default_factory=Result)

    @classmethod
    def plain(cls, names: Sequence[str], result: Result | None = None) -> Self:
        """Numbers as they are, one feature a column."""
        columns = tuple(Column(name) for name in names)
        return cls(columns, tuple(Feature("value", at) for at in range(len(names))), result or Result())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def is_plain(self) -> bool:
        """Whether features are the columns as they are."""
        return all(each == Feature("value", at) for at, each in enumerate(self.features)) and len(self.features) == len(
            self.columns
        )

    def with_error(self, error: float) -> Self:
        """Give the schema with another bound of the error."""
        return replace(self, result=replace(self.result, error=error))

    def absent(self, given: Sequence[str], source: str) -> None:
        """Raise `MisuseError` that names all columns which are not `given`, or are given twice."""
        known = set(given)
        lacking = [name for name in self.names if name not in known]
        if lacking:
            shown = ", ".join(lacking[:MOST_NAMED]) + (", ..." if len(lacking) > MOST_NAMED else "")
            raise MisuseError(f"{source} lacks {len(lacking)} of the model's columns: {shown}")
        twice = [] if len(known) == len(given) else [name for name in self.names if list(given).count(name) > 1]
        if twice:
            raise MisuseError(f"{source} has columns of one name: {', '.join(twice[:MOST_NAMED])}")

    def encode(self, values: Values, source: str = "the table", first: int = 1) -> Floats:
        """Inputs (N, features) of columns by their names, each (N,); `first` is the number of the first row.

        Raises `MisuseError` for columns that are missing, what is no number, and unknown categories. It names the
        place only: inputs are private and errors end in logs.
        """
        self.absent(list(values), source)
        raw: dict[int, NDArray[np.float64]] = {}
        codes: dict[int, NDArray[np.int64]] = {}
        for at, column in enumerate(self.columns):
            where = f"{source}: column `{column.name}`"
            if column.categories is None:
                raw[at] = numbers(values[column.name], where, first)
            else:
                codes[at] = coded(column, values[column.name], where, first)
        counts = {len(array) for array in (*raw.values(), *codes.values())}
        if len(counts) != 1:
            raise MisuseError(f"{source} has columns of different lengths")
        made = np.empty((counts.pop(), len(self.features)), np.float32)
        norms: dict[tuple[str, tuple[int, ...]], NDArray[np.float64]] = {}
        with np.errstate(over="ignore"):
            for place, each in enumerate(self.features):
                made[:, place] = self.feature(each, raw, codes, norms)
        return made

    def feature(
        self,
        feature: Feature,
        raw: Mapping[int, NDArray[np.float64]],
        codes: Mapping[int, NDArray[np.int64]],
        norms: dict[tuple[str, tuple[int, ...]], NDArray[np.float64]],
    ) -> NDArray[np.float64]:
        """One feature (N,); `norms` keeps those that were computed."""
        if feature.kind == "lookup":
            return np.asarray(feature.table, np.float64)[codes[feature.column]]
        x = raw[feature.column]
        if feature.kind == "missing":
            return np.isnan(x).astype(np.float64)
        if feature.kind == "filled":
            return np.where(np.isnan(x), 0.0, x)
        if feature.kind == "normalised":
            key = (feature.norm, feature.together)
            if key not in norms:
                norm = NORMS[feature.norm](np.stack([raw[at] for at in feature.together], axis=1))
                norms[key] = np.where(norm == 0, 1.0, norm)
            return x / norms[key]
        return x

    def to_json(self) -> str:
        """The schema as `read` and `parse` take it."""
        columns = [
            {"name": each.name}
            | ({} if each.categories is None else {"categories": list(each.categories), "unknown": each.unknown})
            for each in self.columns
        ]
        features = [
            {"kind": each.kind, "column": each.column}
            | ({"table": [None if math.isnan(value) else value for value in each.table]} if each.table else {})
            | ({"norm": each.norm, "together": list(each.together)} if each.norm else {})
            for each in self.features
        ]
        link = None if self.result.link is None else self.result.link.content()
        result = {"kind": self.result.kind, "names": list(self.result.names), "link": link}
        return json.dumps(
            {"columns": columns, "features": features, "result": result | {"error": self.result.error}},
            allow_nan=False,
        )

    def write(self, path: Path) -> None:
        """A file for clients."""
        path.write_text(self.to_json() + "\n", encoding="utf-8")


def coded(column: Column, values: Any, where: str, first: int) -> NDArray[np.int64]:
    """The place of each value (N,) among the categories of a column, behind the last for unknown ones."""
    categories = column.categories or ()
    count = len(categories)
    places: dict[Any, int] = {category: at for at, category in enumerate(categories)}
    if all(category is None or isinstance(category, float) for category in categories):
        found = numbers(values, where, first)
        given: list[Any] = [None if math.isnan(value) else value for value in found.tolist()]
    else:
        given = texts(values, None in places)
    codes = np.fromiter(map(places.get, given, repeat(count)), np.int64, len(given))
    unknown = np.flatnonzero(codes == count)
    if len(unknown) and not column.unknown:
        raise MisuseError(
            f"{where}, row {first + int(unknown[0])} holds a category that the model's encoder does not know; "
            "map it to one that it knows, or train the encoder with handle_unknown='ignore'"
        )
    return codes


def parse(text: str | bytes, source: str = "the schema") -> Schema:
    """The schema in a JSON; raises `MisuseError` for what is none."""
    try:
        return checked(json.loads(text))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        raise MisuseError(f"{source} is no schema of a table ({type(error).__name__}: {error})") from error


def read(path: Path) -> Schema:
    """The schema in the file X.schema that `compile` wrote for clients."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise MisuseError(f"{path} is no regular file, or has more than {MOST_BYTES} bytes")
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise MisuseError(f"{path} cannot be read: {error}") from error


def checked(content: Any) -> Schema:
    """The schema in parsed JSON; raises whatever it does for one that does not hold together."""
    columns = tuple(
        Column(
            str(each["name"]),
            None if "categories" not in each else tuple(map(category, each["categories"])),
            bool(each.get("unknown", False)),
        )
        for each in content["columns"]
    )
    features = tuple(checked_feature(each, columns) for each in content["features"])
    given = content["result"]
    if given["kind"] not in ("margin", "scores", "value"):
        raise ValueError("a result of no known kind")
    error = None if given.get("error") is None else float(given["error"])
    result = Result(given["kind"], tuple(map(str, given["names"])), error, link_of(given.get("link")))
    if len({column.name for column in columns}) != len(columns) or not features:
        raise ValueError("columns of one name, or no features")
    return Schema(columns, features, result)


def category(given: Any) -> Category:
    """A category: a text, a number, or None for a missing value."""
    if given is None or isinstance(given, str):
        return given
    return float(given)


def checked_feature(given: Any, columns: Sequence[Column]) -> Feature:
    """A feature whose columns exist and are of its kind."""
    kind, at = given["kind"], int(given["column"])
    together = tuple(map(int, given.get("together", ())))
    table = tuple(math.nan if value is None else float(value) for value in given.get("table", ()))
    if kind not in ("value", "filled", "missing", "lookup", "normalised"):
        raise ValueError("a feature of no known kind")
    if not all(0 <= place < len(columns) for place in (at, *together)):
        raise ValueError("a feature of no column")
    categories = columns[at].categories
    if (kind == "lookup") != (categories is not None) or (categories is not None and len(table) != len(categories) + 1):
        raise ValueError("a feature that does not fit its column")
    if any(columns[place].categories is not None for place in together):
        raise ValueError("a norm of categories")
    if kind == "normalised" and (given["norm"] not in NORMS or at not in together):
        raise ValueError("no known norm")
    return Feature(kind, at, table, str(given.get("norm", "")), together)
