"""What a run found, as one object and as files for people."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tacit import _core
from tacit.measure.bench import commit
from tacit.measure.machine import machine

from tacit_lab.reproduce.harness.html import page
from tacit_lab.reproduce.harness.markdown import text
from tacit_lab.reproduce.harness.runner import Entry, Folder, write
from tacit_lab.reproduce.paper import Table, ratio

Document = dict[str, Any]
STATUSES = ("done", "failed", "skipped", "pending")


def document(folder: Folder, catalogue: Mapping[str, Table], selected: Mapping[str, Table]) -> Document:
    """Every table of the folder, and those of the selection that it has not yet."""
    every = (shown(folder, name, table, name in selected) for name, table in catalogue.items())
    entries = [entry for entry in every if entry is not None]
    counts = Counter(entry["status"] for entry in entries)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "version": _core.__version__,
        "machine": machine(),
        "summary": {
            "tables": len(entries),
            **{status: counts[status] for status in STATUSES},
            "seconds": round(sum(entry.get("seconds", 0.0) for entry in entries), 1),
        },
        "tables": entries,
    }


def shown(folder: Folder, name: str, table: Table, wanted: bool) -> Entry | None:
    """A table of the document, its rows with ratios and its figure's file; None if it has no place there."""
    entry = folder.entry(name)
    if entry is None:
        unknown = {"table": name, "source": table.source, "what": table.what, "status": "pending"}
        return unknown if wanted else None
    if entry["status"] != "done":
        return entry
    rows = [{**row, "ratio": ratio(row)} for row in entry["rows"]]
    drawn = table.figure is not None and folder.figure(name).exists()
    return {**entry, "rows": rows, "figure": f"figures/{name}.svg" if drawn else None}


def publish(folder: Folder, found: Document) -> None:
    """Write reproduction.json, reproduction.md and reproduction.html."""
    figures = {
        entry["table"]: folder.figure(entry["table"]).read_text(encoding="utf-8")
        for entry in found["tables"]
        if entry.get("figure")
    }
    write(folder.path / "reproduction.json", json.dumps(found, indent=1, allow_nan=False) + "\n")
    write(folder.path / "reproduction.md", text(found))
    write(folder.path / "reproduction.html", page(found, figures))
