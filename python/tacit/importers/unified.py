"""The unified functions of Comet (2405.17485, 3.1) as functions of an ONNX model, and their converters.

`tacit.Smu` is `((1 + slope) x + sqrt((1 - slope)^2 x^2 + smoothness^2)) / 2`; `tacit.ReluSoftmax` is
`s / (sum(s) + epsilon)` along the last axis, s being `Smu` of slope 0.
"""

import math

import onnx
from onnx import AttributeProto, helper

from tacit.importers.affine import in_place
from tacit.importers.attention import along_last_axis
from tacit.importers.call import Call
from tacit.importers.weaver import Values, Weaver

DOMAIN = "tacit"


def functions(opset: int) -> list[onnx.FunctionProto]:
    """Both, in operators of ONNX at `opset`, so that any runtime can run a model with them."""
    versions = [helper.make_opsetid("", opset)]
    smooth = [parameter("slope"), parameter("smoothness"), *smu("x", "y")]
    rows = [value("slope", 0.0), parameter("smoothness"), parameter("epsilon"), *smu("x", "s"), *shares("s", "y")]
    return [
        helper.make_function(DOMAIN, "Smu", ["x"], ["y"], smooth, versions, ["slope", "smoothness"]),
        helper.make_function(DOMAIN, "ReluSoftmax", ["x"], ["y"], rows, versions, ["smoothness", "epsilon"]),
    ]


def parameter(name: str) -> onnx.NodeProto:
    """An attribute of the function as a tensor."""
    node = helper.make_node("Constant", [], [name])
    node.attribute.append(AttributeProto(name="value_float", ref_attr_name=name, type=AttributeProto.FLOAT))
    return node


def value(name: str, number: float) -> onnx.NodeProto:
    """A number as a tensor."""
    return helper.make_node("Constant", [], [name], value_float=number)


def smu(x: str, y: str) -> list[onnx.NodeProto]:
    """The nodes of a smooth maximum unit; they read `slope` and `smoothness`."""
    return [
        value("one", 1.0),
        value("half", 0.5),
        helper.make_node("Sub", ["one", "slope"], ["narrow"]),
        helper.make_node("Mul", [x, "narrow"], ["narrowed"]),
        helper.make_node("Mul", ["narrowed", "narrowed"], ["square"]),
        helper.make_node("Mul", ["smoothness", "smoothness"], ["least"]),
        helper.make_node("Add", ["square", "least"], ["z"]),
        helper.make_node("Sqrt", ["z"], ["root"]),
        helper.make_node("Add", ["one", "slope"], ["wide"]),
        helper.make_node("Mul", [x, "wide"], ["widened"]),
        helper.make_node("Add", ["widened", "root"], ["twice"]),
        helper.make_node("Mul", ["twice", "half"], [y]),
    ]


def shares(s: str, y: str) -> list[onnx.NodeProto]:
    """The nodes that divide by sums along the last axis; they read `epsilon`."""
    last = helper.make_node("Constant", [], ["axis"], value_ints=[-1])
    total = helper.make_node("ReduceSum", [s, "axis"], ["total"], keepdims=1)
    return [
        last,
        total,
        helper.make_node("Add", ["total", "epsilon"], ["below"]),
        helper.make_node("Div", [s, "below"], [y]),
    ]


def smooth_maximum(weaver: Weaver, call: Call) -> Values:
    """Smu, element by element."""
    slope, smoothness = (float(call.attributes.get(name, math.nan)) for name in ("slope", "smoothness"))
    if not 0 <= slope < 1 or not 0 < smoothness < math.inf:
        call.refuse(
            f"of slope {slope:g} and smoothness {smoothness:g}", "use a slope in [0, 1) and a smoothness above 0"
        )
    return in_place(weaver, call, call.inputs[0], lambda _: {"op": "Smu", "slope": slope, "smoothness": smoothness})


def relu_softmax(weaver: Weaver, call: Call) -> Values:
    """ReluSoftmax over the last axis."""
    smoothness, epsilon = (float(call.attributes.get(name, math.nan)) for name in ("smoothness", "epsilon"))
    if not 0 < smoothness < math.inf or not 0 < epsilon < math.inf:
        call.refuse(f"of smoothness {smoothness:g} and epsilon {epsilon:g}", "let both be above 0")
    return along_last_axis(weaver, call, {"op": "ReluSoftmax", "smoothness": smoothness, "epsilon": epsilon})
