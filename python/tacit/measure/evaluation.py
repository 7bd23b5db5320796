"""A model over a labelled data set: the float source, the interpreter, or the private run."""

from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from tacit.data.corpus import Corpus, is_text
from tacit.data.corpus import load as load_texts
from tacit.data.examples import Examples, load_one
from tacit.data.tables import is_table
from tacit.errors import MisuseError
from tacit.measure import quality, similarity, writing
from tacit.measure.quality import Metric
from tacit.measure.similarity import reader
from tacit.measure.writing import CHANCE, Answers
from tacit.model import Model, Progress
from tacit.report import metrics
from tacit.report.metrics import Values
from tacit.session.pair import Pair

MEASURES = ("f1", "matthews", "pearson", "spearman", "label_rmse", "label_r2")


class Reference(NamedTuple):
    """The float model that results are compared with, and how; of language models its `answers`."""

    source: Path | None = None
    metric: Metric = "auto"
    answers: Answers | None = None


ALONE = Reference()
"""Nothing to compare with."""


def read(model: Model, data: Path, limit: int | None = None, kept: Sequence[str] = ()) -> Examples | Corpus:
    """The first `limit` examples of a file; texts of an encoder stay texts. Of a table `kept` columns are kept."""
    if kept and not is_table(data):
        raise MisuseError(f"--target and --expected name columns of a .csv or .parquet file, which {data} is not")
    if not is_text(data):
        x, y, scores, beside, _ = load_one(data, model.wanted._replace(kept=kept), model.preprocessing)
        first = {name: values[:limit] for name, values in beside.items()}
        return Examples(x[:limit], None if y is None else y[:limit], None if scores is None else scores[:limit], first)
    corpus = load_texts(data, model.description.get("labels", ())).first(limit)
    text = reader(model)
    if text.pooling != "classes":
        return corpus
    return Examples(text.tokens(corpus.inputs(True)).x, corpus.labels, corpus.scores)


def evaluate(
    mode: str,
    pair: Pair,
    given: Examples | Corpus,
    reference: Reference,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Examples in a `mode`, plain (the float model), simulate or private, compared with the float model if known."""
    source, metric, answers = reference
    if isinstance(given, Corpus) and pair.model.text is not None and pair.model.text.decoding is not None:
        if mode != "simulate" or source is None:
            raise MisuseError("a language model is evaluated with --mode simulate and --model DIR or M.gguf")
        return writing.evaluate(pair.model, given.texts, source, answers, progress)
    if answers is not None:
        raise MisuseError("--answers is for language models and texts (.txt)")
    if isinstance(given, Corpus):
        if metric not in ("auto", "embedding"):
            raise MisuseError(f"--metric {metric} is not for sentence embeddings; take embedding")
        return similarity.evaluate(mode, pair, given, source, progress)
    reference = reference._replace(metric=quality.chosen(metric, pair.model.output_shape))
    if mode == "private":
        return private(pair, given, reference, progress)
    if mode == "simulate":
        return simulated(pair.model, given, reference, progress)
    if source is None:
        raise MisuseError("--mode plain needs the float source: --model M.onnx")
    return plain(source, given, pair.model)


def plain(source: Path, examples: Examples, compiled: Model) -> dict[str, Any]:
    """The float model under onnxruntime: what was `compiled` of it, for inputs as that takes them."""
    began = monotonic()
    outputs = floats(source, examples, compiled)
    return {"mode": "plain", "model": str(source), **scored(outputs, examples, began)}


def floats(source: Path, examples: Examples, compiled: Model) -> Values:
    """Outputs (N, outputs) of the part of the float model that was `compiled`."""
    from tacit.compiler.float_model import FloatModel

    text, selection = compiled.text, compiled.selection
    length, public = (None, False) if text is None else (text.sequence, text.embedding is not None)
    return FloatModel(source, (), length, public, selection)(examples.x).astype(np.float64)


def simulated(
    model: Model,
    examples: Examples,
    reference: Reference = ALONE,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The integer interpreter in this process; with the float model, its `float_top1` and their `agreement`.

    The `stochastic_agreement` is that of the default protocols' rounding, which is drawn.

    Fields of the `metric` say how near the results are.
    """
    began = monotonic()
    outputs = model.real(model.simulate(examples.x, progress))
    content = {"mode": "simulate", "model": str(model.path), **scored(outputs, examples, began)}
    source, metric, _ = reference
    if source is None:
        return content
    wanted = floats(source, examples, model)
    known = scored(wanted, examples, began)
    compared = {f"float_{name}": value for name, value in known.items() if name in ("top1", *MEASURES)}
    if not estimates(outputs):
        labels = np.array(known["output"])
        compared["agreement"] = float((np.array(content["output"]) == labels).mean())
        by_chance = model.simulate(examples.x, progress, CHANCE).argmax(axis=1)
        compared["stochastic_agreement"] = float((by_chance == labels).mean())
    return {**content, "source": str(source), **compared, **near(metric, outputs, wanted, model)}


def private(
    pair: Pair,
    examples: Examples,
    reference: Reference = ALONE,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Client and server as two processes, all inputs in one session; open results are compared with the float model."""
    done = pair.run(examples.x, examples.y, progress)
    outputs = done.prediction.logits
    content = {"mode": "private", **done.report, **({} if outputs is None else measured(outputs, examples))}
    source, metric, _ = reference
    if source is None or outputs is None:
        return content
    return {**content, "source": str(source), **near(metric, outputs, floats(source, examples, pair.model), pair.model)}


def near(metric: Metric, outputs: Values, wanted: Values, model: Model) -> dict[str, Any]:
    """Fields of a metric for outputs (N, outputs) and those of the float model."""
    shape = model.output_shape
    return quality.compared(quality.chosen(metric, shape), outputs, wanted, shape)


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
    """Correlations and errors of numbers whose true values are known; `f1` and `matthews` of two classes."""
    if estimates(outputs):
        return {} if examples.scores is None else of_scores(outputs[:, 0], examples.scores)
    if examples.y is None or outputs.shape[1] > 2:
        return {}
    found = metrics.of_classes(outputs.argmax(axis=1), examples.y)
    return {name: value for name, value in found.items() if name in MEASURES}


def of_scores(found: Values, scores: Values) -> dict[str, float | None]:
    """`pearson` and `spearman` of estimates and true values, and `label_rmse` and `label_r2` in their units."""
    distance = quality.distances(found[:, None], scores[:, None])
    return {**metrics.of_values(found, scores), "label_rmse": distance["rmse"], "label_r2": distance["r2"]}
