"""What a model wants as its input, for those who read inputs from files."""

from collections.abc import Sequence
from typing import NamedTuple

from tacit.data.schema import Schema
from tacit.importers.source import Part


class Wanted(NamedTuple):
    """The shape of one input, and the parts that it is made of; a .npz file may have an array for each part.

    `columns` are the names of the features, of a model of tables that knows them; `missing` says that values may be
    NaN, which stands for a missing value, or infinite. `schema` says how rows of a table become inputs, where that is
    known, and `kept` names columns of files that are wanted beside the inputs.
    """

    shape: tuple[int, ...] | None
    parts: Sequence[Part] = ()
    columns: Sequence[str] = ()
    missing: bool = False
    schema: Schema | None = None
    kept: Sequence[str] = ()

    @property
    def rows(self) -> Schema | None:
        """How rows become inputs: by the schema, or as they are by the names of the columns, if either is known."""
        return self.schema or (Schema.plain(self.columns) if self.columns else None)
