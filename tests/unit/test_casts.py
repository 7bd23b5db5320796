"""Types of numbers that exporters write, all of which are read as float32."""

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import Network
from onnx import TensorProto, helper, numpy_helper
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.errors import UnsupportedError
from tacit.importers.onnx import OPSETS, import_onnx
from tacit.model import Model


def perceptron():
    """A small network whose constants come as initializers and from a Constant node."""
    network = Network(("N", 6)).gemm(6, 5, "fc").add("Relu", name="relu")
    network.add("Constant", inputs=[], name="half", value=helper.make_tensor("half", TensorProto.FLOAT, [], [0.5]))
    return network.add("Mul", inputs=["relu.out", "half.out"], name="halved").gemm(5, 3, "last").proto()


def of_type(proto, kind):
    """The model with all its floats in another type."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    held = [node.attribute[0].t for node in changed.graph.node if node.op_type == "Constant"]
    for tensor in (*changed.graph.initializer, *held):
        value = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(kind))
        tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    for entry in (*changed.graph.input, *changed.graph.output):
        entry.type.tensor_type.elem_type = kind
    return changed


def save(proto, folder):
    onnx.save(proto, folder / "model.onnx")
    return folder / "model.onnx"


X = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "near"), [(TensorProto.FLOAT16, 2e-3), (TensorProto.BFLOAT16, 2e-2), (TensorProto.DOUBLE, 1e-6)]
)
def test_floats_of_other_widths(tmp_path, kind, near):
    expected = FloatModel(save(perceptron(), tmp_path))(X)
    path = save(of_type(perceptron(), kind), tmp_path)
    source = import_onnx(path)
    assert [node.operation["op"] for node in source.nodes] == ["Gemm", "Relu", "Scale", "Gemm"]
    assert {weight.dtype for weight in source.weights.values()} == {np.dtype(np.float32)}
    np.testing.assert_allclose(FloatModel(path)(X), expected, atol=near)
    compile_model(path, tmp_path / "x.tacit", X, None, Options())
    assert Model(tmp_path / "x.tacit").input_shape == (6,)


def test_half_precision_behind_casts(tmp_path):
    proto = of_type(perceptron(), TensorProto.FLOAT16)
    graph = proto.graph
    graph.node[0].input[0] = "narrow"
    graph.node.insert(0, helper.make_node("Cast", ["x"], ["narrow"], "narrow", to=TensorProto.FLOAT16))
    graph.node.append(helper.make_node("Cast", [graph.output[0].name], ["wide"], "wide", to=TensorProto.FLOAT))
    graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("wide", TensorProto.FLOAT, ["N", 3]))
    path = save(proto, tmp_path)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(FloatModel(path)(X), session.run(None, {"x": X})[0], atol=5e-3)
    assert import_onnx(path).nodes[0].operation["op"] == "Identity"


def picture(kind, *before):
    """A network of pictures of integers, with nodes that move them before the Cast."""
    network = Network(("N", 4, 4, 3))
    for operator, settings in before:
        network.add(operator, **settings)
    network.add("Cast", to=TensorProto.FLOAT, name="cast")
    network.add("Mul", network.constant("scale", np.float32(1 / 255)), name="scaled").conv((2, 3, 3, 3), name="conv")
    proto = network.proto()
    proto.graph.input[0].type.tensor_type.elem_type = kind
    return proto


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64])
def test_inputs_of_integers(tmp_path, kind):
    path = save(picture(kind, ("Transpose", {"perm": [0, 3, 1, 2]})), tmp_path)
    pixels = np.random.default_rng(1).integers(0, 256, (3, 4, 4, 3))
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": pixels.astype(helper.tensor_dtype_to_np_dtype(kind))})
    np.testing.assert_allclose(FloatModel(path)(pixels.astype(np.float32)), expected.reshape(3, -1), atol=1e-5)
    assert import_onnx(path).input_shape == (4, 4, 3)


def test_integers_that_are_computed_with(tmp_path):
    network = Network(("N", 3, 4, 4))
    network.add("Add", network.constant("one", np.ones(1, np.int64)), name="sum")
    network.add("Cast", to=TensorProto.FLOAT, name="cast")
    proto = network.proto()
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    path = save(proto, tmp_path)
    with pytest.raises(UnsupportedError, match=r"`x` is of type INT64, and node `sum` \(Add\) computes with it; cast"):
        import_onnx(path)


@pytest.mark.parametrize("opset", OPSETS)
def test_all_opsets_compute_the_same(tmp_path, opset):
    network = Network((1, 3, 6, 6), opset=opset).conv((4, 3, 3, 3)).add("Relu")
    path = network.add("AveragePool", kernel_shape=[2, 2], strides=[2, 2]).add("Flatten").gemm(16, 3).save(tmp_path)
    x = np.random.default_rng(2).random((1, 3, 6, 6), np.float32)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(FloatModel(path)(x), session.run(None, {"x": x})[0], atol=1e-5)
    assert len(import_onnx(path).nodes) == 5
