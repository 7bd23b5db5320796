"""Ranges of what the unified functions read: the fixed-point inverse square root needs them narrow."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tacit_lab.train.batches import Examples
from tacit_lab.train.bert import Classifier, Seen
from tacit_lab.train.functions import EPSILON, Smooth, smu

MEASURED = 64
TOLERANCE = 2**-8
"""Relative error that Newton's method must reach: that of activations of 8 bits."""
MOST_ITERATIONS = 40


def excess(model: Classifier, seen: Seen, mask: Tensor, span: float) -> Tensor:
    """Mean square of how far arguments of unified functions of tokens lie outside `span` times their smoothness."""
    total = torch.zeros(())
    pairs = mask[:, None, :, None] * mask[:, None, None, :]
    for index, layer in enumerate(model.layers()):
        if layer.activation is not None:
            total = total + outside(seen.activations[index], layer.activation, mask[:, :, None], span)
        if layer.softmax is not None:
            total = total + outside(seen.scores[index], layer.softmax, pairs, span)
    return total


def outside(x: Tensor, part: Smooth, kept: Tensor, span: float) -> Tensor:
    """Mean square of how far x lies outside, in units of the smoothness, over what is `kept`."""
    over = functional.relu(x.float().abs() - span * part.smoothness) * kept
    return over.square().sum() / kept.sum()


def spans(model: Classifier, examples: Examples) -> list[dict[str, Any]]:
    """The least and largest argument of every inverse square root, by layer, over all tokens of the examples."""
    model.eval()
    found: list[dict[str, list[float]]] = [{} for _ in range(len(model.layers()) + 1)]
    with torch.no_grad():
        for _, batch in examples.ordered(MEASURED):
            _, seen = model(batch.ids, batch.mask)
            for index, ranges in enumerate(arguments(model, seen, batch.mask)):
                for name, values in ranges.items():
                    low, high = found[index].get(name, [math.inf, -math.inf])
                    found[index][name] = [min(low, values.min().item()), max(high, values.max().item())]
    return [{name: described(*ends) for name, ends in layer.items()} for layer in found]


def described(low: float, high: float) -> dict[str, float]:
    """Both ends, their ratio, and Newton's iterations from the best affine start."""
    ratio = high / max(low, 1e-12)
    return {"low": low, "high": high, "ratio": ratio, "iterations": iterations(ratio)}


def arguments(model: Classifier, seen: Seen, mask: Tensor) -> list[dict[str, Tensor]]:
    """What goes into each inverse square root, by layer; the first entry is that of the embeddings."""
    chosen = mask.bool()
    found: list[dict[str, Tensor]] = [{"norm": variances(seen.norms[0], chosen)}]
    for index, layer in enumerate(model.layers()):
        first, second = seen.norms[1 + 2 * index], seen.norms[2 + 2 * index]
        ranges = {"attention_norm": variances(first, chosen), "norm": variances(second, chosen)}
        if layer.activation is not None:
            wide, part = seen.activations[index][chosen], layer.activation
            ranges["activation"] = ((1 - part.slope) * wide).square() + part.smoothness.square()
        if layer.softmax is not None:
            ranges |= of_scores(seen.scores[index], layer.softmax, mask)
        found.append(ranges)
    return found


def of_scores(scores: Tensor, part: Smooth, mask: Tensor) -> dict[str, Tensor]:
    """Arguments of the smooth ReLU of scores, and of the sums that softmaxes divide by."""
    pairs = (mask[:, None, :, None] * mask[:, None, None, :]).expand_as(scores).bool()
    kept = smu(scores, torch.zeros(()), part.smoothness) * mask[:, None, None, :]
    rows = mask[:, None, :].expand(scores.shape[:3]).bool()
    return {"scores": scores[pairs].square() + part.smoothness.square(), "sums": (kept.sum(dim=-1) + EPSILON)[rows]}


def variances(x: Tensor, chosen: Tensor) -> Tensor:
    """The variance of each token."""
    return x[chosen].float().var(dim=-1, unbiased=False)


def iterations(ratio: float) -> int:
    """Newton steps that `1 / sqrt(z)` needs from the best affine start, z between 1 and `ratio`."""
    z = torch.logspace(0, math.log10(max(ratio, 1.001)), 400, dtype=torch.float64)
    y = affine(ratio)[0] - affine(ratio)[1] * z
    for step in range(MOST_ITERATIONS):
        if ((y * z.sqrt() - 1).abs() <= TOLERANCE).all():
            return step
        y = y * (3 - z * y * y) / 2
    return MOST_ITERATIONS


def affine(ratio: float) -> tuple[float, float]:
    """The a and b of the `a - b z` whose relative error as `1 / sqrt(z)` on [1, ratio] is least."""
    # The error sqrt(z) (a - b z) - 1 is -e at both ends and +e at z = a / 3b between them; p is its shape at a = 1.
    p = (math.sqrt(ratio) - 1) / (ratio**1.5 - 1) if ratio > 1.001 else 1 / 3
    top = 2 / math.sqrt(27 * p)
    end = 1 - p
    a = 2 / (top + end)
    return a, a * p
