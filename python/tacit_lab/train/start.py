"""Where the training of a unified model starts: layer by layer as near to the original as linear algebra gets.

A softmax does not see what is added to all scores of a row, so the keys' biases are free: they move every row so that
its largest score is `WINDOW`, and what lies more than a window below it gets next to nothing of the smooth ReLU. How
wide a window is in the original's scores is tried for each head. The dense layers after attention and after the
activation are then solved for, by least squares, to give what the original gives there.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from tacit_lab.train.batches import Batch
from tacit_lab.train.bert import Classifier, Layer, Seen
from tacit_lab.train.functions import relu_softmax, smu

WINDOW = 4.0
"""The largest score of a row, about."""
WIDTHS = (1.0, 2.0, 4.0, 8.0)
"""Widths of a window in the original's scores that are tried."""
SAMPLED = 3
"""A batch in so many is enough for the few numbers of a head."""
RIDGE = 1e-3
"""How much solved weights are held to those they replace, beside the mean square of what they read."""


class Known(NamedTuple):
    """A batch: states that the unified model has so far, the mask (N, 1, 1, tokens), and what the original has."""

    x: Tensor
    mask: Tensor
    seen: Seen

    def tokens(self, values: Tensor) -> Tensor:
        """The values of (N, tokens, size) that are no filling."""
        return values[self.mask[:, 0, 0].bool()]


def approach(model: Classifier, teacher: Classifier, batches: list[Batch]) -> list[float]:
    """Fit the unified `model`, still with the weights of its `teacher`; gives how far each layer's states are off."""
    errors = []
    with torch.no_grad():
        known = [begun(model, teacher, batch) for batch in batches]
        for index, layer in enumerate(model.layers()):
            if layer.softmax is not None:
                for head in range(layer.heads):
                    move(layer, head, known[::SAMPLED])
            solve(layer.attention["output"]["dense"], [attended(layer, index, part) for part in known])
            solve(layer.output["dense"], [activated(layer, index, part) for part in known])
            known = [part._replace(x=layer(part.x, part.mask, Seen())) for part in known]
            errors.append(error(known, index))
    return errors


def begun(model: Classifier, teacher: Classifier, batch: Batch) -> Known:
    """The embeddings of a batch, and what the original computes of it."""
    _, seen = teacher(batch.ids, batch.mask)
    x: Tensor = model.embeddings["LayerNorm"](seen.norms[0])
    return Known(x, batch.mask[:, None, None, :].float(), seen)


def error(known: list[Known], index: int) -> float:
    """How far states after a layer are from the original's, as a share of these."""
    pairs = [(part.tokens(part.x), part.tokens(part.seen.states[index])) for part in known]
    off = sum((ours - wanted).square().sum().item() for ours, wanted in pairs)
    return float(off / sum(wanted.square().sum().item() for _, wanted in pairs))


def rows(layer: Layer, head: int, part: Known) -> tuple[Tensor, Tensor]:
    """Queries (N, tokens, width) and scores (N, tokens, tokens) of a head."""
    width = part.x.shape[2] // layer.heads
    places = slice(head * width, (head + 1) * width)
    query, key = (layer.attention["self"][name](part.x)[..., places] for name in ("query", "key"))
    return query, query @ key.transpose(1, 2) * width**-0.5


def move(layer: Layer, head: int, known: list[Known]) -> None:
    """Scale the queries of a head and move its keys, as suits the smooth ReLU best."""
    assert layer.softmax is not None
    projections, size = layer.attention["self"], layer.attention["self"]["query"].in_features // layer.heads
    places = slice(head * size, (head + 1) * size)
    given = [(*rows(layer, head, part), part.mask[:, 0]) for part in known]
    best = (float("inf"), 1.0, torch.zeros(size))
    for width in WIDTHS:
        factor = WINDOW / width
        bias = shift([(query * factor, scores * factor, mask) for query, scores, mask in given])
        off = 0.0
        for query, scores, mask in given:
            moved = factor * scores + (query @ bias)[..., None] * factor * size**-0.5
            wanted = torch.softmax(scores + (mask - 1) * 1e4, dim=-1)
            difference = (relu_softmax(moved, mask, layer.softmax.smoothness) - wanted) * mask.transpose(1, 2)
            off += difference.square().sum().item()
        best = min(best, (off, factor, bias), key=lambda tried: tried[0])
    projections["query"].weight[places] *= best[1]
    projections["query"].bias[places] *= best[1]
    projections["key"].bias[places] += best[2]


def shift(given: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    """What to add to keys so that the largest score of rows becomes `WINDOW`, as near as one vector can."""
    size = given[0][0].shape[2]
    square, product = torch.zeros(size, size), torch.zeros(size)
    for query, scores, mask in given:
        chosen = mask[:, 0].bool()
        missing = WINDOW - (scores + (mask - 1) * 1e4).max(dim=-1).values[chosen]
        read = query[chosen] * size**-0.5
        square += read.T @ read
        product += read.T @ missing
    return torch.linalg.solve(square + RIDGE * square.diagonal().mean() * torch.eye(size), product)


def attended(layer: Layer, index: int, part: Known) -> tuple[Tensor, Tensor]:
    """What the dense layer after attention reads, and what it should give."""
    context = layer.context(part.x, part.mask, Seen())
    return part.tokens(context), part.tokens(part.seen.norms[1 + 2 * index] - part.x)


def activated(layer: Layer, index: int, part: Known) -> tuple[Tensor, Tensor]:
    """What the dense layer after the activation reads, and what it should give."""
    x = layer.joined(layer.attention["output"], layer.context(part.x, part.mask, Seen()), part.x, Seen())
    wide, smooth = layer.intermediate["dense"](x), layer.activation
    active = nn.functional.gelu(wide) if smooth is None else smu(wide, smooth.slope, smooth.smoothness)
    return part.tokens(active), part.tokens(part.seen.norms[2 + 2 * index] - x)


def solve(dense: nn.Linear, given: list[tuple[Tensor, Tensor]]) -> None:
    """Least squares for weight and bias, held to what they are."""
    size = dense.in_features + 1
    square, product = torch.zeros(size, size), torch.zeros(size, dense.out_features)
    for read, wanted in given:
        full = torch.cat([read, torch.ones(len(read), 1)], dim=1)
        square += full.T @ full
        product += full.T @ (wanted - dense(read))
    held = RIDGE * square.diagonal().mean() * torch.eye(size)
    change = torch.linalg.solve(square + held, product)
    dense.weight += change[:-1].T
    dense.bias += change[-1]
