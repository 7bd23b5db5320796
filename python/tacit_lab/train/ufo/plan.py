"""Which grid each layer gets: sensitivities, costs and the integer program, kept as a file of JSON."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import Tensor

from tacit_lab.train.ufo import cost, sensitivity, widths
from tacit_lab.train.ufo.data import Images
from tacit_lab.train.ufo.grid import chosen, perturbation, z_score
from tacit_lab.train.ufo.integers import Grid, plain
from tacit_lab.train.ufo.teacher import Folded

CHOICES = (2, 3, 4, 5, 6)


def planned(float_: Folded, images: Images, average: float, probes: int, seed: int) -> dict[str, Any]:
    """Grids under the bytes of a network whose weights all had `average` bits (linear between whole widths)."""
    return replanned(float_, sensitivity.traces(float_, images, probes, seed), average)


def replanned(float_: Folded, traces: list[float], average: float) -> dict[str, Any]:
    """The plan for traces that are known."""
    weights = [sensitivity.in_places(weight.detach(), index) for index, weight in enumerate(float_.weights)]
    options = [[chosen(weight, bits) for bits in CHOICES] for weight in weights]
    return solved(options, weights, traces, average)


def solved(options: list[list[Grid]], weights: list[Tensor], traces: list[float], average: float) -> dict[str, Any]:
    """The integer program over the grids that layers may have."""
    omega = [
        [max(trace, 0.0) * perturbation(weight, grid) for grid in layer]
        for layer, weight, trace in zip(options, weights, traces, strict=True)
    ]
    products = cost.products()
    prices = [[product.bytes(grid) for grid in layer] for product, layer in zip(products, options, strict=True)]
    bound = uniform([[product.bytes(plain(bits)) for bits in CHOICES] for product in products], average)
    found = widths.assigned(omega, prices, bound)
    layers = [
        {**asdict(layer[place]), "bits": layer[place].bits, "trace": trace, "z_score": z_score(weight)}
        for layer, place, trace, weight in zip(options, found, traces, weights, strict=True)
    ]
    total = sum(price[place] for price, place in zip(prices, found, strict=True))
    return {"layers": layers, "bound": bound, "product_bytes": total, "perturbation": omega, "bytes": prices}


def uniform(prices: list[list[int]], average: float) -> float:
    """Bytes of the network where all weights have so many bits."""
    below = min(max(int(average) - CHOICES[0], 0), len(CHOICES) - 2)
    part = average - CHOICES[below]
    return sum(price[below] + part * (price[below + 1] - price[below]) for price in prices)


def traces_of(plan: dict[str, Any]) -> list[float]:
    """The traces that a plan was made with."""
    return [layer["trace"] for layer in plan["layers"]]


def grids(plan: dict[str, Any]) -> list[Grid]:
    """The grids of the layers, in order."""
    return [Grid(tuple(layer["importance"]), layer["offset"]) for layer in plan["layers"]]


def write(path: Path, plan: dict[str, Any]) -> None:
    """The plan as a file."""
    path.write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """What `write` wrote."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
