"""The file of results: a line of JSON for each input, only ever appended to, so that a killed job goes on where it was.

The first line says what results are of; lines of a session are written and brought to the disk together. A line that
a kill or a power cut left torn has no end and is dropped.
"""

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tacit.errors import MisuseError

FORMAT = 1
SAME = ("format", "model", "graph_digest", "reveal")
"""What all results of a file have in common."""


class Row(NamedTuple):
    """The result of an input: its id, the digest of its values, and the integers that the client learnt."""

    id: str
    input: str
    output: list[int]


class Results:
    """Results by id, in memory and, with a `path`, in a file that one job at a time may write."""

    def __init__(self, path: Path | None) -> None:
        """Read what an earlier job left; raises `MisuseError` for a file that is something else or in use."""
        self.path = path
        self.header: dict[str, Any] | None = None
        self.rows: dict[str, Row] = {}
        self.file: int | None = None
        if path is not None:
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self.lock()
                self.read()
            except BaseException:
                self.close()
                raise

    def lock(self) -> None:
        """Keep other jobs off the file."""
        assert self.file is not None
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MisuseError(f"another job writes {self.path}; wait for it, or name another file") from None

    def read(self) -> None:
        """Take what is there, and cut a line without an end off."""
        assert self.file is not None
        with os.fdopen(os.dup(self.file), "rb") as stream:
            content = stream.read()
        whole = content.rfind(b"\n") + 1
        for number, line in enumerate(content[:whole].splitlines(), 1):
            try:
                fields = json.loads(line)
                if number == 1:
                    self.header = {**fields}
                    if fields["format"] != FORMAT:
                        raise MisuseError(f"{self.path} has format {fields['format']}; this release writes {FORMAT}")
                else:
                    row = Row(str(fields["id"]), str(fields["input"]), [int(value) for value in fields["output"]])
                    self.rows[row.id] = row
            except (ValueError, KeyError, TypeError) as error:
                raise MisuseError(f"{self.path}, line {number} is no result: {error!r}; name another file") from error
        os.ftruncate(self.file, whole)
        os.lseek(self.file, 0, os.SEEK_END)

    def has(self, name: str, digest: str) -> bool:
        """Whether an input has its result; raises `MisuseError` where another input had that id."""
        row = self.rows.get(name)
        if row is not None and row.input != digest:
            raise MisuseError(f"{self.path} has a result of another input with the id `{name}`; name another file")
        return row is not None

    def add(self, header: dict[str, Any], rows: Iterable[Row]) -> None:
        """Keep the results of a session, on the disk when this returns.

        Raises `MisuseError` where they are of another model, or tell something else, than those before.
        """
        said = {"format": FORMAT, **header}
        lines = [] if self.header is not None else [said]
        if self.header is not None and any(self.header.get(name) != said.get(name) for name in SAME):
            raise MisuseError(f"{self.path or 'the job'} has results of another model or of another --reveal")
        self.header = self.header or said
        fresh = [row for row in rows if row.id not in self.rows]
        if self.file is not None:
            lines += [row._asdict() for row in fresh]
            left = memoryview("".join(json.dumps(line) + "\n" for line in lines).encode())
            while left:
                left = left[os.write(self.file, left) :]
            os.fsync(self.file)
        self.rows |= {row.id: row for row in fresh}

    def close(self) -> None:
        """Let others write the file."""
        if self.file is not None:
            os.close(self.file)
            self.file = None

    def __enter__(self) -> Self:
        """Give the results."""
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Close the file."""
        self.close()
