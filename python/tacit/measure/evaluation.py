"""A model over a labelled data set: the float source, the interpreter, or the private run."""

from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from tacit.data.corpus import Corpus, is_text
from tacit.data.corpus import load as load_texts
from tacit.data.examples import Examples, load
from tacit.errors import MisuseError
from tacit.measure import similarity
from tacit.measure.similarity import reader
from tacit.model import Model, Progress
from tacit.report import metrics
from tacit.report.metrics import Values
from tacit.session.pair import Pair

MEASURES = ("f1", "matthews", "pearson", "spearman")


def read(model: Model, data: Path, limit: int | None = None) -> Examples | Corpus:
    """The first `limit` examples of a file; texts of an encoder stay texts."""
    if not is_text(data):
        examples = load(data, model.input_shape, model.preprocessing, model.inputs)
        return Examples(examples.x[:limit], None if examples.y is None else examples.y[:limit])
    corpus = load_texts(data, model.description.get("labels", ())).first(limit)
    text = reader(model)
    if text.pooling != "classes":
        return corpus
    return Examples(text.tokens(corpus.inputs(True)).x, corpus.labels, corpus.scores)


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
    return plain(source, given, pair.model)


def plain(source: Path, examples: Examples, compiled: Model) -> dict[str, Any]:
    """The float model under onnxruntime: what was `compiled` of it, for inputs as that takes them."""
    from tacit.compiler.float_model import FloatModel

    began = monotonic()
    text, selection = compiled.text, compiled.selection
    length, public = (None, False) if text is None else (text.sequence, text.embedding is not None)
    model = FloatModel(source, (), length, public, selection)
    outputs = model(examples.x).astype(np.float64)
    return {"mode": "plain", "model": str(source), **scored(outputs, examples, began)}


def simulated(
    model: Model, examples: Examples, source: Path | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """The integer interpreter in this process; with the float `source`, its `float_top1` and their `agreement`."""
    began = monotonic()
    outputs = model.real(model.simulate(examples.x, progress))
    content = {"mode": "simulate", "model": str(model.path), **scored(outputs, examples, began)}
    if source is None:
        return content
    floats = plain(source, examples, model)
    compared = {f"float_{name}": value for name, value in floats.items() if name in ("top1", *MEASURES)}
    if not estimates(outputs):
        compared["agreement"] = float((np.array(content["output"]) == np.array(floats["output"])).mean())
    return {**content, "source": str(source), **compared}


def private(pair: Pair, examples: Examples, progress: Progress | None = None) -> dict[str, Any]:
    """Client and server as two processes, all inputs in one session."""
    done = pair.run(examples.x, examples.y, progress)
    outputs = done.prediction.logits
    return {"mode": "private", **done.report, **({} if outputs is None else measured(outputs, examples))}


def estimates(outputs: Values) -> bool:
    """Whether outputs (N, 1) are numbers; others are a number per class."""
    return bool(outputs.shape[1] == 1)


def scored(outputs: Values, examples: Examples, began: float) -> dict[str, Any]:
    """The fields every mode has."""
    y, labels = examples.y, outputs.argmax(axis=1)
    return {
        "inputs": len(outputs),
        "seconds": monotonic() - began,
        "top1": None if y is None else metrics.accuracy(labels, y),
        "output": outputs[:, 0].tolist() if estimates(outputs) else labels.tolist(),
        **measured(outputs, examples),
    }


def measured(outputs: Values, examples: Examples) -> dict[str, float | None]:
    """`pearson` and `spearman` of numbers; `f1` and `matthews` of two classes."""
    if estimates(outputs):
        return {} if examples.scores is None else metrics.of_values(outputs[:, 0], examples.scores)
    if examples.y is None or outputs.shape[1] > 2:
        return {}
    found = metrics.of_classes(outputs.argmax(axis=1), examples.y)
    return {name: value for name, value in found.items() if name in MEASURES}
