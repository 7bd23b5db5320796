"""Products of a tensor and a gate of itself, SiLU and Mish, as one function: one step, where there were two."""

import math
from collections.abc import Callable, Mapping

from tacit.importers.call import Call
from tacit.importers.rewrite.defined import MISH, NUMBERS_SINCE, SILU
from tacit.importers.rewrite.writer import Writer
from tacit.importers.unified import DOMAIN


def gated(w: Writer) -> str | None:
    """Mul of `x` and its gate, `sigmoid(alpha*x)` or `tanh(softplus(x))`: one function."""
    for x, gate in (w.call.inputs, w.call.inputs[::-1]):
        call = w.written(gate)
        if call is None or x in w.call.constants:
            continue
        if call.operator == "Sigmoid":
            alpha = 1.0 if call.inputs[0] == x else multiple(w, call.inputs[0], x)
            if alpha and (alpha == 1 or w.opset >= NUMBERS_SINCE):
                return w.put(SILU, x, domain=DOMAIN, alpha=alpha)
        if call.operator == "Tanh":
            soft = w.written(call.inputs[0])
            if soft is not None and soft.operator == "Softplus" and soft.inputs[0] == x:
                return w.put(MISH, x, domain=DOMAIN)
    return None


def multiple(w: Writer, name: str, x: str) -> float:
    """The number by which `name` is `x` times it; 0 if it is something else."""
    call = w.written(name)
    if call is None or call.operator != "Mul" or x not in call.inputs:
        return 0.0
    other = number(call, next((read for read in call.inputs if read != x), ""))
    return other if other is not None and math.isfinite(other) else 0.0


def number(call: Call, name: str) -> float | None:
    """A constant of one value."""
    value = call.constants.get(name)
    return float(value.item()) if value is not None and value.size == 1 else None


def mish(w: Writer) -> str:
    """Mish: `x*tanh(softplus(x))`, as one function."""
    return w.put(MISH, w.x, domain=DOMAIN)


def swish(w: Writer) -> str:
    """Swish: `x*sigmoid(alpha*x)`, as one function."""
    alpha = float(w.call.attributes.get("alpha", 1.0))
    return w.scale(w.x, 0.5) if alpha == 0 else w.put(SILU, w.x, domain=DOMAIN, alpha=alpha)


GATES: Mapping[str, Callable[[Writer], str | None]] = {"Mish": mish, "Mul": gated, "Swish": swish}
