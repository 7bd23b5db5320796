"""How the document puts numbers and facts in words, in each of its forms."""

from collections.abc import Iterator
from typing import Any

TITLE = "Tables and figures of the papers, reproduced"
NOTE = (
    "Counts are exact and bytes are measured; both need no particular machine. The papers' seconds come from other "
    "machines: of times, compare ratios. A dash stands where a paper has no number. Keys, masks and the data of "
    "single operations are drawn by the operating system; no count and no byte depends on them."
)
NOTHING = "-"
SUMMARY = ("table", "source", "what", "status", "rows", "took")
"""Headings above the list of all tables."""
ROWS = ("name", "paper", "ours", "unit", "ours/paper")
"""Headings above the rows of a table."""
NUMBERS = frozenset({"rows", "took", "paper", "ours", "ours/paper"})
"""Headings of columns that are aligned to the right."""


def number(value: float | None) -> str:
    """Up to six digits."""
    return NOTHING if value is None else f"{value:.6g}"


def paper_number(value: float) -> str:
    """The paper's number, which is 0 where its text has none."""
    return number(value or None)


def quotient(value: float | None) -> str:
    """Ours over theirs, with two decimals or, of small ones, two digits."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def lasting(seconds: float | None) -> str:
    """Minutes and seconds."""
    if seconds is None:
        return NOTHING
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def short(commit: str | None) -> str:
    """The first digits of a commit, and whether there were changes."""
    if commit is None:
        return "unknown"
    digits, _, changed = commit.partition("-")
    return f"{digits[:10]}-{changed}" if changed else digits[:10]


def place(machine: dict[str, Any]) -> str:
    """A machine in a line."""
    flags = f" ({' '.join(machine['flags'])})" if machine.get("flags") else ""
    return f"{machine['processor']}{flags}, {machine['cores']} cores, {machine['system']}"


def totals(summary: dict[str, Any]) -> str:
    """How many tables, by what became of them, and their time."""
    statuses = [f"{summary[status]} {status}" for status in ("done", "failed", "skipped", "pending") if summary[status]]
    return f"{summary['tables']} tables: {', '.join(statuses)}; {lasting(summary['seconds'])}"


def facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What stands above the tables."""
    yield "tables", totals(found["summary"])
    yield "commit", short(found["commit"])
    yield "version", found["version"]
    yield "machine", place(found["machine"])
    yield "date", found["date"]


def circumstances(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What stands above the rows of a table besides its command."""
    yield "source", entry["source"]
    if "commit" not in entry:
        return
    if entry["seed"] is not None:
        yield "seed", str(entry["seed"])
    yield "commit", short(entry["commit"])
    yield "machine", place(entry["machine"])
    yield "date", entry["date"]
    for stored in entry.get("stored", ()):
        yield "stored", f"{stored['file']}, found at commit {commits(stored)}; --full finds it anew"
    if "seconds" in entry:
        yield "took", lasting(entry["seconds"])


def commits(stored: dict[str, Any]) -> str:
    """The commit that found stored results, or that of each task where tasks name their own."""
    by_commit: dict[str, list[str]] = {}
    for task, commit in stored.get("tasks", {}).items():
        by_commit.setdefault(commit, []).append(task)
    if not by_commit:
        return short(stored["commit"])
    return ", ".join(f"{short(commit)} ({', '.join(tasks)})" for commit, tasks in by_commit.items())


def status(entry: dict[str, Any]) -> str:
    """What became of a table."""
    if entry.get("stored"):
        return f"{entry['status']}, from stored results"
    return f"{entry['status']}: {entry['reason']}" if "reason" in entry else str(entry["status"])


def outline(entry: dict[str, Any]) -> tuple[str, ...]:
    """A table in the list of all: a cell per heading of `SUMMARY`."""
    names = entry["table"], entry["source"], entry["what"]
    return (*names, status(entry), str(len(entry.get("rows", ()))), lasting(entry.get("seconds")))


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of a table: a cell per heading of `ROWS`."""
    numbers = paper_number(row["paper"]), number(row["ours"])
    return (row["name"], *numbers, row["unit"], quotient(row["ratio"]))
