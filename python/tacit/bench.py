"""Measured costs, as JSON that says on what machine they were measured."""

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from tacit import _core
from tacit.data import Examples
from tacit.model import Model, Progress
from tacit.pair import Pair


def bench_model(pair: Pair, examples: Examples, repeat: int, progress: Progress | None = None) -> dict[str, Any]:
    """`repeat` fresh sessions; reports the one with the median time and the seconds of all."""
    runs = []
    for done in range(1, repeat + 1):
        runs.append(pair.run(examples.x, examples.y).report)
        if progress is not None:
            progress(done, repeat)
    runs.sort(key=lambda report: float(report["seconds"]))
    return {
        "bench": "model",
        "machine": machine(),
        "version": _core.__version__,
        "threads": pair.threads,
        "repeat": repeat,
        "all_seconds": [report["seconds"] for report in runs],
        **runs[(len(runs) - 1) // 2],
    }


def random_examples(model: Model) -> Examples:
    """One uniform input from the model's input range, under a fixed seed."""
    facts = model.description["input"]
    low, high = (bound * facts["scale"] for bound in facts["range"])
    x = np.random.default_rng(0).uniform(low, high, (1, *model.input_shape)).astype(np.float32)
    return Examples(x, None)


def machine() -> dict[str, Any]:
    """Processor, number of cores this process may use, and system."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def processor() -> str:
    """The processor's name."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text().splitlines() if facts.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
