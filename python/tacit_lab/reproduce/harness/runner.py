"""Every table, one after the other, each in a process of its own; what is done is not done again."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tacit.errors import MisuseError, TacitError

from tacit_lab.reproduce.harness.conditions import command, conditions
from tacit_lab.reproduce.harness.needs import missing
from tacit_lab.reproduce.harness.process import answer
from tacit_lab.reproduce.paper import Table

Entry = dict[str, Any]
"""A table in the document: its conditions, `status`, and `rows`, or why there are none."""
Status = Literal["done", "failed", "skipped"]
PATIENCE, LEAST_MINUTES = 10, 20
"""A table may take so many times what it usually takes, and at least so many minutes."""
NEEDED = {"table", "source", "what", "status", "command", "seed", "commit", "version", "date", "machine"}
"""Without these, a file is not one of this version."""
SAME = ("commit", "version", "command")
"""What a stored table must share with the run that keeps it."""


class Result(NamedTuple):
    """An entry, and whether it was there before."""

    entry: Entry
    kept: bool


@dataclass(frozen=True)
class Folder:
    """Where a run leaves its tables and figures."""

    path: Path

    def table(self, name: str) -> Path:
        """The file of a table."""
        return self.path / "tables" / f"{name}.json"

    def figure(self, name: str) -> Path:
        """The file of its figure."""
        return self.path / "figures" / f"{name}.svg"

    def entry(self, name: str) -> Entry | None:
        """A stored table; None where there is none that can be read."""
        try:
            found = json.loads(self.table(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and found.keys() >= NEEDED else None

    def store(self, entry: Entry) -> None:
        """Write a table's file."""
        write(self.table(entry["table"]), json.dumps(entry, indent=1, allow_nan=False) + "\n")


def write(path: Path, content: str) -> None:
    """The whole file or, if interrupted, nothing of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(content, encoding="utf-8")
    part.replace(path)


@dataclass(frozen=True)
class Run:
    """A selection of tables, and how they are wanted."""

    tables: Mapping[str, Table]
    folder: Folder
    full: bool
    data: Path
    again: bool = False
    measure: Callable[["Run", str], Entry] | None = None

    def results(self) -> Iterator[Result]:
        """Each table as it is done, failed, skipped or found to be done already."""
        for name in self.tables:
            kept = None if self.again else self.kept(name)
            if kept is not None:
                yield Result(kept, True)
                continue
            entry = self.made(name)
            self.folder.store(entry)
            yield Result(entry, False)

    def minutes(self) -> float:
        """How long it will take, roughly, on two idle cores."""
        wanted = (name for name in self.tables if self.again or self.kept(name) is None)
        left = (self.tables[name] for name in wanted)
        return sum(table.minutes.of(self.full) for table in left if missing(table.wants(self.full), self.data) is None)

    def conditions(self, name: str) -> Entry:
        """The conditions of a table if it is made now."""
        return conditions(name, self.tables[name], self.full, self.data)

    def kept(self, name: str) -> Entry | None:
        """The stored table if it is done and made as this run would make it."""
        found, now = self.folder.entry(name), self.conditions(name)
        if found is None or found["status"] != "done" or any(found.get(key) != now[key] for key in SAME):
            return None
        drawn = self.tables[name].figure is None or self.folder.figure(name).exists()
        return found if drawn else None

    def made(self, name: str) -> Entry:
        """The table, or why there is none."""
        here = self.conditions(name)
        lacking = missing(self.tables[name].wants(self.full), self.data)
        if lacking is not None:
            return {**here, "status": "skipped", "reason": lacking}
        try:
            return {**here, **(self.measure or in_a_process)(self, name), "status": "done"}
        except (TacitError, OSError) as error:
            return {**here, "status": "failed", "reason": str(error)}


def in_a_process(run: Run, name: str) -> Entry:
    """What `tacit reproduce NAME` finds; its figure is left in the folder."""
    table = run.tables[name]
    drawing: list[str] = []
    if table.figure is not None:
        run.folder.figure(name).parent.mkdir(parents=True, exist_ok=True)
        drawing = ["--figure", str(run.folder.figure(name))]
    minutes = max(LEAST_MINUTES, PATIENCE * table.minutes.of(run.full))
    return answer(["-m", "tacit", *command(name, run.full, run.data), "--json", *drawing], 60 * minutes)


def chosen(tables: Mapping[str, Table], only: Iterable[str] | None) -> dict[str, Table]:
    """All tables, or some by name in the order of all. Raises `MisuseError` for a name that there is none of."""
    names = list(tables) if only is None else list(only)
    unknown = [name for name in names if name not in tables]
    if unknown:
        raise MisuseError(f"there is no table `{unknown[0]}`; these are: {', '.join(tables)}")
    return {name: table for name, table in tables.items() if name in names}
