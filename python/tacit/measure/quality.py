"""How near results of a compiled model are to those of its float model, by what the results are.

Class scores are compared by the class that is best, numbers by their distance, sequences by the best class of each
token, maps of classes by intersection over union, embeddings by the cosine.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

Metric = Literal["auto", "labels", "regression", "tokens", "segmentation", "embedding"]
Outputs = NDArray[np.float64]
VERDICTS = ((0.99, "faithful"), (0.95, "close"), (0.0, "poor"))
"""The least score that earns each word."""


def chosen(metric: Metric, shape: tuple[int, ...]) -> Metric:
    """The metric that suits results of a shape, batch left out, unless one was named.

    Raises `MisuseError` for one that results of this shape do not have.
    """
    if metric == "auto":
        return automatic(shape)
    axes = {"labels": 1, "tokens": 2, "segmentation": 3}
    least = axes.get(metric, 0)
    if len(shape) < least or (metric in axes and int(np.prod(shape)) == 1):
        advice = f"take {automatic(shape)}, regression or embedding"
        raise MisuseError(f"--metric {metric} is not for results of shape {list(shape)}; {advice}")
    return metric


def automatic(shape: tuple[int, ...]) -> Metric:
    """The metric of a shape: one number is estimated, a vector scores classes, a matrix tokens, an image positions."""
    sizes = [size for size in shape if size != 1]
    if not sizes:
        return "regression"
    by_axes: dict[int, Metric] = {1: "labels", 2: "tokens", 3: "segmentation"}
    return "labels" if len(sizes) == 1 else by_axes.get(len(shape), "regression")


def compared(metric: Metric, found: Outputs, floats: Outputs, shape: tuple[int, ...]) -> dict[str, Any]:
    """The fields of a metric for outputs (N, ...) and those of the float model, with `score` and `verdict`.

    The score is 1 where they are the same; it is what `compile --target-agreement` asks for.
    """
    flat, wanted = found.reshape(len(found), -1), floats.reshape(len(floats), -1)
    fields = MEASURES[metric](flat, wanted, shape)
    score = fields.pop("score")
    return {"metric": metric, **fields, "score": score, "verdict": verdict(score)}


def verdict(score: float) -> str:
    """One word."""
    return next((word for least, word in VERDICTS if score >= least), "poor")


def labels(found: Outputs, floats: Outputs, _: tuple[int, ...]) -> dict[str, float]:
    """Share of inputs whose best class is the same."""
    return {"score": float((found.argmax(axis=1) == floats.argmax(axis=1)).mean())}


def regression(found: Outputs, floats: Outputs, _: tuple[int, ...]) -> dict[str, float]:
    """Errors in the units of the results, and the share of their variance that is right."""
    distance = distances(found, floats)
    return {**distance, "score": max(0.0, 1.0 - distance["relative_rmse"])}


def distances(found: Outputs, wanted: Outputs) -> dict[str, float]:
    """`rmse` and `largest_error` in real units, `relative_rmse` by the deviation of what is wanted, and `r2`.

    Where that does not vary its root mean square takes the place of the deviation.
    """
    errors = found - wanted
    rmse = float(np.sqrt((errors**2).mean()))
    spread = float(np.sqrt(((wanted - wanted.mean(axis=0)) ** 2).mean()))
    unit = spread or float(np.sqrt((wanted**2).mean()))
    relative = rmse / unit if unit else float(rmse > 0)
    largest = float(np.abs(errors).max())
    return {"rmse": rmse, "largest_error": largest, "relative_rmse": relative, "r2": 1.0 - relative**2}


def tokens(found: Outputs, floats: Outputs, shape: tuple[int, ...]) -> dict[str, float]:
    """Share of positions whose best class along the last axis is the same."""
    first, second = (values.reshape(-1, shape[-1]).argmax(axis=1) for values in (found, floats))
    share = float((first == second).mean())
    return {"token_accuracy": share, "score": share}


def segmentation(found: Outputs, floats: Outputs, shape: tuple[int, ...]) -> dict[str, float]:
    """Mean intersection over union of the classes in the float model's map, and the share of equal positions.

    Classes lie along the first axis; a single one is there where its score is above zero.
    """
    first, second = (classes(values.reshape(len(values), *shape)) for values in (found, floats))
    present = np.unique(second)
    both = [((first == one) & (second == one)).sum() for one in present]
    either = [((first == one) | (second == one)).sum() for one in present]
    mean = float(np.mean(np.array(both) / np.array(either)))
    return {"mean_iou": mean, "pixel_accuracy": float((first == second).mean()), "score": mean}


def classes(values: Outputs) -> NDArray[np.int64]:
    """The class of each position of maps (N, classes, ...)."""
    return values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(np.int64)


def embedding(found: Outputs, floats: Outputs, _: tuple[int, ...]) -> dict[str, float]:
    """Cosine of each result with the float model's."""
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(floats, axis=1)
    near = np.where(lengths > 0, (found * floats).sum(axis=1) / np.where(lengths > 0, lengths, 1), 0.0)
    mean = float(near.mean())
    return {"cosine_mean": mean, "cosine_min": float(near.min()), "score": mean}


MEASURES: Mapping[str, Callable[[Outputs, Outputs, tuple[int, ...]], dict[str, float]]] = {
    "labels": labels,
    "regression": regression,
    "tokens": tokens,
    "segmentation": segmentation,
    "embedding": embedding,
}
