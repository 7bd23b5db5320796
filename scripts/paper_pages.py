"""The pages of docs/papers: every table and figure of a paper, its numbers beside ours, from bench/results.

`python scripts/paper_pages.py` rewrites what stands between the markers of each page; with `--check` it only compares,
and exit code 1 says that they differ. `--store FOLDER` first takes over the tables that `tacit reproduce --all -o
FOLDER` wrote. Below each table stand the machine, the commit and the version of the protocol that it was made with,
and whether that is older than the code's.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import result_age
import result_tables
from paper_catalogue import FULL, PAPERS, WHOLLY_STORED, Item, tables

ROOT = Path(__file__).resolve().parent.parent
STORED = "papers/tables"
"""Where bench/results has the tables."""
WRITER = "scripts/paper_pages.py from bench/results/papers/tables"
OVERVIEW = ("of the paper", "what it shows", "command", "ours over the paper's", "not here")
ROWS = ("", "paper", "ours", "unit", "ours over the paper's")
NOTHING, UNKNOWN = "-", "unknown"
TIMED = ("s", "ms", "x")
"""Units of rows that seconds may be behind."""
ROUGH = "Seconds are rough: the machine had other work."


def digits(value: float) -> str:
    """Four digits, or all of those before the point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def beside(row: dict[str, Any]) -> float | None:
    """Ours over the paper's number; of percentages, what lies between them. None where the paper has none."""
    if not row["paper"]:
        return None
    return float(row["ours"] - row["paper"] if row["unit"] == "%" else row["ours"] / row["paper"])


def quotient(value: float, unit: str) -> str:
    """The words for one comparison."""
    if unit == "%":
        return f"{value:+.2f} points"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def span(rows: Iterable[dict[str, Any]]) -> str:
    """The least and the largest comparison of each unit."""
    found: dict[str, list[float]] = {}
    for row in rows:
        value = beside(row)
        if value is not None:
            found.setdefault(row["unit"], []).append(value)
    parts = []
    for unit, values in found.items():
        ends = dict.fromkeys(quotient(end, unit) for end in (min(values), max(values)))
        parts.append(f"{unit}: {' to '.join(ends)}")
    return "; ".join(parts) or NOTHING


def overview(paper: str, stored: dict[str, dict[str, Any]]) -> list[str]:
    """A line for each item of a paper."""
    return result_tables.table(OVERVIEW, [overview_row(item, stored) for item in PAPERS[paper]])[:-1]


def overview_row(item: Item, stored: dict[str, dict[str, Any]]) -> list[str]:
    """The cells of an item."""
    commands = ", ".join(f"`{stored[name]['command']}`" for name in item.tables)
    rows = [row for name in item.tables for row in stored[name]["rows"]]
    return [item.of, item.shows, commands or NOTHING, span(rows), item.missing or NOTHING]


def block(content: dict[str, Any], results: Path) -> list[str]:
    """A table: its rows, its note, and what it was made with."""
    rows = result_tables.table(ROWS, list(map(cells, content["rows"])))
    return [f"`{content['command']}`", "", *rows, *below(content, results)]


def cells(row: dict[str, Any]) -> list[str]:
    """A row; the paper's number is 0 where its text has none."""
    value = beside(row)
    paper = digits(row["paper"]) if row["paper"] else NOTHING
    compared = NOTHING if value is None else quotient(value, row["unit"])
    return [row["name"].replace("|", "\\|"), paper, digits(row["ours"]), row["unit"], compared]


def below(content: dict[str, Any], results: Path) -> Iterator[str]:
    """What stands below a table."""
    if "note" in content:
        yield f"{content['note'][0].upper()}{content['note'][1:]}."
        yield ""
    origins = [origin_line(origin, results) for origin in content["stored"]]
    if content["table"] not in WHOLLY_STORED or not origins:
        timed = any(row["unit"] in TIMED for row in content["rows"])
        rough = f" {ROUGH}" if timed and content.get("rough") else ""
        origins.append(f"{result_tables.conditions({**content, 'date': content['date'][:10]})}{rough}")
    yield "\n\n".join(origins)


def origin_line(origin: dict[str, Any], results: Path) -> str:
    """What results were measured with that a table reads from a file, which must be as the table has read it."""
    found = result_tables.read(results / Path(origin["file"]).relative_to("bench/results"))
    own = {name: found.get("tasks", {}).get(name, {}) for name in origin.get("tasks", {})}
    known = {"commit": found.get("commit", UNKNOWN)} | {name: entry.get("commit") for name, entry in own.items()}
    if known != {"commit": origin["commit"], **origin.get("tasks", {})}:
        raise SystemExit(f"{origin['file']} is newer than a table that has read it; make the table again")
    if "commit" not in found:
        return f"Rows from `{origin['file']}`, from before results named their commits."
    if not own:
        return f"Rows from `{origin['file']}`: {measured_with(found)}."
    alike: dict[str, list[str]] = {}
    for name, entry in own.items():
        alike.setdefault(measured_with(entry), []).append(name)
    parts = [f"of {', '.join(names)} {words}" for words, names in alike.items()]
    return f"Rows from `{origin['file']}`: {'; '.join(parts)}."


def measured_with(entry: dict[str, Any]) -> str:
    """The day if it is known, the machine, the commit and the age of a result."""
    machine = entry["machine"] if isinstance(entry["machine"], str) else entry["machine"]["processor"]
    day = f" on {entry['date'][:10]}" if "date" in entry else ""
    age = result_age.age(entry, result_age.spoken())
    return f"measured{day}, {machine}, commit {entry['commit'][:7]}, {age}"


def pages(docs: Path, results: Path) -> Iterator[tuple[Path, str]]:
    """Each page and what it should be."""
    for paper in PAPERS:
        path = docs / f"{paper}.md"
        stored = {name: result_tables.read(results / STORED / f"{name}.json") for name in tables(paper)}
        text = path.read_text(encoding="utf-8")
        text = result_tables.rewritten(text, f"{paper}-overview", overview(paper, stored), WRITER)
        for name, content in stored.items():
            text = result_tables.rewritten(text, name, block(content, results), WRITER)
        yield path, text


def store(folder: Path, results: Path, rough: bool) -> None:
    """Take over the tables of a folder that pages have, in the form that they have them.

    Raises `SystemExit` for one that was not made.
    """
    for name in (name for paper in PAPERS for name in tables(paper)):
        path = folder / "tables" / f"{name}.json"
        if not path.exists():
            continue
        content = result_tables.read(path)
        if content["status"] != "done":
            raise SystemExit(f"{path} is {content['status']}: {content.get('reason')}")
        if content["full"] != (name in FULL):
            sys.stderr.write(f"{name} stays as it is: its page has the {'full' if name in FULL else 'quick'} table\n")
            continue
        kept = {key: value for key, value in content.items() if key != "status"} | ({"rough": True} if rough else {})
        target = results / STORED / f"{name}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when pages differ")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="take over tables of `tacit reproduce --all`")
    parser.add_argument("--rough", action="store_true", help="with --store: other work disturbed the seconds")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/papers", help="folder of the pages")
    parser.add_argument("--results", type=Path, default=result_age.RESULTS, help="folder of results")
    arguments = parser.parse_args()
    if arguments.store is not None:
        store(arguments.store, arguments.results, arguments.rough)
    differing = []
    for path, wanted in pages(arguments.docs, arguments.results):
        if path.read_text(encoding="utf-8") != wanted:
            differing.append(path.name)
        if not arguments.check:
            path.write_text(wanted, encoding="utf-8")
    if arguments.check and differing:
        sys.stderr.write(f"{', '.join(differing)}: not as in {arguments.results}; run scripts/paper_pages.py\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
