"""Homomorphic operations of layers on packed slots, counted by the code that runs them."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from tacit import _core
from tacit.architectures import ARCHITECTURES, Layer
from tacit.errors import MisuseError

SUMS = ("rotations", "multiplications", "additions", "ciphertexts", "responses")


@cache
def count(layer: Layer, suite: str, slots: int | None = None, runs: int = 0) -> dict[str, Any]:
    """Operations of one layer under `suite` (gazelle or gala), rotated cyclically in `slots` slots.

    With `runs`, `seconds` has the time of that many computations on random data, in one thread.
    Raises `MisuseError` for other suites and for layers that no secure parameters hold.
    """
    counted: dict[str, Any] = json.loads(_core.count(json.dumps(layer.conv()), suite, slots, runs))
    return counted


def compare(conv: dict[str, Any], runs: int) -> dict[str, Any]:
    """The server's work on one layer under `gazelle`, `falcon_ntt` and `falcon`, and `same_parameters`.

    The last is falcon-ntt at the parameters of falcon. Seconds of `runs` computations in one thread.
    """
    compared: dict[str, Any] = json.loads(_core.compare(json.dumps(conv), runs))
    return compared


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
