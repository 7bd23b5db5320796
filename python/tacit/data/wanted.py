"""What a model wants as its input, for those who read inputs from files."""

from collections.abc import Sequence
from typing import NamedTuple

from tacit.importers.source import Part


class Wanted(NamedTuple):
    """The shape of one input, and the parts that it is made of; a .npz file may have an array for each part.

    `columns` are the names of the features, of a model of tables that knows them; `missing` says that values may be
    NaN, which stands for a missing value, or infinite.
    """

    shape: tuple[int, ...] | None
    parts: Sequence[Part] = ()
    columns: Sequence[str] = ()
    missing: bool = False
