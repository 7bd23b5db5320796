"""Products of a tensor and a gate of itself, SiLU and Mish, as one function: one step, where there were two.

They are functions of an ONNX model in Tacit's own domain, whose bodies any runtime can run.
"""

import math
from collections.abc import Callable, Mapping

import onnx
from onnx import AttributeProto, helper

from tacit.importers.call import Call
from tacit.importers.rewrite.writer import Writer
from tacit.importers.unified import DOMAIN, parameter

SILU, MISH = "Silu", "Mish"
NUMBERS_SINCE = 12
"""The opset since which a function can read an attribute as a tensor; before it there is only SiLU of slope 1."""


def functions(opset: int) -> list[onnx.FunctionProto]:
    """`Silu`, which is `x*sigmoid(alpha*x)`, and `Mish`, which is `x*tanh(softplus(x))`, in operators of ONNX."""
    versions = [helper.make_opsetid("", opset)]
    scaled = [parameter("alpha"), helper.make_node("Mul", ["x", "alpha"], ["scaled"])] if opset >= NUMBERS_SINCE else []
    silu = [
        *scaled,
        helper.make_node("Sigmoid", ["scaled" if scaled else "x"], ["gate"]),
        helper.make_node("Mul", ["x", "gate"], ["y"]),
    ]
    mish = [
        helper.make_node("Softplus", ["x"], ["soft"]),
        helper.make_node("Tanh", ["soft"], ["gate"]),
        helper.make_node("Mul", ["x", "gate"], ["y"]),
    ]
    alpha = AttributeProto(name="alpha", f=1.0, type=AttributeProto.FLOAT)
    return [
        helper.make_function(DOMAIN, SILU, ["x"], ["y"], silu, versions, attribute_protos=[alpha]),
        helper.make_function(DOMAIN, MISH, ["x"], ["y"], mish, versions),
    ]


def define(model: onnx.ModelProto) -> None:
    """Add the functions that nodes of the model call, and the model does not have yet, in place."""
    called = {node.op_type for node in model.graph.node if node.domain == DOMAIN}
    have = {function.name for function in model.functions if function.domain == DOMAIN}
    opset = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
    missing = [function for function in functions(opset) if function.name in called - have]
    model.functions.extend(missing)
    if missing and all(entry.domain != DOMAIN for entry in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))


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
