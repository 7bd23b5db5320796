"""The document in Markdown."""

from collections.abc import Iterable, Iterator
from typing import Any

from tacit.reproduction.wording import (
    NOTE,
    TITLE,
    circumstances,
    facts,
    lasting,
    number,
    paper_number,
    quotient,
    status,
)


def text(found: dict[str, Any]) -> str:
    """A summary, then every table."""
    lines = [f"# {TITLE}", "", *(f"- {name}: {value}" for name, value in facts(found)), "", NOTE, "", *summary(found)]
    for entry in found["tables"]:
        lines += ["", *section(entry)]
    return "\n".join(lines) + "\n"


def line(cells: Iterable[str]) -> str:
    """A row of a table; bars in cells would end them."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def summary(found: dict[str, Any]) -> Iterator[str]:
    """A row per table."""
    yield line(("table", "source", "what", "status", "rows", "took"))
    yield "|---|---|---|---|---:|---:|"
    for entry in found["tables"]:
        counted, took = str(len(entry.get("rows", ()))), lasting(entry.get("seconds"))
        yield line(
            (f"[{entry['table']}](#{entry['table']})", entry["source"], entry["what"], status(entry), counted, took)
        )


def section(entry: dict[str, Any]) -> Iterator[str]:
    """A table with its conditions."""
    yield f"## {entry['table']}"
    yield ""
    yield entry["what"]
    yield ""
    yield from (f"- {name}: {value}" for name, value in circumstances(entry))
    if "command" in entry:
        yield f"- command: `{entry['command']}`"
    yield ""
    if entry["status"] != "done":
        yield f"**{status(entry)}**"
        return
    yield line(("name", "paper", "ours", "unit", "ours/paper"))
    yield "|---|---:|---:|---|---:|"
    for row in entry["rows"]:
        yield line((row["name"], paper_number(row["paper"]), number(row["ours"]), row["unit"], quotient(row["ratio"])))
    if "note" in entry:
        yield f"\n{entry['note']}"
    if entry["figure"]:
        yield f"\n![{entry['table']}]({entry['figure']})"
