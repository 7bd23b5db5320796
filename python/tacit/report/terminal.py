"""What the command line prints: one JSON object, or tables for people."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tacit.data.links import Link
from tacit.model import Progress as Callback

console = Console()
COST = ("to server", "to client", "rounds", "time")
LONGEST_WORD = 20
"""Letters of the longest word that a column of protocols makes room for."""
BEST = 5
MOST_RANKED = 20
PHASES = ("setup", "offline", "online")


def emit_json(content: dict[str, Any]) -> None:
    """One JSON object on one line of standard output, at once."""
    sys.stdout.write(json.dumps(content, allow_nan=False) + "\n")
    sys.stdout.flush()


def abandon_output() -> None:
    """Standard output cannot be written: let nothing try again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextmanager
def progress(what: str) -> Iterator[Callback]:
    """A progress bar on standard error; the value is called with (done, total)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    errors = Console(stderr=True)
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def size(count: float) -> str:
    """Bytes for people, decimal units."""
    for unit, factor in (("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count:.0f} B"


def duration(seconds: float) -> str:
    """Seconds for people."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def traffic(cost: dict[str, Any]) -> tuple[str, str]:
    """Bytes each way: client to server, server to client."""
    return size(cost["bytes"]["client_to_server"]), size(cost["bytes"]["server_to_client"])


def cells(cost: dict[str, Any]) -> tuple[str, str, str, str]:
    """Bytes each way, rounds and time; a dash when a cost is only predicted."""
    time = duration(cost["seconds"]) if "seconds" in cost else "-"
    return (*traffic(cost), str(cost["rounds"]), time)


def phase_table(report: dict[str, Any]) -> Table:
    """A row per phase and one for the total."""
    table = Table(title="Cost by phase", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("phase")
    for heading in COST:
        table.add_column(heading, justify="right")
    for phase in PHASES:
        cost = report["phases"][phase]
        table.add_row(phase, *cells(cost))
    table.add_section()
    table.add_row("total", *cells(report))
    if report.get("secure_against") == "client":
        table.caption = "the server is secure against clients that send anything"
    return table


def layer_table(report: dict[str, Any]) -> Table:
    """A row per layer; setup and correlations are rows of their own."""
    table = Table(title="Cost by layer", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    words = [word for layer in report["layers"] for word in layer["protocol"].split()]
    table.add_column("layer", overflow="fold")
    table.add_column("protocol", overflow="fold", min_width=min(max(map(len, words), default=0), LONGEST_WORD))
    table.add_column("phase")
    for heading in COST:
        table.add_column(heading, justify="right")
    for layer in report["layers"]:
        table.add_row(layer["name"], layer["protocol"], layer["phase"], *cells(layer))
    return table


def operation_table(planned: dict[str, Any]) -> Table:
    """A row per linear layer with its homomorphic operations, and their sums."""
    slots = f", n = {planned['slots']}" if planned["slots"] else ""
    title = f"Operations of {planned['model']}, suite {planned['suite']}{slots}"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("layer", overflow="fold")
    numbers = ("rotations", "multiplications", "additions", "ciphertexts", "responses")
    for heading in numbers:
        table.add_column(heading, justify="right")
    for layer in planned["layers"]:
        table.add_row(layer["name"], *(str(layer[number]) for number in numbers))
    table.add_section()
    table.add_row("total", *(str(planned["operations"][number]) for number in numbers))
    return table


def model_table(summary: dict[str, Any]) -> Table:
    """A row per compiled layer."""
    table = Table(title="Compiled layers")
    for heading in ("layer", "operator", "input", "output", "bits", "accumulator", "shift"):
        table.add_column(heading, justify="left" if heading in ("layer", "operator") else "right")
    for layer in summary["layers"]:
        shapes = ("x".join(map(str, layer.get(key) or [])) for key in ("input_shape", "output_shape"))
        numbers = (layer.get(key) for key in ("bits", "accumulator_bits", "shift"))
        widths = ("-" if number is None else str(number) for number in numbers)
        table.add_row(layer["name"], layer["operator"], *shapes, *widths)
    return table


def candidate_table(target: dict[str, Any]) -> Table:
    """A row per candidate of a search for an agreement, cheapest first; the chosen one is marked."""
    table = Table(title=f"Candidates, on {target['held_out']} held-out inputs", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("weights", "activations", "clip", "agreement", "bytes", ""):
        table.add_column(heading, justify="left" if heading in ("clip", "") else "right")
    widths = ("weight_bits", "activation_bits", "clip")
    for one in target["candidates"]:
        said = "chosen" if all(one[name] == target[name] for name in widths) else ""
        cost = ("-", "-") if one["refused"] else (f"{one['agreement']:.4f}", size(one["bytes"]))
        table.add_row(str(one["weight_bits"]), str(one["activation_bits"]), one["clip"], *cost, one["refused"] or said)
    return table


def knowledge_table(reveal: str) -> Table:
    """Who learned what in a session."""
    learned = {"output": "the logits of its inputs", "label": "the label of each input"}
    learned |= {"bucket": "the bucket of each input's score"}
    result = learned.get(reveal, "the label of each input and its probability")
    table = Table(title="Who learned what", show_lines=True)
    for heading in ("party", "held", "learned", "did not learn"):
        table.add_column(heading)
    public = "operators, shapes, bit widths"
    table.add_row("client", "the inputs", f"{result}; {public}", "the weights")
    table.add_row("server", "the weights", "how many inputs, and when", "the inputs and the results")
    return table


def named(labels: list[str], index: int) -> str:
    """The class's name, or its number when it has none."""
    return labels[index] if 0 <= index < len(labels) else str(index)


def quality_lines(report: dict[str, Any]) -> Iterator[str]:
    """Inputs, accuracy and agreement with the interpreter, as far as known."""
    yield f"inputs: {report['inputs']}"
    if report.get("top1") is not None:
        yield f"top-1 accuracy: {report['top1']:.2%}"
    if "float_top1" in report:
        if report["float_top1"] is not None:
            yield f"top-1 accuracy of the float model: {report['float_top1']:.2%}"
        if "agreement" in report:
            by_chance = f", {report['stochastic_agreement']:.2%} with stochastic rounding"
            yield f"labels equal to the float model's: {report['agreement']:.2%}{by_chance}"
    elif "positions" in report:
        yield from writing_lines(report)
    elif "agreement" in report and "embeddings" not in report:
        yield f"labels equal to the interpreter's: {report['agreement']:.2%}"
    yield from similarity_lines(report)
    yield from nearness_lines(report)
    yield from measure_lines(report)
    if report.get("max_error") is not None:
        yield f"largest difference from the interpreter: {report['max_error']} in the last place"
    if report.get("real_error") is not None:
        yield f"largest difference from the real function: {report['real_error']:.2f} last places"
    if "cpu_seconds" in report:
        for party in ("client", "server"):
            memory = size(report["peak_memory_bytes"][party])
            yield f"{party}: {duration(report['cpu_seconds'][party])} CPU, {memory} peak memory"


def writing_lines(report: dict[str, Any]) -> Iterator[str]:
    """How often a language model's best token is the float model's, and how well both foresee texts."""
    exact, drawn = report["agreement"], report["stochastic_agreement"]
    yield (
        f"best tokens equal to the float model's at {report['positions']} positions: {exact:.2%}, "
        f"{drawn:.2%} with stochastic rounding"
    )
    yield (
        f"perplexity: {report['perplexity']:.3f}, {report['stochastic_perplexity']:.3f} with stochastic rounding; "
        f"of the float model {report['float_perplexity']:.3f}"
    )
    if (draft := report.get("draft")) is not None:
        yield (
            f"with the draft {draft['runs']} runs of {draft['pass']} tokens write the answers' {draft['tokens']}: "
            f"{draft['tokens_per_run']:.2f} a run"
        )


def similarity_lines(report: dict[str, Any]) -> Iterator[str]:
    """How near embeddings are to those of the float model, and how well they rank pairs."""
    if "cosine_mean" in report:
        mean, least = report["cosine_mean"], report["cosine_min"]
        yield f"cosine with the float embedding: {mean:.5f} on average, {least:.5f} at least"
    for name, whose in (("spearman", ""), ("float_spearman", ", float model")):
        if report.get(name) is not None and "pairs" in report:
            yield f"Spearman's rank correlation with the scores of {report['pairs']} pairs{whose}: {report[name]:.4f}"


def nearness_lines(report: dict[str, Any]) -> Iterator[str]:
    """How near results are to the float model's, by the metric that suits them, and in a word."""
    if "verdict" not in report:
        return
    if "rmse" in report:
        error, relative = report["rmse"], report["relative_rmse"]
        yield f"error to the float model: {error:.4g} (root mean square; {relative:.2%} of its results' deviation)"
        yield f"largest error to the float model: {report['largest_error']:.4g}; R2 {report['r2']:.5f}"
    for name, what in (("token_accuracy", "tokens"), ("pixel_accuracy", "positions")):
        if name in report:
            yield f"{what} of the float model's class: {report[name]:.2%}"
    if "mean_iou" in report:
        yield f"mean intersection over union with the float model's map: {report['mean_iou']:.4f}"
    yield f"next to the float model: {report['verdict']}"


def measure_lines(report: dict[str, Any]) -> Iterator[str]:
    """Measures of classifiers of two classes and of estimates, private and in float."""
    names = {"f1": "F1", "matthews": "Matthews' correlation"}
    names |= {"auc": "area under the ROC curve", "ks": "Kolmogorov-Smirnov statistic", "log_loss": "log loss"}
    names |= {"label_rmse": "root mean square error to the true values", "label_r2": "R2 with the true values"}
    names |= {"label_mae": "mean absolute error to the true values"}
    if report.get("error_bound") is not None and "undecided" in report:
        yield f"undecided within {report['error_bound']:.2g} of the border: {report['undecided']}"
    if "expected_error" in report:
        yield f"largest difference from the library's scores: {report['expected_error']:.3g}"
    if "expected_agreement" in report:
        yield f"labels equal to the library's: {report['expected_agreement']:.2%}"
    if "pairs" not in report:
        names |= {"pearson": "Pearson's correlation", "spearman": "Spearman's rank correlation"}
    for prefix, whose in (("", ""), ("float_", " of the float model")):
        for name, what in names.items():
            if report.get(f"{prefix}{name}") is not None:
                yield f"{what}{whose}: {report[f'{prefix}{name}']:.4f}"


def show_results(
    sources: list[str],
    labels: NDArray[np.int64],
    logits: NDArray[np.float64] | None,
    names: list[str],
    probabilities: NDArray[np.float64] | None = None,
) -> None:
    """The best classes of each input (N,), with outputs (N, classes) or probabilities (N,) when these are known.

    With outputs the probabilities are estimates (N, classes) of all of them.
    """
    if logits is None or len(labels) > MOST_RANKED:
        for index, (source, label) in enumerate(zip(sources, labels, strict=True)):
            certain = None if logits is not None or probabilities is None else probabilities[index]
            certainty = "" if certain is None else f" ({100 * certain:.2f} %)"
            console.print(f"{source}: {named(names, int(label))}{certainty}", highlight=False, markup=False)
    else:
        console.print(result_table(sources, logits, names, probabilities))


def show_values(
    sources: list[str], values: NDArray[np.float64], shape: tuple[int, ...], link: Link | None = None
) -> None:
    """Results (N, outputs) that are no classes: a single number of each input, or the shape and the range of many."""
    for source, row in zip(sources, values, strict=True):
        said = f"{row[0]:.6g}" + ("" if link is None else f" (estimate {link.estimates(row[None])[0, 0]:.6g})")
        if len(row) > 1:
            sizes = "x".join(map(str, shape))
            said = f"{sizes} numbers from {row.min():.4g} to {row.max():.4g}, {row.mean():.4g} on average"
        console.print(f"{source}: {said}", highlight=False, markup=False)


def show_part(name: str) -> None:
    """The name of one of several results, above it."""
    console.print(f"{name}", style="bold", highlight=False, markup=False)


def result_table(
    sources: list[str],
    logits: NDArray[np.float64],
    names: list[str],
    estimates: NDArray[np.float64] | None = None,
) -> Table:
    """The largest outputs of each input, largest first, and estimates; the smaller class number wins a tie."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("input", "class", "output", *(() if estimates is None else ("estimate",))):
        table.add_column(heading, justify="left" if heading in ("input", "class") else "right", overflow="fold")
    for at, (source, row) in enumerate(zip(sources, logits, strict=True)):
        for rank, label in enumerate(np.argsort(-row, kind="stable")[:BEST]):
            content = ("" if rank else source, named(names, int(label)), f"{row[label]:.3f}")
            made = () if estimates is None else (f"{estimates[at, label]:.4f}",)
            table.add_row(*map(Text, (*content, *made)))
        table.add_section()
    return table


def show_run(content: dict[str, Any]) -> None:
    """Costs, where there are any, and quality."""
    if "layers" in content:
        console.print(layer_table(content))
        console.print(phase_table(content))
    for line in quality_lines(content):
        console.print(line, highlight=False)


def show_throughput(content: dict[str, Any]) -> None:
    """Predictions an hour, and what a thousand of them cost."""
    each, cpu = content["per_1000"], content["per_1000"]["cpu_seconds"]
    for line in (
        f"{content['predictions_per_hour']:,.0f} predictions an hour with {content['clients']} clients on the same "
        f"cores; {content['predictions_per_core_hour']:,.0f} of a core and an hour of the server",
        f"{content['sessions']} sessions in {content['seconds']:.1f} s, {content['failed']} failed; half took at most "
        f"{content['session_seconds']['p50']:.3f} s, 99 of 100 at most {content['session_seconds']['p99']:.3f} s",
        f"1,000 predictions: ${each['dollars']:.4f}, {cpu['server']:,.1f} s of the server's processor and "
        f"{cpu['client']:,.1f} s of clients', {each['bytes']['client_to_server'] / 1e6:,.1f} MB to the server and "
        f"{each['bytes']['server_to_client'] / 1e6:,.1f} MB back",
    ):
        console.print(line, highlight=False, soft_wrap=True)


class Notices:
    """What happens while a client waits for its turn, on standard error; each place in the queue once."""

    def __init__(self) -> None:
        """Nothing was said yet."""
        self.place: float | None = None

    def __call__(self, what: str, number: float, why: str | None) -> None:
        """Say it: a word, a number and a reason, as `Client.predict` gives them."""
        if what == "retrying":
            note(f"{why}; trying again in {number:.0f} s")
        elif number != self.place:
            note(f"the server is busy; {number:.0f} session(s) begin before this one")
            self.place = number


def note(message: str) -> None:
    """A line on standard error that is no part of the result."""
    sys.stderr.write(f"{message}\n")


def warn(message: str) -> None:
    """A warning on standard error."""
    note(f"warning: {message}")
