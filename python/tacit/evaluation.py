"""A model over a labelled data set: the float source, the interpreter, or the private run."""

from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from tacit.client import classes
from tacit.data import Examples
from tacit.model import Model, Progress
from tacit.pair import Pair


def plain(source: Path, examples: Examples) -> dict[str, Any]:
    """The float ONNX model under onnxruntime."""
    from tacit.plain import FloatModel

    began = monotonic()
    labels = FloatModel(source)(examples.x).argmax(axis=1)
    return {"mode": "plain", "model": str(source), **scored(labels, examples, began)}


def simulated(
    model: Model, examples: Examples, source: Path | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """The integer interpreter in this process; with the float `source`, its `float_top1` and their `agreement`."""
    began = monotonic()
    labels = classes(model.simulate(examples.x, progress))
    content = {"mode": "simulate", "model": str(model.path), **scored(labels, examples, began)}
    if source is None:
        return content
    floats = plain(source, examples)
    agreement = float((labels == np.array(floats["output"])).mean())
    return {**content, "source": str(source), "float_top1": floats["top1"], "agreement": agreement}


def private(pair: Pair, examples: Examples, progress: Progress | None = None) -> dict[str, Any]:
    """Client and server as two processes, all inputs in one session."""
    return {"mode": "private", **pair.run(examples.x, examples.y, progress).report}


def scored(labels: Any, examples: Examples, began: float) -> dict[str, Any]:
    """The fields every mode has."""
    y = examples.y
    return {
        "inputs": len(labels),
        "seconds": monotonic() - began,
        "top1": None if y is None else float((labels == y).mean()),
        "output": labels.tolist(),
    }
