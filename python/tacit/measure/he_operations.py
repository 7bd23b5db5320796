"""Homomorphic operations of layers on packed slots, counted by the code that runs them."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from tacit import _core
from tacit.errors import MisuseError
from tacit.measure.architectures import ARCHITECTURES, Layer

SUMS = ("rotations", "multiplications", "additions", "ciphertexts", "responses")


@cache
def count(layer: Layer, suite: str, slots: int | None = None) -> dict[str, Any]:
    """Operations of one layer under `suite` (gazelle or gala), rotated cyclically in `slots` slots.

    Raises `MisuseError` for other suites and for layers that no secure parameters hold.
    """
    counted: dict[str, Any] = json.loads(_core.count(json.dumps(layer.conv()), suite, slots, 0))
    return counted


def plan_architecture(name: str, suite: str, slots: int | None) -> dict[str, Any]:
    """Operations of every linear layer of a published network, and their sums."""
    if name not in ARCHITECTURES:
        raise MisuseError(f"`{name}` is no file and none of {', '.join(ARCHITECTURES)}")
    layers = list(ARCHITECTURES[name]())
    # Layers of the same shape cost the same, whatever they are called.
    rows = [{"name": layer.name, **count(layer._replace(name=""), suite, slots)} for layer in layers]
    return {"model": name, "suite": suite, "slots": slots, "layers": rows, "operations": total(rows)}


def total(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Sums over layers."""
    sums = dict.fromkeys(SUMS, 0)
    for row in rows:
        for key in SUMS:
            sums[key] += row[key]
    return sums
