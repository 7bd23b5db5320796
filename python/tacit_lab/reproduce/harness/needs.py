"""What a table needs besides this package, and how to get it."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple


class DataFile(NamedTuple):
    """A file below the folder that `--data` names."""

    name: str

    @property
    def kind(self) -> str:
        """The folder that it is in."""
        return self.name.partition("/")[0]

    def missing(self, data: Path) -> str | None:
        """Why it cannot be read; None if it is there."""
        path = data / self.name
        return None if path.exists() else f"{path} does not exist; --data names the folder it is in"


class LocalFile(NamedTuple):
    """What matches a pattern, from where `tacit` is run, which is the repository."""

    name: str
    get: str

    @property
    def kind(self) -> str:
        """The folder that it is in."""
        return self.name.partition("/")[0]

    def missing(self, _data: Path) -> str | None:
        """Why it cannot be read; None if it is there."""
        return None if any(Path().glob(self.name)) else f"{self.name} does not exist; {self.get}"


class Stored(NamedTuple):
    """Results in the repository, which took too long to be found again without `--full`."""

    name: str

    @property
    def kind(self) -> str:
        """The folder that they are in."""
        return self.name.partition("/")[0]

    def missing(self, _data: Path) -> str | None:
        """Why they cannot be read; None if they are there."""
        gone = f"{self.name} does not exist; run this in the repository, or with --full"
        return None if Path(self.name).exists() else gone

    def origin(self) -> dict[str, Any]:
        """The file, the commit that found the results, and `tasks`: commits by task, where tasks name their own."""
        content = json.loads(Path(self.name).read_text(encoding="utf-8"))
        own = {name: found["commit"] for name, found in content.get("tasks", {}).items() if "commit" in found}
        found = {"file": self.name, "commit": str(content.get("commit", "unknown"))}
        return {**found, "tasks": own} if own else found


class Package(NamedTuple):
    """A package of an extra."""

    name: str
    get: str

    @property
    def kind(self) -> str:
        """It itself."""
        return self.name

    def missing(self, _data: Path) -> str | None:
        """Why it cannot be imported; None if it is installed."""
        return f"package {self.name} is not installed; {self.get}" if find_spec(self.name) is None else None


Need = DataFile | LocalFile | Stored | Package


def missing(needs: tuple[Need, ...], data: Path) -> str | None:
    """Why a table cannot be made, or None if it can."""
    reasons = [why for why in (need.missing(data) for need in needs) if why is not None]
    return "; ".join(reasons) or None
