"""Small models with several inputs and results, and with a state that is kept between inputs."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HIDDEN = 8


def weights(*shape, seed=0):
    """Random float32 weights of a layer."""
    return (np.random.default_rng(seed).normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)


def value(name, *shape):
    """A float32 tensor with a batch in front."""
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def saved(path, nodes, inputs, outputs, constants):
    """The file of a model."""
    stored = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "streams", inputs, outputs, stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def two_of_each(path):
    """Inputs `a` (6,), about 50 large, and `image` (3, 4, 4) in 0..1; results `scores` (5,) and `boxes` (3, 4)."""
    constants = {
        **{"w1": weights(6, 8), "w2": weights(48, 8), "w3": weights(8, 5), "w4": weights(8, 12)},
        **{"shape": np.array([-1, 3, 4]), "tenth": np.float32(0.01)},
    }
    nodes = [
        helper.make_node("MatMul", ["a", "w1"], ["ha"]),
        helper.make_node("Flatten", ["image"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w2"], ["hi"]),
        helper.make_node("Add", ["ha", "hi"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "w3"], ["large"]),
        helper.make_node("Mul", ["large", "tenth"], ["scores"]),
        helper.make_node("MatMul", ["hidden", "w4"], ["rows"]),
        helper.make_node("Reshape", ["rows", "shape"], ["boxes"]),
    ]
    ends = [value("a", "N", 6), value("image", "N", 3, 4, 4)], [value("scores", "N", 5), value("boxes", "N", 3, 4)]
    return saved(path, nodes, *ends, constants)


def examples_of_two(count):
    """Inputs of `two_of_each`, by name."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(count, 6)) * 50
    return {"a": a.astype(np.float32), "image": rng.uniform(0, 1, (count, 3, 4, 4)).astype(np.float32)}


def recurrent(path):
    """Chunks `x` (5,); `state` (2, N, 8) becomes `next`: what was heard last, and a running mean of it; result `y`."""
    constants = {
        "w": weights(5, HIDDEN),
        "u": weights(HIDDEN, HIDDEN),
        "v": weights(HIDDEN, 2),
        "half": np.float32(0.5),
    }
    constants |= {"first": np.array(0), "second": np.array(1), "axis": np.array([0])}
    nodes = [
        helper.make_node("Gather", ["state", "first"], ["heard"], axis=0),
        helper.make_node("Gather", ["state", "second"], ["mean"], axis=0),
        helper.make_node("MatMul", ["x", "w"], ["now"]),
        helper.make_node("MatMul", ["heard", "u"], ["before"]),
        helper.make_node("Add", ["now", "before"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["hears"]),
        helper.make_node("Mul", ["mean", "half"], ["old"]),
        helper.make_node("Mul", ["hears", "half"], ["new"]),
        helper.make_node("Add", ["old", "new"], ["means"]),
        helper.make_node("MatMul", ["means", "v"], ["y"]),
        helper.make_node("Unsqueeze", ["hears", "axis"], ["row1"]),
        helper.make_node("Unsqueeze", ["means", "axis"], ["row2"]),
        helper.make_node("Concat", ["row1", "row2"], ["next"], axis=0),
    ]
    ends = [value("x", "N", 5), value("state", 2, "N", HIDDEN)], [value("y", "N", 2), value("next", 2, "N", HIDDEN)]
    return saved(path, nodes, *ends, constants)


def heard(session, x):
    """What onnxruntime's `session` of `recurrent` says of the chunks of one stream (N, 5)."""
    state, results = np.zeros((2, 1, HIDDEN), np.float32), []
    for chunk in x:
        result, state = session.run(["y", "next"], {"x": chunk[None], "state": state})
        results.append(result[0])
    return np.array(results)


def chunks(count):
    """Chunks of one stream."""
    return np.random.default_rng(2).normal(size=(count, 5)).astype(np.float32)
