"""Small exported models, and seeded changes of one: operators removed, attributes changed, types and shapes broken."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import quantised_forms
from networks import Network
from onnx import TensorProto, helper, numpy_helper
from quantised_forms import EXTRA

OTHERS = {
    "Add": ["Mul", "Sub", "Div", "Max"],
    "AveragePool": ["MaxPool", "LpPool"],
    "Conv": ["ConvTranspose"],
    "Flatten": ["Identity", "Squeeze"],
    "Gemm": ["MatMul"],
    "GlobalAveragePool": ["GlobalMaxPool", "ReduceMean"],
    "LayerNormalization": ["RMSNormalization", "InstanceNormalization"],
    "MatMul": ["Gemm", "Add"],
    "MaxPool": ["AveragePool"],
    "Mul": ["Add", "Pow", "Div"],
    "Relu": ["Tanh", "Sign", "Erf", "Elu", "Softmax", "Cosh", "Abs", "Unknown", "LeakyRelu"],
    "Reshape": ["Expand", "Tile"],
    "Sigmoid": ["HardSigmoid", "Round", "Log", "Sqrt"],
    "Softmax": ["LogSoftmax", "Hardmax", "Relu"],
    "Tanh": ["Atan", "Exp", "Reciprocal"],
    "Transpose": ["Identity", "Flatten"],
}
"""Operators that take the place of others."""
KINDS = [np.float64, np.float16, np.int32, np.int64, np.uint8]


def residual() -> Network:
    network = Network(("N", 3, 8, 8), opset=17).conv((4, 3, 3, 3), pads=[1, 1, 1, 1]).add("Relu", name="skip")
    network.conv((4, 4, 3, 3), pads=[1, 1, 1, 1]).add("Add", "skip.out").add("Relu")
    network.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).add("GlobalAveragePool")
    return network.add("Flatten").gemm(4, 5)


def gated() -> Network:
    network = Network(("N", 3, 8, 8), opset=13).conv((6, 3, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], name="c")
    network.add("Sigmoid").add("Mul", "c.out").conv((6, 1, 3, 3), group=6, pads=[1, 1, 1, 1])
    network.add("HardSwish" if network.opset > 13 else "LeakyRelu").conv((4, 6, 1, 1))
    return network.add("AveragePool", kernel_shape=[2, 2], strides=[2, 2]).add("Flatten").gemm(16, 5)


def perceptron() -> Network:
    network = Network(("N", 10), opset=15).gemm(10, 12).add("Tanh").gemm(12, 8).add("Relu").gemm(8, 4)
    return network.add("Softmax", axis=-1)


def rows() -> Network:
    network = Network((1, 5, 8), opset=17)
    scale, bias = (network.constant(name, 1 + network.normal(8) / 4) for name in "sb")
    network.add("LayerNormalization", scale, bias, axis=-1)
    network.add("MatMul", network.constant("w1", network.normal(8, 16))).add("Relu")
    network.add("MatMul", network.constant("w2", network.normal(16, 8))).add("Add", "x")
    return network.add("Transpose", perm=[0, 2, 1]).add("Reshape", network.constant("shape", np.array([0, -1])))


def attention() -> Network:
    network = Network((1, 5, 8), opset=17)
    for name in "qkv":
        network.add("MatMul", inputs=["x", network.constant(f"w{name}", network.normal(8, 8))], name=name)
    network.add("Transpose", inputs=["k.out"], perm=[0, 2, 1], name="t")
    network.add("MatMul", inputs=["q.out", "t.out"]).add("Mul", network.constant("f", np.float32(0.35)))
    return network.add("Softmax", axis=-1).add("MatMul", "v.out").add("Add", "x")


def line() -> Network:
    network = Network(("N", 4, 16), opset=13).conv((6, 4, 3), pads=[1, 1]).add("Relu")
    network.add("MaxPool", kernel_shape=[2], strides=[2]).conv((5, 6, 3), strides=[2])
    return network.add("ReduceMean", axes=[2], keepdims=0).add("Sigmoid")


def decoder() -> Network:
    network = Network(("N", 4, 4, 4), opset=13)
    network.add("ConvTranspose", network.constant("w", network.normal(4, 3, 2, 2)), strides=[2, 2]).add("Relu")
    network.add("Resize", "", network.constant("r", np.array([1, 1, 2, 2], np.float32)), mode="nearest")
    pads = network.constant("pads", np.array([0, 0, 1, 0, 0, 0, 1, 0]))
    return network.add("Pad", pads).conv((2, 3, 3, 3)).add("Tanh")


def joined() -> Network:
    network = Network(("N", 4, 6, 6), opset=13).conv((4, 4, 1, 1), name="a").add("Relu", name="r")
    network.conv((4, 4, 3, 3), pads=[1, 1, 1, 1]).add("Concat", "r.out", axis=1)
    network.add("Slice", *(network.constant(f"i{k}", np.array([v])) for k, v in enumerate((1, 6, 1))))
    values = [network.constant(f"n{k}", 1 + network.normal(5) / 4) for k in range(3)]
    variance = network.constant("variance", np.linspace(0.5, 1.5, 5).astype(np.float32))
    return network.add("BatchNormalization", *values, variance).add("Clip", *bounds(network)).add("Flatten")


def fused() -> Network:
    network = Network((1, 5, 8), opset=17)
    network.add("FusedMatMul", network.constant("w", network.normal(16, 8)), domain=EXTRA, transB=1, alpha=0.5)
    network.add("BiasGelu", network.constant("b", network.normal(16, 4)[:, 0]), domain=EXTRA)
    network.add("MatMul", network.constant("v", network.normal(16, 8)))
    scale, bias = (network.constant(name, 1 + network.normal(8) / 4) for name in ("scale", "shift"))
    return network.add("SkipLayerNormalization", "x", scale, bias, domain=EXTRA).add("Relu")


def bounds(network: Network) -> list[str]:
    return [network.constant(name, np.float32(value)) for name, value in (("low", 0.0), ("high", 2.0))]


MODELS: dict[str, Callable[[], Network]] = {
    "attention": attention,
    "decoder": decoder,
    "fused": fused,
    "gated": gated,
    "joined": joined,
    "line": line,
    "perceptron": perceptron,
    "quantised": quantised_forms.FORMS["qdq uint8"],
    "qlinear": quantised_forms.FORMS["qlinear uint8"],
    "residual": residual,
    "rows": rows,
}
LENGTHS = {name: ["a", "b", "c", "d"][: 3 if name in ("attention", "fused") else 2] for name in MODELS}
"""The declared lengths of the output, none of which is said."""
for _name in ("decoder", "qlinear", "quantised"):
    LENGTHS[_name] = ["a", "b", "c", "d"]
Change = Callable[[onnx.GraphProto, np.random.Generator], None]


def pick(random: np.random.Generator, choices: Any) -> Any:
    """One of several."""
    choices = list(choices)
    return choices[int(random.integers(len(choices)))]


def remove(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Leave out an operator; its readers read what it read."""
    index = int(random.integers(len(graph.node)))
    node = graph.node[index]
    for other in [*graph.node]:
        other.input[:] = [node.input[0] if name == node.output[0] else name for name in other.input]
    if graph.output[0].name == node.output[0]:
        graph.output[0].name = node.input[0]
    del graph.node[index]


def lose(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Leave out an operator whose readers remain."""
    del graph.node[int(random.integers(len(graph.node)))]


def replace(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Let an operator be another."""
    node = pick(random, [node for node in graph.node if node.op_type in OTHERS] or graph.node)
    node.op_type = pick(random, OTHERS.get(node.op_type, ["Unknown"]))


def attribute(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Change a number among attributes, or how many there are."""
    nodes = [node for node in graph.node if node.attribute]
    if not nodes:
        return
    entry = pick(random, pick(random, nodes).attribute)
    if entry.type == onnx.AttributeProto.INT:
        entry.i = int(random.choice([0, 1, -1, entry.i + 1, entry.i * 7]))
    elif entry.type == onnx.AttributeProto.FLOAT:
        entry.f = float(random.choice([0.0, -1.0, entry.f * 3, np.inf]))
    elif entry.ints and random.random() < 0.7:
        entry.ints[int(random.integers(len(entry.ints)))] = int(random.choice([0, 1, 2, 3, -1, 9]))
    elif entry.ints:
        entry.ints[:] = [*entry.ints, 1] if random.random() < 0.5 else entry.ints[:-1]


def forget(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Leave out an attribute."""
    nodes = [node for node in graph.node if node.attribute]
    if nodes:
        node = pick(random, nodes)
        del node.attribute[int(random.integers(len(node.attribute)))]


def retype(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Store a constant as numbers of another type."""
    tensor = pick(random, graph.initializer)
    value = numpy_helper.to_array(tensor).astype(pick(random, KINDS))
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def reshape(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Give a constant another shape."""
    tensor = pick(random, graph.initializer)
    value = numpy_helper.to_array(tensor)
    ways = [value.T, value[None], value.reshape(-1), value[None, None]]
    ways += [value[..., :-1], value[:0]] if value.ndim else []
    changed = pick(random, ways)
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(changed), tensor.name))


def revalue(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Let constants be zero, negative, large, or no numbers."""
    tensor = pick(random, graph.initializer)
    value = numpy_helper.to_array(tensor).copy()
    if value.dtype.kind == "f" and value.ndim:
        value.reshape(-1)[: 1 + value.size // 2] = pick(random, [0.0, -3.0, 1e6, np.nan, np.inf])
    elif value.ndim or value.dtype.kind != "f":
        value.reshape(-1)[: 1 + value.size // 2] = pick(random, [0, 1, 5, 100])
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def swap(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Exchange the first two inputs of an operator."""
    nodes = [node for node in graph.node if len(node.input) > 1]
    if nodes:
        node = pick(random, nodes)
        node.input[0], node.input[1] = node.input[1], node.input[0]


def drop_input(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Leave out the last input of an operator; onnxruntime may die of its own operators without all of theirs."""
    nodes = [node for node in graph.node if node.input and node.domain != EXTRA]
    if nodes:
        del pick(random, nodes).input[-1]


def redirect(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Let an operator read another tensor."""
    index = int(random.integers(len(graph.node)))
    earlier = [name for node in graph.node[:index] for name in node.output]
    names = ["x", *earlier, *(tensor.name for tensor in graph.initializer)]
    node = graph.node[index]
    node.input[int(random.integers(len(node.input)))] = pick(random, names)


def resize(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Give the input another size, another number of axes, or a size that is not known."""
    shape = graph.input[0].type.tensor_type.shape
    way = int(random.integers(4))
    if way == 0:
        shape.dim.add(dim_value=2)
    elif way == 1:
        del shape.dim[-1]
    else:
        pick(random, shape.dim[1:]).dim_value = int(random.choice([0, 1, 3, 5, 12]))


def declare(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    """Declare an end of another type."""
    end = pick(random, [graph.input[0], graph.output[0]])
    kinds = [TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING]
    end.type.tensor_type.elem_type = pick(random, kinds)


CHANGES: list[Change] = [
    *(remove, lose, replace, attribute, attribute, forget, retype, reshape, revalue, swap, drop_input, redirect),
    *(resize, declare, replace, remove),
]


def mutated(seed: int) -> tuple[str, onnx.ModelProto]:
    """A model with one or two changes, and what they are."""
    random = np.random.default_rng(seed)
    name = sorted(MODELS)[seed % len(MODELS)]
    model = MODELS[name]().proto()
    for entry in model.graph.output:
        entry.CopyFrom(helper.make_tensor_value_info(entry.name, TensorProto.FLOAT, LENGTHS[name]))
    done = []
    for _ in range(int(random.integers(1, 3))):
        change = pick(random, CHANGES)
        if model.graph.node:
            change(model.graph, random)
            done.append(change.__name__)
    return f"{name}: {', '.join(done)}", model
