"""Rows with named columns: .csv files, .parquet files, data frames and dictionaries of columns."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice, repeat
from operator import contains, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.cells import is_number, numbers
from tacit.data.schema import MOST_NAMED, Schema, Values
from tacit.errors import MisuseError

MOST_BYTES = 1 << 32
MOST_CELLS = 1 << 32
ROWS = 4096
"""Rows that are parsed at a time."""
INSTALL = "pip install 'tacit[tables]'"


class Rows(NamedTuple):
    """Inputs `x` (N, features), the columns that were asked for beside them, and the names of those left out."""

    x: NDArray[np.float32]
    kept: Mapping[str, Sequence[Any]] = {}
    extra: tuple[str, ...] = ()


class Part(NamedTuple):
    """Some rows of a file, by columns: `names` are empty where a file has none."""

    names: Sequence[str]
    columns: Sequence[Any]


def is_table(path: Path) -> bool:
    """Whether a file is one of rows with columns, by its name."""
    return path.suffix in (".csv", ".parquet")


def is_frame(x: Any) -> bool:
    """Whether `x` is a data frame: it has named columns and gives each by its name."""
    return hasattr(x, "columns") and hasattr(x, "__getitem__") and not isinstance(x, Mapping)


def by_column(x: Any) -> Values:
    """The columns of a data frame, or of a dictionary, by their names."""
    return {str(name): x[name] for name in (x.columns if is_frame(x) else x)}


def read(path: Path, columns: Sequence[str] = ()) -> NDArray[np.float32]:
    """The rows of a file as (N, columns) float32; missing values are NaN.

    A first line that is not of numbers names the columns. Where the model's `columns` are known too, they are taken by
    name, in the model's order, and others are left out. Raises `MisuseError` for an unreadable file, columns that are
    missing or named twice, and rows of different lengths.
    """
    return load(path, Schema.plain(columns) if columns else None).x


def load(path: Path, schema: Schema | None = None, kept: Sequence[str] = ()) -> Rows:
    """The rows of a file, encoded by a `schema`; without one all columns but those `kept` are numbers.

    `kept` names columns that are wanted beside the inputs. Raises errors as `read` does.
    """
    encoded: list[NDArray[np.float32]] = []
    beside: dict[str, list[Any]] = {name: [] for name in kept}
    names: Sequence[str] = ()
    first = 1
    for part in parts(path, Wish(schema, kept)):
        names = part.names
        if kept and not names:
            raise MisuseError(f"{path} does not name its columns: write the names into the first line")
        lacking = [name for name in kept if name not in names]
        if lacking:
            raise MisuseError(f"{path} has no column {', '.join(f'`{name}`' for name in lacking)}")
        encoded.append(inputs(part, schema, kept, str(path), first))
        for name, values in beside.items():
            values.extend(part.columns[part.names.index(name)])
        first += len(encoded[-1])
    if not encoded:
        raise MisuseError(f"{path} holds no rows")
    used = set(kept) | set(schema.names if schema is not None else names)
    return Rows(np.concatenate(encoded), beside, tuple(name for name in names if name not in used))


def inputs(part: Part, schema: Schema | None, kept: Sequence[str], source: str, first: int) -> NDArray[np.float32]:
    """Inputs (N, features) of some rows."""
    if schema is None:
        chosen = [at for at, name in enumerate(part.names) if name not in kept] or range(len(part.columns))
        shown = part.names or [str(at + 1) for at in range(len(part.columns))]
        found = [numbers(part.columns[at], f"{source}: column `{shown[at]}`", first) for at in chosen]
        with np.errstate(over="ignore"):
            return np.stack(found, axis=1).astype(np.float32)
    if part.names:
        schema.absent(part.names, source)
        return schema.encode(dict(zip(part.names, part.columns, strict=True)), source, first)
    if len(part.columns) != len(schema.columns):
        count = len(schema.columns)
        raise MisuseError(
            f"{source} has rows of {len(part.columns)} values without names; the model has {count} columns"
        )
    return schema.encode(dict(zip(schema.names, part.columns, strict=True)), source, first)


@dataclass(frozen=True)
class Wish:
    """Choose what is read of a file: the columns of a schema, or all but those `kept` as numbers, and those `kept`."""

    schema: Schema | None
    kept: Sequence[str]

    def places(self, names: Sequence[str], width: int) -> tuple[list[int], list[int]]:
        """Which of `width` columns are wanted as numbers, and which as texts."""
        shown = names or (self.schema.names if self.schema is not None and len(self.schema.names) == width else ())
        if self.schema is None:
            numeric = [at for at in range(width) if not shown or shown[at] not in self.kept]
            return numeric, [at for at in range(width) if shown and shown[at] in self.kept]
        kinds = {column.name: column.categories is None for column in self.schema.columns}
        numeric = [at for at, name in enumerate(shown) if kinds.get(name, False) and name not in self.kept]
        chosen = set(numeric)
        return numeric, [
            at for at, name in enumerate(shown) if at not in chosen and (name in kinds or name in self.kept)
        ]


def parts(path: Path, wish: Wish) -> Iterator[Part]:
    """The rows of a file, some at a time."""
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise MisuseError(f"{path} is no regular file, or has more than {MOST_BYTES} bytes")
    yield from of_parquet(path) if path.suffix == ".parquet" else of_csv(path, wish)


def of_csv(path: Path, wish: Wish) -> Iterator[Part]:
    """The rows of a .csv file in UTF-8; the first line names the columns unless it is of numbers."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines: Iterator[str] = filter(str.strip, file)
            reader = csv.reader(lines)
            first = next(reader, None)
            if first is None:
                return
            named = not all(map(is_number, first))
            names = list(map(str.strip, first)) if named else []
            again = lines if named else chain([",".join(first)], lines)
            yield from chunks(path, names, again, len(first), wish)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MisuseError(f"{path} is no readable .csv file: {error}") from error


def chunks(path: Path, names: Sequence[str], lines: Iterator[str], width: int, wish: Wish) -> Iterator[Part]:
    """Rows by columns, some at a time; raises `MisuseError` for one of another length.

    Lines without quotes are split by NumPy, several times faster than cell by cell. From the first quote on lines are
    no rows.
    """
    numeric, text = wish.places(names, width)
    done = 0
    while some := list(islice(lines, ROWS)):
        if any(map(contains, some, repeat('"'))):
            yield from quoted(path, names, chain(some, lines), width, done)
            return
        columns = split(some, numeric, text, width)
        if columns is None:
            yield from quoted(path, names, iter(some), width, done)
        else:
            yield Part(names, columns)
        done += len(some)


def split(lines: Sequence[str], numeric: Sequence[int], text: Sequence[int], width: int) -> list[Any] | None:
    """Columns of lines without quotes, numbers as arrays, those that nobody wants empty.

    None where a line has another length, or a cell that should be a number is another word than an empty one.
    """
    if set(map(str.count, lines, repeat(","))) != {width - 1}:
        return None
    columns: list[Any] = [()] * width
    if numeric:
        try:
            values = np.loadtxt(map(filled, lines), np.float64, delimiter=",", usecols=numeric, comments=None, ndmin=2)
        except ValueError:
            return None
        for at, column in zip(numeric, values.T, strict=True):
            columns[at] = column
    if text:
        rows = list(csv.reader(lines))
        for at in text:
            columns[at] = list(map(itemgetter(at), rows))
    return columns


def filled(line: str) -> str:
    """A line with a word in place of each empty cell."""
    line = line.rstrip("\r\n").replace(",,", ",nan,").replace(",,", ",nan,")
    before = "nan" if line.startswith(",") else ""
    return before + line + ("nan" if line.endswith(",") else "")


def quoted(path: Path, names: Sequence[str], lines: Iterator[str], width: int, done: int) -> Iterator[Part]:
    """Rows by columns, cell by cell, of lines with quotes or words; `done` rows were before them."""
    rows = csv.reader(lines)
    while some := list(islice(rows, ROWS)):
        if set(map(len, some)) != {width}:
            uneven = next(at for at, row in enumerate(some) if len(row) != width)
            raise MisuseError(f"{path}: row {done + uneven + 1} has {len(some[uneven])} values, not {width}")
        yield Part(names, list(zip(*some, strict=True)))
        done += len(some)


def of_parquet(path: Path) -> Iterator[Part]:
    """The rows of a .parquet file."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        raise MisuseError(f"{path}: .parquet files need pyarrow, which is not installed; run {INSTALL}") from None
    try:
        file = parquet.ParquetFile(path)
        names = list(file.schema_arrow.names)
        check_size(path, file.metadata.num_rows * max(len(names), 1))
        for batch in file.iter_batches(batch_size=ROWS):
            if batch.num_rows:
                yield Part(names, [of_arrow(column) for column in batch.columns])
    except MisuseError:
        raise
    except Exception as error:  # errors of Arrow have no base class of their own
        raise MisuseError(f"{path} is no readable .parquet file: {error}") from error


def check_size(path: Path, cells: int) -> None:
    """Raise `MisuseError` for a file that says it has more than so many cells."""
    if cells > MOST_CELLS:
        raise MisuseError(f"{path} says that it has {cells:,} cells, more than any table here")


def of_arrow(column: Any) -> Any:
    """A column of Arrow as an array of numbers, or a list of other values."""
    kind = str(column.type)
    if kind.startswith(("int", "uint", "float", "double", "half", "bool")):
        values = column.to_numpy(zero_copy_only=False)
        return values if values.dtype != object else column.to_pylist()
    return column.to_pylist()


def listed(names: Sequence[str]) -> str:
    """Names for people, the first of many."""
    return ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
