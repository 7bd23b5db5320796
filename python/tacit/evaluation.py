"""A model over a labelled data set: the float source, the interpreter, or the private run."""

from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from tacit import similarity
from tacit.client import classes
from tacit.corpus import Corpus, is_text
from tacit.corpus import load as load_texts
from tacit.data import Examples, load
from tacit.errors import MisuseError
from tacit.model import Model, Progress
from tacit.pair import Pair
from tacit.similarity import reader


def read(model: Model, data: Path, limit: int | None = None) -> Examples | Corpus:
    """The first `limit` examples of a file; texts of an encoder stay texts."""
    if not is_text(data):
        examples = load(data, model.input_shape, model.preprocessing)
        return Examples(examples.x[:limit], None if examples.y is None else examples.y[:limit])
    corpus = load_texts(data).first(limit)
    text = reader(model)
    return corpus if text.pooling != "classes" else Examples(text.tokens(corpus.texts).x, corpus.labels)


def evaluate(
    mode: str, pair: Pair, given: Examples | Corpus, source: Path | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Examples in a `mode`: plain (the float `source`), simulate or private."""
    if isinstance(given, Corpus):
        return similarity.evaluate(mode, pair, given, source, progress)
    if mode == "private":
        return private(pair, given, progress)
    if mode == "simulate":
        return simulated(pair.model, given, source, progress)
    if source is None:
        raise MisuseError("--mode plain needs the float source: --model M.onnx")
    return plain(source, given, length_of(pair.model))


def length_of(model: Model) -> int | None:
    """Tokens of an input of a model that reads text."""
    return None if model.text is None else model.text.sequence


def plain(source: Path, examples: Examples, sequence: int | None = None) -> dict[str, Any]:
    """The float model under onnxruntime, for inputs of `sequence` tokens if it reads text."""
    from tacit.plain import FloatModel

    began = monotonic()
    public = examples.x.shape[1:] != (2, sequence) and sequence is not None
    labels = FloatModel(source, (), sequence, public)(examples.x).argmax(axis=1)
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
    floats = plain(source, examples, length_of(model))
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
