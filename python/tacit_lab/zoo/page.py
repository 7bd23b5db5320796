"""docs/zoo.md from bench/results/zoo.json."""

from collections.abc import Iterator, Mapping
from typing import Any

INTRODUCTION = """Models as people export them, most of them small in size or in pixels and with random weights: what
is shown is that they compile, and how near the integers are to the float model under onnxruntime on a few inputs that
did not calibrate. The relative error is the root of the mean square of differences over the deviation of the float
results, with exact and with stochastic rounding; `agrees` is the share of inputs whose largest result is the same.
Random weights give results that hardly differ, so both are pessimistic. Weights and activations have as many bits as
stand there: the first of 8, 10 and 12 with an error of at most 0.05, or the most that compiled. Megabytes are those of
a session as `tacit plan` predicts them; seconds with two numbers are compilation and, where a model was run between two
processes over loopback with one thread each, that session.

    make models                                  # all, into build/zoo
    make models FILTER=vit                       # those whose names contain this

Models of packages that are missing are skipped. A family is a module of `python/tacit_lab/zoo`, and a model a line
there."""
MB = 1e6


def page(document: Mapping[str, Any]) -> str:
    """The page of a document."""
    return "\n".join([*lines(document)]) + "\n"


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the page: a table for each family, then what does not run, then the commands."""
    rows = document["models"]
    yield "# Model zoo"
    yield ""
    yield INTRODUCTION
    run = [row for row in rows if "bytes" in row]
    yield ""
    yield f"{len(run)} of {len(rows)} models compile here; measured on {document['machine']['processor']}."
    for family in dict.fromkeys(row["family"] for row in run):
        yield from ("", f"## {family.capitalize()}", "")
        yield "| model | source, licence | weights | bits | relative error | agrees | MB | rounds | compiled, run (s) |"
        yield "|---|---|---|---|---|---|---|---|---|"
        yield from (listed(row) for row in run if row["family"] == family)
    refused = [row for row in rows if "error" in row or "skipped" in row]
    if refused:
        yield from ("", "## Left out", "", "| model | why |", "|---|---|")
        yield from (f"| {row['name']} | {row.get('error', row.get('skipped'))} |".replace("\n", " ") for row in refused)
    yield from ("", "## Commands", "")
    yield from (f"    {row['command']}" for row in run)


def listed(row: Mapping[str, Any]) -> str:
    """A row of a table."""
    agrees = "" if row["agreement"] is None else f"{row['agreement']:.0%}"
    seconds = f"{row['compile_seconds']:.1f}"
    if "private" in row:
        seconds += f", {row['private']['seconds']:.2f}"
    errors = f"{row['relative_rmse']:.3f}, {row['stochastic_relative_rmse']:.3f}"
    cells = [row["name"], f"{row['source']}, {row['licence']}", row["weights"], str(row["bits"]), errors]
    size = f"{row['bytes'] / MB:.1f}"
    return f"| {' | '.join([*cells, agrees, size, str(row['rounds']), seconds])} |"
