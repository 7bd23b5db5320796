"""Where a ledger of budgets is: a file, or a PostgreSQL database by its URL."""

from pathlib import Path
from typing import Self

from tacit import _core

SCHEMES = ("postgresql://", "postgres://")


class Place(str):
    """The path of a file or the URL of a database, as text, since a path would make one slash of the two of a URL.

    `repr` and `name` leave out a password that is in the URL.
    """

    __slots__ = ()

    @classmethod
    def of(cls, value: str | Path) -> Self:
        """The place that a path or text names."""
        return cls(value)

    @classmethod
    def within(cls, folder: Path, text: str) -> Self:
        """The place that a file in `folder` names: paths are those from there."""
        return cls(text if text.startswith(SCHEMES) else folder / text)

    @property
    def file(self) -> Path | None:
        """The file, where it is one."""
        return None if self.startswith(SCHEMES) else Path(self)

    @property
    def name(self) -> str:
        """The place for people."""
        return _core.ledger_name(self)

    def __repr__(self) -> str:
        return repr(self.name)
