"""The server's homomorphic work on a layer, counted and timed: what the tables of GALA and FALCON compare."""

import json
from functools import cache
from typing import Any

from tacit import _core
from tacit.measure.architectures import Layer


@cache
def timed(layer: Layer, suite: str, slots: int | None, runs: int) -> dict[str, Any]:
    """Operations of one layer under `suite` (gazelle or gala), and `seconds` of `runs` computations on random data.

    They run in one thread and rotate cyclically in `slots` slots. Raises `MisuseError` for other suites and for
    layers that no secure parameters hold.
    """
    counted: dict[str, Any] = json.loads(_core.count(json.dumps(layer.conv()), suite, slots, runs))
    return counted


def compare(conv: dict[str, Any], runs: int) -> dict[str, Any]:
    """The server's work on one layer under `gazelle`, `falcon_ntt` and `falcon`, and `same_parameters`.

    The last is falcon-ntt at the parameters of falcon. Seconds of `runs` computations in one thread.
    """
    compared: dict[str, Any] = json.loads(_core.compare(json.dumps(conv), runs))
    return compared
