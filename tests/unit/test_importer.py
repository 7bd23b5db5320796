"""What each supported operator becomes."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from networks import Network
from onnx import TensorProto, helper
from tacit.importers.onnx import OPSETS, import_onnx


def operation(network: Network, folder: Path, index: int = -1) -> dict[str, Any]:
    """The operation one node became."""
    return dict(import_onnx(network.save(folder)).nodes[index].operation)


def test_conv_keeps_every_attribute(tmp_path):
    network = Network().conv((6, 1, 3, 3), strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2], group=3)
    source = import_onnx(network.save(tmp_path))
    assert dict(source.nodes[0].operation) == {
        "op": "Conv",
        "kernel": [3, 3],
        "stride": [2, 1],
        "padding": [1, 0, 2, 1],
        "dilation": [1, 2],
        "groups": 3,
        "weight": "conv0.weight",
        "bias": "conv0.bias",
    }
    assert source.weights["conv0.weight"].shape == (6, 1, 3, 3)
    assert source.input_shape == (3, 8, 8)
    assert source.tensor_names() == ["x", "conv0.out"]


@pytest.mark.parametrize(
    ("mode", "expected"), [("VALID", [0, 0, 0, 0]), ("SAME_UPPER", [0, 1, 1, 1]), ("SAME_LOWER", [1, 1, 0, 1])]
)
def test_auto_pad_becomes_explicit(tmp_path, mode, expected):
    network = Network(("N", 3, 8, 7)).conv((2, 3, 3, 3), bias=False, auto_pad=mode, strides=[2, 2])
    converted = operation(network, tmp_path)
    assert (converted["padding"], converted["bias"]) == (expected, None)


def test_gemm_folds_alpha_beta_and_transposition(tmp_path):
    network = Network(("N", 4))
    weight, bias = network.normal(4, 3), network.normal(1, 3)
    network.add("Gemm", network.constant("w", weight), network.constant("b", bias), name="fc", alpha=2.0, beta=3.0)
    source = import_onnx(network.save(tmp_path))
    np.testing.assert_array_equal(source.weights["fc.weight"], 2 * weight.T)
    np.testing.assert_array_equal(source.weights["fc.bias"], 3 * bias[0])
    assert source.weights["fc.weight"].flags.c_contiguous


def test_matmul_and_constant_add(tmp_path):
    network = Network(("N", 4))
    weight, bias = network.normal(4, 3), network.normal(3)
    network.add("MatMul", network.constant("w", weight), name="mul")
    network.add("Add", inputs=[network.constant("b", bias), "mul.out"], name="plus")
    source = import_onnx(network.save(tmp_path))
    np.testing.assert_array_equal(source.weights["mul.weight"], weight.T)
    assert dict(source.nodes[1].operation) == {"op": "AddConstant", "constant": "plus.addend"}
    assert source.nodes[1].inputs == ("mul.out",)
    np.testing.assert_array_equal(source.weights["plus.addend"], bias)


@pytest.mark.parametrize(
    ("shape", "stored"), [((1, 3, 1, 1), (3,)), ((), (3,)), ((8, 8), (3, 8, 8)), ((3, 1, 8), (3, 8, 8))]
)
def test_added_constants_are_per_channel_or_full(tmp_path, shape, stored):
    network = Network()
    value = network.random.standard_normal(shape).astype(np.float32)
    network.add("Add", network.constant("c", value), name="plus")
    addend = import_onnx(network.save(tmp_path)).weights["plus.addend"]
    assert addend.shape == stored
    spread = addend[:, None, None] if addend.ndim == 1 else addend
    np.testing.assert_array_equal(np.broadcast_to(spread, (3, 8, 8)), np.broadcast_to(value, (1, 3, 8, 8))[0])


def test_add_of_two_activations(tmp_path):
    network = Network().add("Relu", name="left").add("Relu", inputs=["x"], name="right")
    network.add("Add", inputs=["left.out", "right.out"], name="sum")
    node = import_onnx(network.save(tmp_path)).nodes[-1]
    assert (dict(node.operation), node.inputs) == ({"op": "Add"}, ("left.out", "right.out"))


def test_relu_and_clip(tmp_path):
    assert operation(Network().add("Relu"), tmp_path) == {"op": "Relu", "maximum": None}
    network = Network()
    low, high = network.constant("low", np.float32(0)), network.constant("high", np.float32(6))
    assert operation(network.add("Clip", low, high), tmp_path) == {"op": "Relu", "maximum": 6.0}
    network = Network()
    assert operation(network.add("Clip", network.constant("low", np.float32(0))), tmp_path)["maximum"] is None
    assert operation(Network(opset=9).add("Clip", min=0.0, max=6.0), tmp_path)["maximum"] == 6.0


def test_pools(tmp_path):
    window = {"kernel": [3, 2], "stride": [2, 2], "padding": [1, 0, 1, 0]}
    attributes: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 0]}
    assert operation(Network().add("MaxPool", **attributes), tmp_path) == {"op": "MaxPool", **window}
    average = operation(Network().add("AveragePool", count_include_pad=1, **attributes), tmp_path)
    assert average == {"op": "AveragePool", **window, "count_include_pad": True}
    whole = operation(Network(("N", 3, 8, 6)).add("GlobalAveragePool"), tmp_path)
    assert whole["kernel"] == [8, 6]


def test_ceil_mode_that_changes_nothing(tmp_path):
    network = Network().add("MaxPool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    assert operation(network, tmp_path)["op"] == "MaxPool"


@pytest.mark.parametrize("shape", [[0, -1], [-1, 192], [1, 192], [0, 3, 64]])
def test_reshape_keeps_the_batch_apart(tmp_path, shape):
    network = Network()
    network.add("Reshape", network.constant("shape", np.array(shape, np.int64)))
    expected = [3, 64] if len(shape) == 3 else [192]
    assert operation(network, tmp_path) == {"op": "Reshape", "shape": expected}


def test_flatten(tmp_path):
    assert operation(Network().add("Flatten"), tmp_path) == {"op": "Reshape", "shape": [192]}
    assert operation(Network().add("Flatten", axis=-3), tmp_path) == {"op": "Reshape", "shape": [192]}


def test_batch_normalization(tmp_path):
    network = Network()
    names = [
        network.constant(name, np.full(3, value, np.float32)) for name, value in zip("sbmv", (1, 2, 3, 4), strict=True)
    ]
    converted = operation(network.add("BatchNormalization", *names, name="bn", epsilon=1e-3), tmp_path)
    assert converted.pop("epsilon") == pytest.approx(1e-3)
    assert converted == {"op": "BatchNormalization", **{r: f"bn.{r}" for r in ("scale", "bias", "mean", "variance")}}


def test_identity_and_dropout_with_unused_mask(tmp_path):
    assert operation(Network().add("Identity"), tmp_path) == {"op": "Identity"}
    assert operation(Network().add("Dropout", outputs=["mask"]), tmp_path) == {"op": "Identity"}


def test_constants_come_from_nodes_too(tmp_path):
    network = Network()
    value = helper.make_tensor("v", TensorProto.FLOAT, [3, 1, 1], [1.0, 2.0, 3.0])
    network.add("Constant", inputs=[], name="stored", value=value)
    network.add("Identity", inputs=["stored.out"], name="alias")
    network.add("Add", inputs=["x", "alias.out"], name="plus")
    source = import_onnx(network.save(tmp_path))
    assert [node.name for node in source.nodes] == ["plus"]
    np.testing.assert_array_equal(source.weights["plus.addend"], [1, 2, 3])


def test_missing_and_repeated_names_become_unique(tmp_path):
    network = Network().add("Relu", name="").add("Relu", name="same", inputs=["0.out"])
    network.nodes.append(helper.make_node("Relu", ["same.out"], ["end"], name="same"))
    network.last = "end"
    names = [node.name for node in import_onnx(network.save(tmp_path)).nodes]
    assert names == ["Relu_0", "same_1", "same_2"]


@pytest.mark.parametrize("opset", [OPSETS[0], 8, 11, 13, 21, OPSETS[-1]])
def test_every_opset_in_range_imports(tmp_path, opset):
    network = Network((1, 3, 8, 8), opset=opset).conv((4, 3, 3, 3)).add("Relu")
    network.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).add("Flatten").gemm(36, 5)
    source = import_onnx(network.save(tmp_path))
    assert [node.operation["op"] for node in source.nodes] == ["Conv", "Relu", "MaxPool", "Reshape", "Gemm"]


def test_initializers_listed_as_inputs_are_no_inputs(tmp_path):
    network = Network(("N", 4)).gemm(4, 2)
    proto = network.proto()
    proto.graph.input.append(helper.make_tensor_value_info("gemm0.w", TensorProto.FLOAT, [2, 4]))
    onnx.save(proto, tmp_path / "listed.onnx")
    assert import_onnx(tmp_path / "listed.onnx").input_name == "x"
