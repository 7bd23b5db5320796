"""How good predictions are, as GLUE measures it: accuracy, F1, Matthews', Pearson's and Spearman's correlation."""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.data.text import spearman

Labels = NDArray[np.int64]
Values = NDArray[np.float64]


def accuracy(found: Labels, labels: Labels) -> float:
    """Share of equal classes."""
    return float((found == labels).mean())


def f1(found: Labels, labels: Labels) -> float:
    """Harmonic mean of precision and recall of class 1; 0 if nothing is of it."""
    hits = int(((found == 1) & (labels == 1)).sum())
    total = int((found == 1).sum() + (labels == 1).sum())
    return 2 * hits / total if total else 0.0


def matthews(found: Labels, labels: Labels) -> float:
    """Correlation of classes 0 and 1; 0 if one side is constant."""
    return pearson((found == 1).astype(np.float64), (labels == 1).astype(np.float64)) or 0.0


def pearson(first: Values, second: Values) -> float | None:
    """Correlation of two series; None if one of them is constant."""
    centred = [series - series.mean() for series in (first, second)]
    below = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / below if below > 0 else None


def of_classes(found: Labels, labels: Labels) -> dict[str, float]:
    """Fields `accuracy`, and of two classes `f1` and `matthews`."""
    scores = {"accuracy": accuracy(found, labels)}
    if max(found.max(initial=0), labels.max(initial=0)) > 1:
        return scores
    return {**scores, "f1": f1(found, labels), "matthews": matthews(found, labels)}


def of_values(found: Values, values: Values) -> dict[str, float | None]:
    """Fields `pearson` and `spearman`."""
    return {"pearson": pearson(found, values), "spearman": spearman(found, values)}
