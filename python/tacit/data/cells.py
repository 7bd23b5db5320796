"""Cells of a column as numbers or texts, a column at a time: no function of Python runs for each cell."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

MISSING = ("", "na", "nan", "null", "none", "?", "<na>", "n/a", "nat")
"""What stands for a missing value, in lower case."""
TRUE, FALSE = "true", "false"


def words() -> dict[Any, str]:
    """What texts that are no numbers stand for, in the usual ways to write them."""
    known = {**dict.fromkeys(MISSING, "nan"), TRUE: "1", FALSE: "0"}
    forms = (str, str.upper, str.capitalize, str.title)
    found: dict[Any, str] = {form(word): value for word, value in known.items() for form in forms}
    return {**found, "NaN": "nan", "NaT": "nan", None: "nan"}


WORDS = words()


def numbers(values: Any, where: str, first: int = 1) -> NDArray[np.float64]:
    """Numbers (N,) of numbers, booleans or texts; missing values are NaN.

    Raises `MisuseError` that names `where` and the row, `first` being that of the first value.
    """
    plain = plain_array(values)
    if plain is not None:
        return plain
    given = list(values)
    try:
        return parsed(given)
    except ValueError:
        row = first + next(at for at, value in enumerate(given) if not is_number(value))
        raise MisuseError(f"{where}, row {row} holds what is no number; encode categories first") from None


def plain_array(values: Any) -> NDArray[np.float64] | None:
    """Numbers of an array or a column of a data frame that holds numbers; None for anything else."""
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    if kind not in ("b", "i", "u", "f"):
        return None
    if isinstance(values, np.ndarray):
        return values.astype(np.float64)
    try:
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan), np.float64)
    except (AttributeError, TypeError, ValueError):
        return np.asarray(values, np.float64)


def parsed(given: Sequence[Any]) -> NDArray[np.float64]:
    """Numbers (N,) of texts and of objects; raises `ValueError` for what is no number."""
    for ready in (as_they_are, replaced, cleaned):
        try:
            return np.fromiter(map(float, ready(given)), np.float64, len(given))
        except (ValueError, TypeError):
            continue
    raise ValueError("no number")


def as_they_are(given: Sequence[Any]) -> Sequence[Any]:
    """The cells themselves."""
    return given


def replaced(given: Sequence[Any]) -> Sequence[Any]:
    """Cells with a number in place of each known word."""
    return list(map(WORDS.get, given, given))


def cleaned(given: Sequence[Any]) -> Sequence[Any]:
    """As `replaced`, after spaces and capitals are gone; for objects that are no texts too."""
    lowered = list(map(str.lower, map(str.strip, map(str, given))))
    return list(map(WORDS.get, lowered, lowered))


def is_number(value: Any) -> bool:
    """Whether a cell is a number or a missing value."""
    try:
        parsed([value])
    except ValueError:
        return False
    return True


def texts(values: Any, missing: bool) -> list[Any]:
    """Texts (N,) of a column, as they are; with `missing` those that stand for missing values are None."""
    given = values.tolist() if hasattr(values, "tolist") else list(values)
    if not all(map(isinstance, given, repeat(str))):
        given = [None if is_missing(value) else str(value) for value in given]
    if not missing:
        return given
    return [None if value is None or WORDS.get(value) == "nan" else value for value in given]


def is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN or the missing value of pandas, which compares with nothing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
