"""Values of a JSON file that know where they stand, so that an error can say what is wrong with which."""

import json
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from tacit.errors import MisuseError


@dataclass(frozen=True)
class Field:
    """A value, and its place: a file, then keys and indices."""

    value: Any
    file: str
    path: str = ""

    def wrong(self, why: str) -> MisuseError:
        """The error that names this value."""
        return MisuseError(f"{self.file}: {f'`{self.path}` ' if self.path else ''}{why}")

    def fields(self) -> dict[str, "Field"]:
        """The values of an object."""
        if not isinstance(self.value, dict):
            raise self.wrong("is no object")
        dot = "." if self.path else ""
        return {key: Field(value, self.file, f"{self.path}{dot}{key}") for key, value in self.value.items()}

    def rows(self) -> list["Field"]:
        """The values of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("is no list")
        return [Field(value, self.file, f"{self.path}[{index}]") for index, value in enumerate(self.value)]

    def __contains__(self, key: str) -> bool:
        """Whether it is an object with a value of that name that is not null."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def __getitem__(self, key: str) -> "Field":
        """The value of a name, which must be there."""
        found = self.fields()
        if key not in found:
            raise self.wrong(f"has no field `{key}`")
        return found[key]

    def optional(self, key: str) -> "Field | None":
        """The value of a name, if there is one."""
        return self[key] if key in self else None  # noqa: SIM401 (null counts as missing)

    def number(self) -> float:
        """A number that a quantity can be."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong("is no number")
        if abs(self.value) > 1e18 or not isfinite(self.value):
            raise self.wrong("is too large a number")
        return self.value

    def count(self) -> float:
        """A number that is not negative."""
        if self.number() < 0:
            raise self.wrong("is negative")
        return self.number()

    def truth(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self.wrong("is neither true nor false")
        return self.value

    def text(self) -> str:
        """A string, or another plain value as one, in characters that can be written."""
        if isinstance(self.value, dict | list):
            raise self.wrong("is no text")
        return str(self.value).encode("utf-8", "replace").decode("utf-8")


def load(path: Path) -> list[Field]:
    """The objects of a file: one, or one a line as `serve --json` writes them. Raises `MisuseError` for other files."""
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MisuseError(f"{path} is no text in UTF-8: {error}") from None
    try:
        return [Field(json.loads(content), str(path))]
    except RecursionError:
        raise MisuseError(f"{path} is no JSON of a command: too deep") from None
    except ValueError as error:
        lines = [line for line in content.splitlines() if line.strip()]
        if len(lines) < 2:
            raise MisuseError(f"{path} is no JSON: {error}") from None
        return [line_of(path, number, line) for number, line in enumerate(lines, 1)]


def line_of(path: Path, number: int, line: str) -> Field:
    """The object on a line."""
    try:
        return Field(json.loads(line), f"{path}, line {number}")
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"{path} is no JSON: line {number}: {error}") from None
