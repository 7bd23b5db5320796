"""Which command a JSON comes from, and so what it says."""

from pathlib import Path

from tacit.report.html.content import Item, Run
from tacit.report.html.fields import Field, load
from tacit.report.html.planner import is_planner, planner_of
from tacit.report.html.results import (
    accuracy_of,
    kernels_of,
    models_of,
    networks_of,
    operations_of,
    paper_of,
    papers_of,
    peers_of,
    points_of,
    sweep_of,
    tasks_of,
    writers_of,
)
from tacit.report.html.runs import run_of

KNOWN = "`run`, `predict`, `evaluate`, `bench`, `plan`, `reproduce`, `serve`, or a file of bench/results"

LISTS = {"tables": papers_of, "models": models_of, "tasks": tasks_of, "points": points_of}
"""Readers of files with such a list or object."""
ENTRIES = {"private": networks_of, "spu": peers_of, "median_ns": kernels_of}
"""Readers of files all of whose entries have such a field."""


def read(paths: list[Path], link: str | None = None) -> list[Item]:
    """What the files say, under names that differ. Raises `MisuseError` for files of another kind."""
    items: list[Item] = []
    for path in paths:
        found = [item for given in load(path) for item in items_of(given, path.stem, link)]
        if not found:
            raise Field(None, str(path)).wrong("has no session in it")
        items += found
    return told_apart(items)


def items_of(given: Field, name: str, link: str | None) -> list[Item]:
    """What one object says."""
    if "error" in given:
        error = given["error"]
        raise given.wrong(f"is the report of an error: {(error.optional('message') or error).value}")
    if "listening" in given:
        return []
    if "rows" in given and ("table" in given or "command" in given):
        return [paper_of(given, name)]
    if "operations" in given and "layers" in given:
        return [operations_of(given, name)]
    if "phases" in given:
        return [run_of(given, name, link)]
    return others_of(given, name)


def others_of(given: Field, name: str) -> list[Item]:
    """What has no phases: accuracy in the clear, and what scripts write into bench/results."""
    if "mode" in given:
        return [accuracy_of(given, name)]
    if "bench" in given and "layers" in given:
        return [sweep_of(given)]
    for key, reader in LISTS.items():
        if key in given and not isinstance(given[key].value, str):
            return reader(given)
    entries = list(given.fields().values())
    for key, reader in ENTRIES.items():
        if entries and all(key in entry for entry in entries):
            return reader(given)
    if entries and all("cost" in entry or "quality" in entry for entry in entries):
        return writers_of(given)
    if is_planner(given):
        return planner_of(given)
    raise given.wrong(f"is not what `--json` prints for {KNOWN}")


def told_apart(items: list[Item]) -> list[Item]:
    """Runs of the same name get numbers."""
    names = [item.name for item in items if isinstance(item, Run)]
    seen: dict[str, int] = {}
    renamed: list[Item] = []
    for item in items:
        if isinstance(item, Run) and names.count(item.name) > 1:
            seen[item.name] = seen.get(item.name, 0) + 1
            renamed.append(item.called(f"{item.name} {seen[item.name]}"))
        else:
            renamed.append(item)
    return renamed
