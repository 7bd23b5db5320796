"""Under what conditions a table was made."""

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit import _core
from tacit.cli.reproduce import DATA
from tacit.measure.bench import commit
from tacit.measure.machine import machine

from tacit_lab.reproduce.paper import Table


def command(name: str, full: bool, data: Path) -> list[str]:
    """The arguments of `tacit` that make the table."""
    place = [] if data == DATA else ["--data", str(data)]
    return ["reproduce", name, *(["--full"] if full else []), *place]


def conditions(name: str, table: Table, full: bool, data: Path) -> dict[str, Any]:
    """What a document says of a table besides its numbers."""
    return {
        "table": name,
        "source": table.source,
        "what": table.what,
        "full": full,
        "command": shlex.join(["tacit", *command(name, full, data)]),
        "seed": table.seed,
        "commit": commit(),
        "protocol": _core.PROTOCOL,
        "version": _core.__version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
    }
