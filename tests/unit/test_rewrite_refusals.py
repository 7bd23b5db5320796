"""Attributes that no rewriting expresses are refused by node, reason and remedy."""

import numpy as np
import pytest
from networks import Network
from pieces import floats, one, two, weights, with_constants
from tacit.compiler import compile_model
from tacit.errors import UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.importers.rewrite import rewrite

CASES = {
    "jump of a threshold": (one("ThresholdedRelu", name="bad", alpha=0.5), ["ThresholdedRelu", "jump", "use Relu"]),
    "jump of a shrink": (one("Shrink", name="bad", lambd=0.5, bias=0.0), ["Shrink", "jump", "same"]),
    "large exponent": (with_constants("Pow", np.float32(9), name="bad"), ["Pow", "9", "whole exponents"]),
    "many exponents": (with_constants("Pow", weights(4, 1, 1), name="bad"), ["Pow", "varies", "whole exponents"]),
    "celu of nothing": (one("Celu", name="bad", alpha=-1.0), ["Celu", "alpha=-1", "above 0"]),
    "computed slope": (two("PRelu", name="bad"), ["PRelu", "computed slope", "constant"]),
    "volume": (
        with_constants("ConvTranspose", weights(4, 2, 1, 2, 2, 2), shape=("N", 4, 1, 3, 3, 3), name="bad"),
        ["ConvTranspose", "three spatial", "up to three"],
    ),
    "computed transposed kernel": (two("ConvTranspose", name="bad"), ["ConvTranspose", "computed weight", "constant"]),
    "crop and resize": (
        with_constants(
            "Resize",
            np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32),
            np.array([1, 1, 2, 2], np.float32),
            name="bad",
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
        ),
        ["Resize", "tf_crop_and_resize", "Slice"],
    ),
    "antialias": (
        with_constants("Resize", None, np.array([1, 1, 0.5, 0.5], np.float32), name="bad", mode="linear", antialias=1),
        ["Resize", "antialias", "leave it out"],
    ),
    "sum of everything": (one("ReduceSum", name="bad"), ["ReduceSum", "batch", "name the axes"]),
    "sum over the batch": (with_constants("ReduceSum", np.array([0]), name="bad"), ["ReduceSum", "batch"]),
    "city blocks": (one("LpNormalization", name="bad", p=1), ["LpNormalization", "p=1", "use p=2"]),
    "channels of a norm": (one("LpNormalization", name="bad", axis=1), ["LpNormalization", "last", "transpose"]),
    "einsum without a result": (two("Einsum", name="bad", equation="bcij,bcij"), ["Einsum", "result"]),
    "einsum of a diagonal": (two("Einsum", name="bad", equation="bcii,bcij->bcj"), ["Einsum", "diagonal", "once"]),
    "einsum with dots": (two("Einsum", name="bad", equation="...i,...i->..."), ["Einsum", "letters"]),
    "too many classes": (one("Softmax", ("N", 2, 9000), name="bad", axis=-1), ["Softmax", "9000", "--result x"]),
    "einsum that moves the batch": (two("Einsum", name="bad", equation="bcij,bcij->cbij"), ["Einsum", "batch"]),
}


@pytest.mark.parametrize("case", CASES)
def test_refusal_names_node_reason_and_remedy(case, tmp_path):
    build, expected = CASES[case]
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(build().save(tmp_path))
    words = str(caught.value)
    assert words.startswith("node `bad`: ")
    assert "; " in words
    for word in expected:
        assert word in words


def test_a_pool_whose_indices_are_read(tmp_path):
    network = Network(("N", 3, 8)).add("MaxPool", name="bad", kernel_shape=[2], outputs=["places"])
    with pytest.raises(UnsupportedError, match="node `bad`: MaxPool whose indices are used"):
        import_onnx(network.save(tmp_path))


def test_a_constant_slope_is_needed_once(tmp_path):
    network = Network()
    network.add("PRelu", floats(network, [1.0]))
    assert [node.operation["op"] for node in import_onnx(network.save(tmp_path)).nodes] == ["Identity"]


def test_all_refusals_can_be_had_at_once():
    network = Network(opset=18).add("Abs").add("Shrink", name="first", lambd=1.0).add("Celu", name="second", alpha=-1.0)
    model, refused = network.proto(), []
    rewrite(model, "x", refused)
    assert [error.node for error in refused] == ["first", "second"]
    assert [node.op_type for node in model.graph.node] == ["Relu", "Mul", "Sub", "Shrink", "Celu"]


def test_divisors_on_both_sides_of_zero_are_refused(tmp_path):
    network = Network(("N", 4)).gemm(4, 4, "fc")
    path = network.add("Div", inputs=["x", network.last], name="bad").save(tmp_path)
    x = np.random.default_rng(0).uniform(-1, 1, (32, 4)).astype(np.float32)
    with pytest.raises(UnsupportedError, match=r"`bad.*on both sides of 0; keep the divisor above 0"):
        compile_model(path, tmp_path / "x.tacit", x)
