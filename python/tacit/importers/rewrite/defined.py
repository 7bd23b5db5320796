"""Functions in Tacit's own domain that rewriting writes into an ONNX model, with bodies that any runtime can run."""

import onnx
from onnx import AttributeProto, helper

from tacit.importers.unified import DOMAIN, parameter

COMBINATIONS, HARD_SWISH, MISH, RMS_NORM, SILU = "Combinations", "HardSwish", "Mish", "RmsNorm", "Silu"
NUMBERS_SINCE = 12
"""The opset since which a function can read an attribute as a tensor; before it there is only SiLU of slope 1."""
AXES_SINCE = 18
"""The opset since which axes of means are an input."""


def functions(opset: int) -> list[onnx.FunctionProto]:
    """The functions in operators of ONNX.

    `Silu` is `x*sigmoid(alpha*x)`, `HardSwish` is `x*clip(x/6 + 1/2, 0, 1)`, and `Mish` is `x*tanh(softplus(x))`.
    `Combinations` are sums of three tensors (N, 1, ...) times `factors`, three a sum, side by side along the first axis
    behind the batch. `RmsNorm` is `x` over the root of its mean square along the last axis, with `epsilon` below the
    root.
    """
    versions = [helper.make_opsetid("", opset)]
    scaled = [parameter("alpha"), helper.make_node("Mul", ["x", "alpha"], ["scaled"])] if opset >= NUMBERS_SINCE else []
    silu = [
        *scaled,
        helper.make_node("Sigmoid", ["scaled" if scaled else "x"], ["gate"]),
        helper.make_node("Mul", ["x", "gate"], ["y"]),
    ]
    hard = [
        helper.make_node("HardSigmoid", ["x"], ["gate"], alpha=1 / 6, beta=0.5),
        helper.make_node("Mul", ["x", "gate"], ["y"]),
    ]
    mish = [
        helper.make_node("Softplus", ["x"], ["soft"]),
        helper.make_node("Tanh", ["soft"], ["gate"]),
        helper.make_node("Mul", ["x", "gate"], ["y"]),
    ]
    alpha = AttributeProto(name="alpha", f=1.0, type=AttributeProto.FLOAT)
    listed = helper.make_node("Constant", [], ["listed"])
    listed.attribute.append(AttributeProto(name="value_floats", ref_attr_name="factors", type=AttributeProto.FLOATS))
    combinations = [
        listed,
        helper.make_node("Constant", [], ["shape"], value_ints=[-1, 3, 1, 1]),
        helper.make_node("Reshape", ["listed", "shape"], ["weight"]),
        helper.make_node("Concat", ["a", "b", "c"], ["all"], axis=1),
        helper.make_node("Conv", ["all", "weight"], ["y"]),
    ]
    along = [helper.make_node("Constant", [], ["axes"], value_ints=[-1])] if opset >= AXES_SINCE else []
    mean = helper.make_node("ReduceMean", ["square", "axes"] if along else ["square"], ["mean"])
    if not along:
        mean.attribute.append(helper.make_attribute("axes", [-1]))
    rms = [
        parameter("epsilon"),
        *along,
        helper.make_node("Mul", ["x", "x"], ["square"]),
        mean,
        helper.make_node("Add", ["mean", "epsilon"], ["above"]),
        helper.make_node("Sqrt", ["above"], ["root"]),
        helper.make_node("Div", ["x", "root"], ["y"]),
    ]
    since = opset >= NUMBERS_SINCE
    three = helper.make_function(DOMAIN, COMBINATIONS, ["a", "b", "c"], ["y"], combinations, versions, ["factors"])
    return [
        *([three, helper.make_function(DOMAIN, RMS_NORM, ["x"], ["y"], rms, versions, ["epsilon"])] if since else []),
        helper.make_function(DOMAIN, SILU, ["x"], ["y"], silu, versions, attribute_protos=[alpha]),
        helper.make_function(DOMAIN, HARD_SWISH, ["x"], ["y"], hard, versions),
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
