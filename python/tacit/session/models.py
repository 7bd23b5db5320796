"""Which models a server has: a file, a folder of files, or what a service file says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import MisuseError
from tacit.session import toml
from tacit.session.reveal import Reveal, is_reveal

LIMITS = ("total", "per-day", "per-minute")
OWN = ("name", "reveal", "offline", "batch", "pass", "link", "protocols", "budget", "card")
LONGEST_CARD = 4096
"""Most bytes of a model card."""
MOST_COUNTED = 2**63 - 1


@dataclass(frozen=True)
class Served:
    """A compiled model and what is said of it alone, by the names of OWN."""

    path: Path
    options: Mapping[str, Any] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """The model as `_core.Server` reads it."""
        return {"path": str(self.path), **self.options}


@dataclass(frozen=True)
class Service:
    """A server's models, and options that stand in its file, by the names that they have on the command line."""

    models: list[Served]
    options: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    """Where each option stands, for errors about its value: FILE, line N."""


def read(path: Path) -> Service:
    """The models of `path`: a .tacit file, a folder of them (called by their names there), or a .toml file.

    Raises `MisuseError` for what is none of these and for a file that says what cannot be; it names the line.
    """
    if path.is_dir():
        files = sorted(path.glob("*.tacit"))
        if not files:
            raise MisuseError(f"{path} has no .tacit file; `tacit compile` makes them")
        return Service([Served(file, {"name": file.stem}) for file in files])
    if path.suffix == ".toml":
        return from_toml(path)
    return Service([Served(path)])


def from_toml(path: Path) -> Service:
    """The service that a file describes; see `read`."""
    text, content = toml.content(path)
    places = Places(path, text)
    tables = content.pop("model", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables) or not tables:
        raise MisuseError(f"{path} has no [[model]] with a `file`")
    models = [model(table, number, path.parent, places) for number, table in enumerate(tables)]
    return Service(models, content, {name: places.of(name) for name in content})


class Places:
    """Where keys stand in a file."""

    def __init__(self, path: Path, text: str) -> None:
        """Split the file into the part before the models and one part a model."""
        self.path = path
        self.parts: list[list[tuple[int, str]]] = [[]]
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r"\s*\[\[\s*model\s*\]\]", line):
                self.parts.append([])
            self.parts[-1].append((number, line))

    def of(self, key: str, model: int | None = None) -> str:
        """FILE, line N, of a key before the models or of one model."""
        part = self.parts[0 if model is None else min(model + 1, len(self.parts) - 1)]
        begins = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
        found = next((number for number, line in part if begins.match(line)), part[0][0] if part else 1)
        return f"{self.path}, line {found}"


def model(table: dict[str, Any], number: int, folder: Path, places: Places) -> Served:
    """One model of a file; paths are those from its folder."""
    if not isinstance(table.get("file"), str):
        raise MisuseError(f"{places.of('file', number)}: a model needs `file`, the path of a .tacit file")
    options: dict[str, Any] = {}
    for key, value in table.items():
        if key == "file":
            continue
        try:
            given = checked(key, value)
            if key == "reveal":
                options |= Reveal.of(given).options()
            else:
                options[key] = str(folder / given) if key == "card" else given
        except ValueError as error:
            raise MisuseError(f"{places.of(key, number)}: {error}") from error
    return Served(folder / table["file"], options)


def checked(key: str, value: Any) -> Any:
    """The value of an option of one model; raises `ValueError` for one that cannot be."""
    match key:
        case "name" | "protocols" | "link" | "card" if isinstance(value, str) and value:
            return value
        case "reveal" if isinstance(value, str) and is_reveal(value):
            return value
        case "offline" if whole(value, 0):
            return value
        case "batch" | "pass" if whole(value, 1):
            return value
        case "budget" if isinstance(value, dict):
            return budget(value)
        case _ if key in OWN:
            raise ValueError(f"`{key}` cannot be {value!r}")
        case _:
            raise ValueError(f"a model has no `{key}`; it has file, {', '.join(OWN)}")


def whole(value: Any, least: int) -> bool:
    """Whether it is a whole number of at least `least`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_COUNTED


def budget(limits: Mapping[str, Any]) -> dict[str, int]:
    """A budget as the core reads it; raises `ValueError` for limits that are none."""
    for name, count in limits.items():
        if name not in LIMITS or not whole(count, 0):
            raise ValueError(f"a budget has {', '.join(LIMITS)}, each a number of inputs, not {name} = {count!r}")
    return {name.replace("-", "_"): count for name, count in limits.items()}


def budget_of(text: str) -> dict[str, int]:
    """The budget in `total=N,per-day=N,per-minute=N`, in any order; raises `MisuseError` for others."""
    pairs = [part.strip().partition("=") for part in text.split(",")]
    limits = {name: int(count) if count.isascii() and count.isdigit() else count for name, _, count in pairs}
    form = "--budget is total=N, per-day=N and per-minute=N with commas between"
    if len(limits) != len(pairs):
        raise MisuseError(f"{form}: a limit is given twice")
    try:
        return budget(limits)
    except ValueError as error:
        raise MisuseError(f"{form}: {error}") from error
