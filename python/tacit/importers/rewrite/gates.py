"""Products of a tensor and a gate of itself, SiLU, Mish and HardSwish, as one function: one step for two or more."""

import math
from collections.abc import Callable, Mapping

from tacit.importers.call import Call
from tacit.importers.elementwise import clip
from tacit.importers.rewrite.defined import HARD_SWISH, MISH, NUMBERS_SINCE, SILU
from tacit.importers.rewrite.formulas import origin, writer_of
from tacit.importers.rewrite.writer import Writer
from tacit.importers.unified import DOMAIN


def gated(w: Writer) -> str | None:
    """Mul of `x` and its gate, `sigmoid(alpha*x)`, `tanh(softplus(x))` or `clip(x + 3, 0, 6)`: one function."""
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
        factor = hard(w, gate, x)
        if factor:
            swish = w.put(HARD_SWISH, x, domain=DOMAIN)
            return swish if factor == 1 else w.scale(swish, factor)
    return None


def hard(w: Writer, gate: str, x: str) -> float:
    """The number by which `gate` is `min(max(x/6 + 1/2, 0), 1)` times it; 0 if it is something else."""
    call = writer_of(w, gate, "Clip", "Div", "HardSigmoid", "Mul")
    if call is None:
        return 0.0
    if call.operator == "HardSigmoid":
        slope, middle = call.attributes.get("alpha", 0.2), call.attributes.get("beta", 0.5)
        return float(origin(w, call.inputs[0]) == x and math.isclose(slope, 1 / 6, rel_tol=1e-4) and middle == 0.5)
    if call.operator == "Clip":
        moved = writer_of(w, call.inputs[0], "Add")
        if moved is None or x not in [origin(w, read) for read in moved.inputs] or clip(call) != SIXTH:
            return 0.0
        return 6.0 if 3.0 in [number(moved, read) for read in moved.inputs] else 0.0
    read, other = call.inputs[::-1] if call.operator == "Mul" and number(call, call.inputs[0]) else call.inputs
    factor = number(call, other)
    if not factor or not math.isfinite(factor):
        return 0.0
    return hard(w, read, x) * (factor if call.operator == "Mul" else 1 / factor)


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


SIXTH = {"op": "Relu", "maximum": 6.0}
"""What a Clip from 0 to 6 is read as."""

GATES: Mapping[str, Callable[[Writer], str | None]] = {"Mish": mish, "Mul": gated, "Swish": swish}
