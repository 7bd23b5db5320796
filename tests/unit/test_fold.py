"""Arithmetic on constants and shapes disappears before the import, and so does what nobody reads."""

import numpy as np
import onnx
import pytest
from networks import Network
from onnx import TensorProto, helper
from tacit.errors import UnsupportedError
from tacit.importers import fold
from tacit.importers.onnx import import_onnx


def ints(network, name, *values):
    return network.constant(name, np.array(values, np.int64))


def imported(network, folder):
    return import_onnx(network.save(folder))


def operations(source):
    return [node.operation["op"] for node in source.nodes]


def shape_arithmetic(network):
    """What PyTorch writes for `x.reshape(x.size(0), -1)`."""
    data = network.last
    network.add("Shape").add("Gather", network.constant("zero", np.array([0], np.int64)), axis=0)
    network.add("Squeeze").add("Unsqueeze", ints(network, "axes", 0))
    network.add("Concat", ints(network, "rest", -1), axis=0)
    return network.add("Reshape", inputs=[data, network.last])


def test_reshape_to_a_computed_shape(tmp_path):
    source = imported(shape_arithmetic(Network().conv((4, 3, 3, 3))).gemm(144, 5), tmp_path)
    assert operations(source) == ["Conv", "Reshape", "Gemm"]
    assert source.nodes[1].operation["shape"] == [144]


def test_shapes_that_are_known_only_after_folding(tmp_path):
    network = Network()
    sizes = [network.add("Shape", inputs=["x"]).last]
    network.add("Slice", ints(network, "from", 0), ints(network, "to", 1)).add("Cast", to=TensorProto.INT64)
    batch = network.last
    network.add("Slice", ints(network, "from1", 1), ints(network, "to1", 4), inputs=[*sizes, "from1", "to1"])
    network.add("ReduceProd", keepdims=1)
    network.add("Concat", inputs=[batch, network.last], axis=0)
    network.add("Reshape", inputs=["x", network.last])
    source = imported(shape_arithmetic(network).gemm(192, 5), tmp_path)
    assert operations(source) == ["Reshape", "Reshape", "Gemm"]


def test_weights_are_computed(tmp_path):
    network = Network(("N", 4))
    weight = network.normal(3, 4)
    network.add("Transpose", inputs=[network.constant("w", weight)], perm=[1, 0])
    network.add("Mul", network.constant("two", np.float32(2)))
    network.add("MatMul", inputs=["x", network.last], name="mul")
    source = imported(network, tmp_path)
    assert operations(source) == ["Gemm"]
    np.testing.assert_array_equal(source.weights["mul.weight"], 2 * weight)


def test_dead_nodes_may_be_of_any_kind(tmp_path):
    network = Network().add("Relu", name="kept").add("FancyLoss", name="dead", domain="com.example")
    network.last = "kept.out"
    proto = network.proto()
    onnx.save(proto, tmp_path / "dead.onnx")
    assert operations(import_onnx(tmp_path / "dead.onnx")) == ["Relu"]


def test_unknown_operators_are_counted(tmp_path):
    network = Network().add("Det", name="first").add("Relu", domain="com.example").add("Hardmax").add("Hardmax")
    network.last = "hardmax3.out"
    network.nodes[0] = helper.make_node("Hardmax", ["x"], ["first.out"], name="first")
    with pytest.raises(UnsupportedError) as caught:
        imported(network, tmp_path)
    words = str(caught.value)
    assert "node `first`: operator Hardmax is not supported, nor are 3 other nodes" in words
    assert "com.example.Relu: 1, Hardmax: 2" in words
    assert caught.value.node == "first"


def test_huge_constants_are_not_computed(tmp_path):
    network = Network(("N", 4))
    network.add("ConstantOfShape", inputs=[ints(network, "size", 1 << 20, 1 << 20)])
    network.add("ReduceMean", axes=[0, 1], keepdims=1)
    network.add("Add", inputs=["x", network.last])
    with pytest.raises(UnsupportedError, match="ConstantOfShape"):
        imported(network, tmp_path)


def test_random_constants_are_not_computed(tmp_path):
    network = Network(("N", 4)).add("RandomNormal", inputs=[], shape=[1, 4])
    network.add("Add", inputs=["x", network.last])
    with pytest.raises(UnsupportedError, match="RandomNormal"):
        imported(network, tmp_path)


def test_names_are_those_of_the_file(tmp_path):
    network = Network(("N", 4)).add("Shape", name="")
    network.add("Relu", inputs=["x"], name="")
    assert [node.name for node in imported(network, tmp_path).nodes] == ["Relu_1"]


def test_computed_constants_with_two_outputs(tmp_path):
    network = Network(("N", 4))
    halves = ints(network, "halves", 4, 4)
    network.add("Split", inputs=[network.constant("c", np.arange(8, dtype=np.float32)), halves], outputs=["second"])
    network.add("Add", inputs=["x", "second"], name="plus")
    np.testing.assert_array_equal(imported(network, tmp_path).weights["plus.addend"], [4, 5, 6, 7])


def test_what_fails_is_left_for_the_importer():
    bad = helper.make_node("Gather", ["c", "i"], ["out"], name="bad")
    stored = {
        "c": onnx.numpy_helper.from_array(np.zeros(3, np.float32), "c"),
        "i": onnx.numpy_helper.from_array(np.array(7, np.int64), "i"),
    }
    assert fold.evaluate(bad, stored, {}, [helper.make_opsetid("", 13)]) is None
