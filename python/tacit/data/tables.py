"""Rows of numbers with named columns, from .csv files."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

MOST_BYTES = 1 << 30
MISSING = frozenset({"", "na", "nan", "null", "none", "?"})
"""What stands for a missing value, in lower case."""


def is_table(path: Path) -> bool:
    """Whether a file is one of rows with columns, by its name."""
    return path.suffix == ".csv"


def read(path: Path, columns: Sequence[str] = ()) -> NDArray[np.float32]:
    """The rows of a file as (N, columns) float32; missing values are NaN.

    A first line that is not of numbers names the columns. Where the model's `columns` are known too, they are taken by
    name, in the model's order, and others are left out. Raises `MisuseError` for an unreadable file, columns that are
    missing or named twice, and rows of different lengths.
    """
    header, rows = split(path)
    if columns and header:
        chosen = places(path, header, columns)
        rows = [[row[place] for place in chosen] for row in rows]
    values = np.empty((len(rows), len(rows[0])), np.float32)
    for number, row in enumerate(rows):
        values[number] = [parsed(path, number, text) for text in row]
    return values


def split(path: Path) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, if the first line has names, and the rows of all others, of one length."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise MisuseError(f"{path} is no regular file, or has more than {MOST_BYTES} bytes")
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MisuseError(f"{path} is no readable .csv file: {error}") from error
    named = bool(rows) and not all(is_number(text) for text in rows[0])
    header = [text.strip() for text in rows.pop(0)] if named else []
    if not rows:
        raise MisuseError(f"{path} holds no rows")
    width = len(header) or len(rows[0])
    uneven = next((number for number, row in enumerate(rows) if len(row) != width), None)
    if uneven is not None:
        raise MisuseError(f"{path}: row {uneven + 1} has {len(rows[uneven])} values, not {width}")
    return header, rows


def places(path: Path, header: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Where each of the model's columns stands in the file."""
    absent = [name for name in columns if name not in header]
    if absent:
        shown = ", ".join(absent[:10]) + (", ..." if len(absent) > 10 else "")
        raise MisuseError(f"{path} lacks {len(absent)} of the model's columns: {shown}")
    twice = sorted({name for name in columns if header.count(name) > 1})
    if twice:
        raise MisuseError(f"{path} has columns of one name: {', '.join(twice[:10])}")
    return [header.index(name) for name in columns]


def is_number(text: str) -> bool:
    """Whether a text is a number or a missing value."""
    try:
        number(text)
    except ValueError:
        return False
    return True


def parsed(path: Path, row: int, text: str) -> np.float32:
    """A text as a number. An error names the place only: inputs are private and errors end in logs."""
    try:
        return number(text)
    except ValueError:
        raise MisuseError(f"{path}: row {row + 1} holds what is no number; encode categories first") from None


def number(text: str) -> np.float32:
    """The nearest float32 of a text; NaN of a missing value. Raises `ValueError` for other texts."""
    if text.strip().lower() in MISSING:
        return np.float32(np.nan)
    with np.errstate(over="ignore"):
        return np.float32(text)
