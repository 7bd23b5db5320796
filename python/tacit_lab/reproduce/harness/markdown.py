"""The document in Markdown."""

from collections.abc import Iterable, Iterator
from typing import Any

from tacit_lab.reproduce.harness import wording


def text(found: dict[str, Any]) -> str:
    """A summary, then every table."""
    facts = (f"- {name}: {value}" for name, value in wording.facts(found))
    lines = [f"# {wording.TITLE}", "", *facts, "", wording.NOTE, ""]
    lines += grid(wording.SUMMARY, map(outline, found["tables"]))
    for entry in found["tables"]:
        lines += ["", *section(entry)]
    return "\n".join(lines) + "\n"


def line(cells: Iterable[str]) -> str:
    """A row of a table; bars in cells would end them."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def grid(headings: tuple[str, ...], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table."""
    yield line(headings)
    yield "|" + "".join("---:|" if heading in wording.NUMBERS else "---|" for heading in headings)
    yield from map(line, rows)


def outline(entry: dict[str, Any]) -> tuple[str, ...]:
    """A table in the list of all, with a link to it."""
    name, *others = wording.outline(entry)
    return (f"[{name}](#{name})", *others)


def section(entry: dict[str, Any]) -> Iterator[str]:
    """A table with its conditions."""
    yield f"## {entry['table']}"
    yield ""
    yield entry["what"]
    yield ""
    yield from (f"- {name}: {value}" for name, value in wording.circumstances(entry))
    if "command" in entry:
        yield f"- command: `{entry['command']}`"
    yield ""
    if entry["status"] != "done":
        yield f"**{wording.status(entry)}**"
        return
    yield from grid(wording.ROWS, map(wording.cells, entry["rows"]))
    if "note" in entry:
        yield f"\n{entry['note']}"
    if entry["figure"]:
        yield f"\n![{entry['table']}]({entry['figure']})"
