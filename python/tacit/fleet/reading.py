"""Tables of a TOML file as typed dataclasses; errors say the line and the remedy."""

import re
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from tacit.errors import MisuseError
from tacit.session import toml
from tacit.session.place import Place

T = TypeVar("T")
KINDS = {str: "a text", int: "a whole number", float: "a number", bool: "true or false", Path: "the path of a file"}
KINDS[Place] = "the path of a file or the URL of a database"


@dataclass(frozen=True)
class Range:
    """The least and the largest value of a number, both included; None is no bound."""

    least: float | None = None
    most: float | None = None

    def check(self, value: float) -> None:
        """Raises `ValueError` for a number beside the range."""
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            limits = f"at least {self.least:g}" if self.most is None else f"{self.least:g} to {self.most:g}"
            raise ValueError(f"is {limits}, not {value!r}")


@dataclass(frozen=True)
class Table:
    """A table of a file: what it says, and where its keys stand."""

    path: Path
    content: dict[str, Any]
    lines: list[tuple[int, str]]
    name: str
    """How errors call the table, such as `[scaling]`; empty for what stands before all tables."""

    def place(self, key: str | None = None) -> str:
        """FILE, line N, of a key; where the key is absent, of the table's beginning."""
        begins = re.compile(rf"""\s*["']?{re.escape(key or "")}["']?\s*[=.]""")
        found = next((number for number, line in self.lines if key and begins.match(line)), None)
        return f"{self.path}, line {found or (self.lines[0][0] if self.lines else 1)}"

    def read(self, kind: type[T], **given: Any) -> T:
        """The table as a dataclass: keys are the names of its fields with `-`, paths are those from the file's folder.

        `given` are fields that do not stand in the table. Raises `MisuseError` for keys that the dataclass does not
        have, values of another kind or beside their range, and fields without a default that are missing.
        """
        wanted = {field.name.replace("_", "-"): field for field in fields(kind) if field.name not in given}  # type: ignore[arg-type]
        hints = get_type_hints(kind, include_extras=True)
        values = dict(given)
        for key, value in self.content.items():
            if key not in wanted:
                raise MisuseError(
                    f"{self.place(key)}: {self.name or 'a fleet'} has no `{key}`; it has {', '.join(wanted)}"
                )
            try:
                values[wanted[key].name] = fitting(value, hints[wanted[key].name], self.path.parent)
            except ValueError as error:
                raise MisuseError(f"{self.place(key)}: `{key}` {error}") from error
        for key, field in wanted.items():
            if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
                raise MisuseError(f"{self.place()}: {self.name or 'a fleet'} needs `{key}`")
        try:
            return kind(**values)
        except ValueError as error:
            raise MisuseError(f"{self.place()}: {error}") from error


def fitting(value: Any, hint: Any, folder: Path) -> Any:
    """The value of a field; raises `ValueError` for one of another kind or beside its bounds."""
    checks: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        checks = tuple(rest)
    if get_origin(hint) is UnionType:
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"is one of {', '.join(get_args(hint))}, not {value!r}")
        return value
    if get_origin(hint) is dict:
        return amounts(value)
    if get_origin(hint) is tuple:
        return texts(value)
    given = (int, float) if hint is float else (str,) if hint in (Path, Place) else (hint,)
    if not isinstance(value, given) or (isinstance(value, bool) and hint is not bool) or value == "":
        raise ValueError(f"is {KINDS[hint]}, not {value!r}")
    for check in checks:
        check.check(value)
    if hint is Place:
        return Place.within(folder, str(value))
    return folder / str(value) if hint is Path else hint(value)


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts, such as the origins of pages."""
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f'is a list of texts, such as ["https://shop.example.org"], not {value!r}')
    return tuple(value)


def amounts(value: Any) -> dict[str, float]:
    """A table of amounts by names, such as Ray's own resources."""
    if not isinstance(value, dict) or not all(
        isinstance(amount, int | float) and not isinstance(amount, bool) and amount >= 0 for amount in value.values()
    ):
        raise ValueError(f"is a table of amounts, such as {{ big = 1 }}, not {value!r}")
    return {name: float(amount) for name, amount in value.items()}


def tables(path: Path, single: tuple[str, ...], repeated: str) -> tuple[Table, dict[str, Table], list[Table]]:
    """What stands before all tables of a file, those of `single` by name, and the list of those called `repeated`.

    Tables that are absent are empty. Raises `MisuseError` for files that cannot be read or are no TOML, and for tables
    of other names.
    """
    text, content = toml.content(path)
    parts = segments(text)
    named = {name: Table(path, {}, parts.get(name, [[]])[0], f"[{name}]") for name in single}
    for name in single:
        value = content.pop(name, {})
        if not isinstance(value, dict):
            raise MisuseError(f"{path}: `{name}` is a table: write [{name}] above its keys")
        named[name].content.update(value)
    several = content.pop(repeated, [])
    if not isinstance(several, list) or not all(isinstance(each, dict) for each in several):
        raise MisuseError(f"{path}: `{repeated}` is a list of tables: write [[{repeated}]] above the keys of each")
    lines = parts.get(repeated, [])
    rows = [
        Table(path, each, lines[at] if at < len(lines) else [], f"[[{repeated}]]") for at, each in enumerate(several)
    ]
    return Table(path, content, parts[""][0], ""), named, rows


def segments(text: str) -> dict[str, list[list[tuple[int, str]]]]:
    """The numbered lines of each table by its name; those before all tables under the empty name."""
    found: dict[str, list[list[tuple[int, str]]]] = {"": [[]]}
    part = found[""][0]
    for number, line in enumerate(text.splitlines(), 1):
        heading = re.match(r"\s*\[{1,2}\s*([\w-]+)\s*\]{1,2}", line)
        if heading:
            part = []
            found.setdefault(heading[1], []).append(part)
        part.append((number, line))
    return found
