"""Measured costs, as JSON that says on what machine they were measured."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tacit import _core
from tacit.data.examples import Examples
from tacit.measure.machine import machine
from tacit.model import Model, Progress
from tacit.session.pair import Pair


def bench_model(pair: Pair, examples: Examples, repeat: int, progress: Progress | None = None) -> dict[str, Any]:
    """`repeat` fresh sessions with a model."""
    conditions = {"bench": "model", "threads": pair.threads}
    return {**conditions, **median(lambda: pair.run(examples.x, examples.y).report, repeat, progress)}


def median(measure: Callable[[], dict[str, Any]], repeat: int, progress: Progress | None) -> dict[str, Any]:
    """Where and on what it was measured, the seconds of all runs, and the run of the median time."""
    runs = []
    for done in range(1, repeat + 1):
        runs.append(measure())
        if progress is not None:
            progress(done, repeat)
    runs.sort(key=lambda report: float(report["seconds"]))
    return {
        "machine": machine(),
        "version": _core.__version__,
        "commit": commit(),
        "protocol": _core.PROTOCOL,
        "repeat": repeat,
        "all_seconds": [report["seconds"] for report in runs],
        **runs[(len(runs) - 1) // 2],
    }


def commit() -> str | None:
    """The commit of the checkout this package lies in, `-dirty` with local changes; None elsewhere.

    Results that are stored and pages, in which they are shown, are no changes of what is measured.
    """
    here = ["git", "-C", str(Path(__file__).parent)]
    apart = [":(top,exclude)bench/results", ":(top,exclude,glob)**/*.md"]
    changes = [*here, "status", "--porcelain", "--untracked-files=no", "--", ":/", *apart]
    try:
        head, changed = (
            subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            for command in ([*here, "rev-parse", "HEAD"], changes)
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}-dirty" if changed else head


def random_examples(model: Model, count: int = 1) -> Examples:
    """Uniform inputs from the model's input range, under a fixed seed; of text as many tokens as there can be."""
    facts = model.description["input"]
    low, high = (bound * facts["scale"] for bound in facts["range"])
    x = np.random.default_rng(0).uniform(low, high, (count, *model.input_shape)).astype(np.float32)
    if model.text is not None:
        x[:, 0], x[:, 1] = np.floor(x[:, 0]), 1
    return Examples(x, None)
