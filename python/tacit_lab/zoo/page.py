"""docs/zoo.md from bench/results/zoo.json."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

INTRODUCTION = """These are models as people export them, most of them small in size or in pixels. Models that come with
packages have their trained weights, and estimators of scikit-learn are trained on its data sets. Classifiers of
pictures with batch norms are trained for 200 steps on the digits of scikit-learn, because random networks of that depth
amplify any noise from layer to layer, which networks in use do not. All others have random weights. The tables show
that the models compile, and how near their integers are to the float model under onnxruntime on inputs that did not
calibrate them: real or rendered inputs where the table says so, and random ones elsewhere. Two numbers in a cell are of
exact and of stochastic rounding, which is the default. The relative error is the root of the mean square of the
differences, divided by the deviation of the float results. `agrees` is the share of labels that are the same: the class
of each input, pixel or step with the largest result, or whether a probability is above the threshold that the model's
package has. The results of random weights hardly differ from one class to the next, so their labels change more easily
than those of trained weights. Weights and activations have as many bits as the table says: the first of 8, 10 and 12
with an error of at most 0.05, and with 99 % of the labels of real inputs; where none of them is that near, it is the
width with the smallest error. Where one of these widths does not fit the engine, one bit less is tried. Where labels of
real inputs or results of random ones are further off, a note below the table says why. Megabytes and rounds are those
of a session with one input, as `tacit plan` predicts them. The last column has the seconds of a compilation and, where
a model was run between two processes over loopback with one thread each, those of a session with two inputs; `=` says
that the same session with exact rounding gave the result of `tacit simulate` bit for bit.

    make models                                  # all, into build/zoo
    make models FILTER=vit                       # those whose names contain this

Models of packages that are missing are skipped. A family is a module of `python/tacit_lab/zoo`, and a model a line
there."""
COLUMNS = (
    "model",
    "source, licence",
    "weights",
    "compared on",
    "bits",
    "relative error",
    "agrees",
    "MB",
    "rounds",
    "compiled, run (s)",
)
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
        yield f"| {' | '.join(COLUMNS)} |"
        yield "|---" * len(COLUMNS) + "|"
        yield from (listed(row) for row in run if row["family"] == family)
        yield from noted(row for row in run if row["family"] == family and row["note"])
    refused = [row for row in rows if "error" in row or "skipped" in row]
    if refused:
        yield from ("", "## Left out", "", "| model | why |", "|---|---|")
        yield from (f"| {row['name']} | {row.get('error', row.get('skipped'))} |".replace("\n", " ") for row in refused)
    yield from ("", "## Commands", "")
    yield from (f"    {row['command']}" for row in run)


def listed(row: Mapping[str, Any]) -> str:
    """A row of a table."""
    agrees = "" if row["agreement"] is None else f"{row['agreement']:.1%}, {row['stochastic_agreement']:.1%}"
    errors = f"{row['relative_rmse']:.3f}, {row['stochastic_relative_rmse']:.3f}"
    inputs = f"{row['inputs']} {'real' if row['real'] else 'random'}"
    cells = [row["name"], f"{row['source']}, {row['licence']}", row["weights"], inputs, str(row["bits"]), errors]
    size = f"{row['bytes'] / MB:.1f}"
    return f"| {' | '.join([*cells, agrees, size, str(row['rounds']), seconds(row)])} |"


def seconds(row: Mapping[str, Any]) -> str:
    """Give the seconds of compilation, and those of a session if there was one."""
    compiled = f"{row['compile_seconds']:.1f}"
    if "private" not in row:
        return compiled
    equal = " =" if row["exact"]["equal_outputs"] == row["exact"]["inputs"] else ""
    return f"{compiled}, {row['private']['seconds']:.2f}{equal}"


def noted(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What is to be known of some rows of a table, below it."""
    notes = [f"`{row['name']}`: {row['note']}" for row in rows]
    if notes:
        yield ""
        yield from (f"- {note}" for note in notes)
