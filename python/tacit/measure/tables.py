"""How good the scores of rows are, as credit and fraud scoring measure it."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.cells import numbers
from tacit.data.examples import Examples
from tacit.data.schema import Result, usual
from tacit.errors import MisuseError
from tacit.model import Model, Progress
from tacit.session.pair import Pair

Values = NDArray[np.float64]
Classes = NDArray[np.int64]
NEAR = 1e-3
"""How far shares of classes may be from adding up to one."""


class Columns(NamedTuple):
    """The columns of true classes or numbers, and of the library's scores."""

    target: str | None = None
    expected: str | None = None


def auc(scores: Values, positive: NDArray[np.bool_]) -> float | None:
    """Area under the ROC curve: how often a positive row scores above a negative one, ties counting half.

    None where all rows are of one class. It is the statistic of Mann and Whitney.
    """
    hits, misses = int(positive.sum()), int((~positive).sum())
    if not hits or not misses:
        return None
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return float((ranks[places][positive].sum() - hits * (hits + 1) / 2) / (hits * misses))


def ks(scores: Values, positive: NDArray[np.bool_]) -> float | None:
    """The statistic of Kolmogorov and Smirnov: the largest distance of both classes' distributions of scores.

    None where all rows are of one class.
    """
    hits, misses = int(positive.sum()), int((~positive).sum())
    if not hits or not misses:
        return None
    levels, places = np.unique(scores, return_inverse=True)
    above = np.bincount(places[positive], minlength=len(levels)).cumsum() / hits
    below = np.bincount(places[~positive], minlength=len(levels)).cumsum() / misses
    return float(np.abs(above - below).max())


def log_loss(probabilities: Values, classes: Classes) -> float:
    """Mean of -log of the probability (N, classes) of the class that each row has, cut to what float64 tells from 0."""
    least = np.finfo(np.float64).eps
    chosen = np.clip(probabilities[np.arange(len(classes)), classes], least, 1 - least)
    return float(-np.log(chosen).mean())


def probabilities(values: Values, result: Result) -> Values | None:
    """Probabilities (N, classes) of scores (N, results), where the link says how or scores are that; else None."""
    function = None if result.link is None else result.link.function
    if function in ("sigmoid", "softmax") and result.link is not None:
        likely = result.link.estimates(values)
        return np.concatenate([1 - likely, likely], axis=1) if values.shape[1] == 1 else likely
    are_shares = values.shape[1] > 1 and bool((values >= -NEAR).all() and (np.abs(values.sum(axis=1) - 1) < NEAR).all())
    return values if are_shares and function is None else None


def of_classifier(values: Values, classes: Classes, result: Result) -> dict[str, float | None]:
    """`accuracy`, of two classes `auc` and `ks`, and `log_loss` where scores have probabilities."""
    single = values.shape[1] == 1
    found = (values[:, 0] > 0).astype(np.int64) if single else values.argmax(axis=1)
    fields: dict[str, float | None] = {"accuracy": float((found == classes).mean())}
    if single or values.shape[1] == 2:
        scores = values[:, 0] if single else values[:, 1] - values[:, 0]
        fields |= {"auc": auc(scores, classes == 1), "ks": ks(scores, classes == 1)}
    likely = probabilities(values, result)
    return fields if likely is None else {**fields, "log_loss": log_loss(likely, classes)}


def of_regressor(values: Values, wanted: Values) -> dict[str, float | None]:
    """`label_rmse`, `label_mae` and `label_r2` of estimates (N,); the last is None where nothing varies."""
    errors = values - wanted
    spread = float(((wanted - wanted.mean()) ** 2).sum())
    explained = None if spread == 0 else 1 - float((errors**2).sum()) / spread
    rmse, mae = float(np.sqrt((errors**2).mean())), float(np.abs(errors).mean())
    return {"label_rmse": rmse, "label_mae": mae, "label_r2": explained}


def classes_of(given: Sequence[Any], names: Sequence[str], count: int, where: str) -> Classes:
    """Numbers of classes (N,) of the cells of a column: by their names, or numbers from 0 as they are.

    Raises `MisuseError` that names the row of a cell that is neither.
    """
    places: dict[Any, int] = {name: at for at, name in enumerate(names)}
    known = [places.get(str(value), -1) for value in given]
    if min(known) < 0:
        numeric = {number: at for name, at in places.items() if (number := as_number(name)) is not None}
        numeric = numeric or {float(at): at for at in range(max(count, 2))}
        known = [numeric.get(number, -1) if (number := as_number(value)) is not None else -1 for value in given]
    if min(known) < 0:
        shown = ", ".join(names) or f"0 to {max(count, 2) - 1}"
        raise MisuseError(f"{where}, row {known.index(-1) + 1} holds no class of the model; classes are {shown}")
    return np.asarray(known, np.int64)


def as_number(value: Any) -> float | None:
    """A cell as a number, booleans as 0 and 1; None for other texts."""
    try:
        return float({"true": 1, "false": 0}.get(str(value).strip().lower(), value))
    except (TypeError, ValueError):
        return None


def evaluate(
    mode: str,
    pair: Pair,
    rows: Examples,
    columns: Columns,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Rows of a table by the interpreter (`simulate`) or in a `private` run, against columns that were kept of them."""
    model = pair.model
    began = monotonic()
    if mode == "private":
        done = pair.run(rows.x, None, progress)
        values, content = done.prediction.logits, {"mode": mode, **done.report}
        if values is None:
            raise MisuseError("metrics of tables need scores: evaluate with --reveal output")
    elif mode == "simulate":
        values = model.real(model.simulate(rows.x, progress))
        content = {"mode": mode, "model": str(model.path), "inputs": len(rows.x), "seconds": monotonic() - began}
        content |= {
            "top1": None,
            "output": values.argmax(axis=1).tolist() if values.shape[1] > 1 else values[:, 0].tolist(),
        }
    else:
        raise MisuseError("--target and --expected are for --mode simulate and private")
    fields = measured(model, values, rows.kept, columns)
    top1 = {"top1": fields["accuracy"]} if "accuracy" in fields else {}
    return {**content, **fields, **top1}


def measured(model: Model, values: Values, kept: Mapping[str, Sequence[Any]], columns: Columns) -> dict[str, Any]:
    """Fields of metrics for scores (N, results), and how near they are to the library's."""
    (target, expected), result = columns, meaning(model, values)
    fields: dict[str, Any] = {}
    labels = result.labels(values)
    if labels is not None:
        fields |= {"undecided": labels.count(None), "error_bound": result.error}
    if target is not None and result.kind != "value":
        classes = classes_of(kept[target], result.names, values.shape[1], f"column `{target}`")
        fields |= of_classifier(values, classes, result)
    elif target is not None:
        if values.shape[1] > 1:
            raise MisuseError("--target is one column; this model estimates several numbers")
        fields |= of_regressor(values[:, 0], numbers(kept[target], f"column `{target}`"))
    if expected is not None:
        if values.shape[1] > 1:
            raise MisuseError("--expected is one column of scores; this model has several")
        fields |= near(values, numbers(kept[expected], f"column `{expected}`")[:, None], result)
    return fields


def near(values: Values, wanted: Values, result: Result) -> dict[str, Any]:
    """`expected_error`, the largest distance to the library's scores, and `expected_agreement` with its labels."""
    fields: dict[str, Any] = {"expected_error": float(np.abs(values - wanted).max())}
    if result.kind == "margin":
        fields["expected_agreement"] = float(((values > 0) == (wanted > 0)).mean())
    return fields


def meaning(model: Model, values: Values) -> Result:
    """What results mean: as the model says, or else by their number."""
    if model.schema is not None:
        return model.schema.result
    return usual(values.shape[1], tuple(model.description.get("labels", ())), model.link)
