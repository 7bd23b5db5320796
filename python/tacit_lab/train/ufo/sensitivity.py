"""How much the float network minds the rounding of a layer (UFO, section V-A, after HAWQ-V2).

`Omega_i^b = mean trace of the Hessian of layer i * |Q_b(G W G^T) - G W G^T|^2`, the trace by Hutchinson's estimator:
the mean of `v . H v` over random signs v.
"""

import torch
from tacit.report import terminal
from torch import Tensor
from torch.nn import functional

from tacit_lab.train.ufo import winograd
from tacit_lab.train.ufo.data import Images, input_scale
from tacit_lab.train.ufo.teacher import Folded

SIZE = 64


def traces(network: Folded, images: Images, probes: int, seed: int) -> list[float]:
    """The mean diagonal entry of the Hessian of the cross entropy, for each convolution."""
    random = torch.Generator().manual_seed(seed)
    weights = list(network.weights)
    totals = [0.0] * len(weights)
    batches = list(images.ordered(SIZE))
    with terminal.progress("traces of the Hessian") as advance:
        for done, (x, labels) in enumerate(batches):
            loss = functional.cross_entropy(network(x * input_scale()), labels)
            first = torch.autograd.grad(loss, weights, create_graph=True)
            for _ in range(probes):
                signs = [torch.randint(0, 2, w.shape, generator=random) * 2.0 - 1 for w in weights]
                for index, value in enumerate(diagonal(first, weights, signs)):
                    totals[index] += value / (probes * len(batches))
            advance(done + 1, len(batches))
    return [total / weight.numel() for total, weight in zip(totals, weights, strict=True)]


def diagonal(first: tuple[Tensor, ...], weights: list[Tensor], signs: list[Tensor]) -> list[float]:
    """`v . H v` of each layer: signs of different layers are independent, so what they share is zero on average."""
    product = sum((g * v).sum() for g, v in zip(first, signs, strict=True))
    second = torch.autograd.grad(product, weights, retain_graph=True)
    return [(h * v).sum().item() for h, v in zip(second, signs, strict=True)]


def in_places(weight: Tensor, index: int) -> Tensor:
    """Weights as they are rounded: `G W G^T` where Winograd fits, for all but the first layer and strides."""
    square = index > 0 and weight.shape[0] == weight.shape[1]
    return winograd.transformed(weight, torch.tensor(winograd.G)) if square else weight
