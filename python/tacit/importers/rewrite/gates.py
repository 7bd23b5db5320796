"""Products of a tensor and a gate of itself, SiLU, HardSwish and Mish, as one function: one step for several."""

import math
from collections.abc import Callable, Mapping

from tacit.importers.call import Call
from tacit.importers.rewrite.defined import HARD_SWISH, MISH, NUMBERS_SINCE, SILU
from tacit.importers.rewrite.writer import Writer
from tacit.importers.unified import DOMAIN

CLOSE = 1e-4
"""How near an exporter writes a sixth."""


def gated(w: Writer) -> str | None:
    """Mul of `x` and its gate, `sigmoid(alpha*x)`, `clip(x + 3, 0, 6)` times a number, or `tanh(softplus(x))`."""
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
        factor = 6 * hard(w, gate, x)
        if factor:
            function = w.put(HARD_SWISH, x, domain=DOMAIN)
            return function if math.isclose(factor, 1, rel_tol=CLOSE) else w.scale(function, factor)
    return None


def hard(w: Writer, name: str, x: str) -> float:
    """The number by which `name` is `clip(x + 3, 0, 6)` times it; 0 if it is something else."""
    call = w.written(name)
    if call is None:
        return 0.0
    if call.operator == "HardSigmoid" and call.inputs[0] == x:
        slope, middle = (float(call.attributes.get(key, default)) for key, default in (("alpha", 0.2), ("beta", 0.5)))
        return slope if math.isclose(slope, 1 / 6, rel_tol=CLOSE) and middle == 0.5 else 0.0
    if call.operator == "Clip":
        return float(bounds(call) == (0.0, 6.0) and moved(w, call.inputs[0], x) == 3)
    if call.operator in ("Mul", "Div") and len(call.inputs) == 2:
        first, second = call.inputs
        value = number(call, second)
        if value is None and call.operator == "Mul":
            first, value = second, number(call, first)
        if value and math.isfinite(value):
            return hard(w, first, x) * (value if call.operator == "Mul" else 1 / value)
    return 0.0


def bounds(call: Call) -> tuple[float | None, float | None]:
    """The least and the largest result of a Clip, which are attributes before opset 11 and inputs since."""
    least, most = (number(call, call.inputs[at]) if len(call.inputs) > at else None for at in (1, 2))
    least = call.attributes.get("min") if least is None else least
    return least, call.attributes.get("max") if most is None else most


def moved(w: Writer, name: str, x: str) -> float | None:
    """The number that is added to `x` in `name`."""
    call = w.written(name)
    if call is None or call.operator != "Add" or x not in call.inputs:
        return None
    return number(call, next((read for read in call.inputs if read != x), ""))


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
