"""Widths of weights, layer by layer: the least perturbation under a bound on bytes (UFO, section V-A)."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from tacit.errors import MisuseError

Table = Sequence[Sequence[float]]


def assigned(perturbation: Table, cost: Table, bound: float) -> list[int]:
    """The index of the width of each layer: least sum of `perturbation`, with a sum of `cost` of at most `bound`.

    Both are (layers, widths). Raises `MisuseError` when the narrowest widths cost more.
    """
    omega, price = np.array(perturbation, np.float64), np.array(cost, np.float64)
    layers, widths = omega.shape
    once = np.kron(np.eye(layers), np.ones(widths))
    limits = [LinearConstraint(once, 1, 1), LinearConstraint(price.reshape(1, -1) / bound, -np.inf, 1)]
    scale = max(float(omega.max()), 1e-300)
    found = milp(omega.reshape(-1) / scale, constraints=limits, integrality=np.ones(omega.size), bounds=Bounds(0, 1))
    if found.x is None:
        least = int(price.min(axis=1).sum())
        raise MisuseError(f"no widths cost at most {int(bound)} bytes; the least is {least}")
    return [int(index) for index in found.x.reshape(layers, widths).argmax(axis=1)]
