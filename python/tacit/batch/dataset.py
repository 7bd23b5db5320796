"""Data sets as inputs with ids, in chunks of a session each."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.examples import load_wanted
from tacit.data.tables import by_column, is_frame
from tacit.data.wanted import Wanted
from tacit.errors import MisuseError
from tacit.session.client import floats

Values = NDArray[np.float32]
DIGEST_DIGITS = 32


class Item(NamedTuple):
    """An input (*shape) and what its result is kept under."""

    id: str
    x: Values

    @property
    def digest(self) -> str:
        """The first 128 bits of SHA-256 of shape and values, by which a resumed job knows the input again."""
        content = f"{self.x.shape}".encode() + np.ascontiguousarray(self.x).tobytes()
        return hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]


class Chunk(NamedTuple):
    """The inputs of a session."""

    items: tuple[Item, ...]

    @property
    def x(self) -> Values:
        """All inputs (N, *shape)."""
        return np.stack([item.x for item in self.items])


def size(dataset: Any) -> int | None:
    """How many inputs there are, where that is known without reading them."""
    try:
        return len(dataset)
    except TypeError:
        return None


def read(path: Path, wanted: Wanted | None = None) -> Values:
    """Inputs (N, *shape) of a file: .npy, .npz, .csv or .parquet, as `predict` reads them."""
    return load_wanted([path], wanted or Wanted(None)).x


def items(dataset: Any) -> Iterator[Item]:
    """The inputs of a data set, each with its id; without ids the position is one.

    It is an array (N, *shape), a data frame of numbers, a mapping from ids, or yields inputs or pairs (id, input).
    Raises `MisuseError` for an id that comes twice, and for what is not float32.
    """
    seen: set[str] = set()
    for name, x in named(dataset):
        if name in seen:
            raise MisuseError(f"two inputs have the id `{name}`; results are kept by id")
        seen.add(name)
        yield Item(name, floats(np.asarray(x)))


def named(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Pairs of an id and an input."""
    if is_frame(dataset):
        columns = by_column(dataset)
        names = [str(name) for name in getattr(dataset, "index", range(len(dataset)))]
        rows = np.stack([np.asarray(values, np.float32) for values in columns.values()], axis=1)
        yield from zip(names, rows, strict=True)
    elif isinstance(dataset, Mapping):
        yield from ((str(name), x) for name, x in dataset.items())
    elif isinstance(dataset, np.ndarray):
        yield from ((str(at), x) for at, x in enumerate(dataset))
    elif isinstance(dataset, Iterable):
        for at, given in enumerate(dataset):
            pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str | int)
            yield (str(given[0]), given[1]) if pair else (str(at), given)
    else:
        raise MisuseError(f"a {type(dataset).__name__} is no data set: give an array, a mapping, an iterable or a file")


def chunks(given: Iterable[Item], length: int) -> Iterator[Chunk]:
    """Consecutive items of one shape, at most `length` each."""
    held: list[Item] = []
    for item in given:
        if held and (len(held) == length or item.x.shape != held[0].x.shape):
            yield Chunk(tuple(held))
            held = []
        held.append(item)
    if held:
        yield Chunk(tuple(held))
