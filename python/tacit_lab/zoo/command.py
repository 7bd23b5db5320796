"""`make models`: the zoo into a folder, its numbers into a file of JSON, and the page of both.

python -m tacit_lab.zoo.command --folder build/zoo --out bench/results/zoo.json --page docs/zoo.md
"""

import argparse
import json
from pathlib import Path
from typing import Any

from tacit._core import PROTOCOL, __version__
from tacit.measure.bench import commit
from tacit.measure.machine import machine

from tacit_lab.zoo.measure import measure
from tacit_lab.zoo.page import page
from tacit_lab.zoo.registry import ENTRIES


def main() -> None:
    """Measure all models, or those that are asked for, and write what is known of all."""
    parser = argparse.ArgumentParser(description="Compile the model zoo and compare it with its float models.")
    parser.add_argument("--folder", type=Path, required=True, help="where models are written")
    parser.add_argument("--out", type=Path, required=True, help="the file of numbers")
    parser.add_argument("--page", type=Path, help="the page of documentation")
    parser.add_argument("--filter", default="", help="models whose names contain this; others keep their numbers")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    known = old(arguments.out)
    for entry in ENTRIES:
        if arguments.filter in entry.name:
            row = known[entry.name] = measure(entry, arguments.folder)
            print(said(row), flush=True)
            write(arguments.out, arguments.page, known)
    write(arguments.out, arguments.page, known)


def old(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of an earlier run, by name."""
    if not path.exists():
        return {}
    return {row["name"]: row for row in json.loads(path.read_text(encoding="utf-8"))["models"]}


def write(out: Path, shown: Path | None, known: dict[str, dict[str, Any]]) -> None:
    """The numbers and the page of all models that are registered, in their order."""
    rows = [known[entry.name] for entry in ENTRIES if entry.name in known]
    document = {"version": __version__, "commit": commit(), "protocol": PROTOCOL, "machine": machine(), "models": rows}
    out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if shown is not None:
        shown.write_text(page(document), encoding="utf-8")


def said(row: dict[str, Any]) -> str:
    """A line for the terminal."""
    if "skipped" in row or "error" in row:
        return f"{row['name']}: {row.get('skipped') or row['error']}"
    return f"{row['name']}: relative error {row['relative_rmse']:.3f}, {row['bytes'] / 1e6:.1f} MB"


if __name__ == "__main__":
    main()
