"""Each operator through the whole compiler: integers near the float model, protocol equal to both."""

from pathlib import Path

import numpy as np
import pytest
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.errors import UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.model import Model
from tacit.session.pair import Pair


def plain_conv() -> Network:
    return Network().conv((8, 3, 3, 3), pads=[1, 1, 1, 1]).add("Relu").add("Flatten").gemm(512, 6)


def strided_grouped_conv() -> Network:
    network = Network().conv((6, 1, 3, 3), group=3, strides=[2, 2], pads=[1, 0, 0, 1]).add("Relu")
    return network.conv((4, 6, 2, 2), dilations=[2, 1]).add("Relu").add("Flatten").gemm(24, 6)


def max_pool() -> Network:
    network = Network().conv((4, 3, 3, 3)).add("Relu")
    network.add("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    return network.add("Flatten").gemm(36, 6)


def max_pool_that_leaves_the_border_out() -> Network:
    network = Network(("N", 3, 9, 9)).conv((4, 3, 3, 3)).add("Relu")
    network.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    return network.add("Flatten").gemm(36, 6)


def average_pool() -> Network:
    network = Network().conv((4, 3, 3, 3)).add("Relu").add("AveragePool", kernel_shape=[2, 2], strides=[2, 2])
    return network.add("Flatten").gemm(36, 6)


def global_average_pool() -> Network:
    network = Network().conv((8, 3, 3, 3)).add("Relu").add("GlobalAveragePool").add("Flatten")
    return network.gemm(8, 6)


def residual() -> Network:
    network = Network().conv((4, 3, 3, 3), pads=[1, 1, 1, 1]).add("Relu", name="skip")
    network.conv((4, 4, 3, 3), pads=[1, 1, 1, 1])
    network.add("Add", inputs=[network.last, "skip.out"]).add("Relu").add("Flatten")
    return network.gemm(256, 6)


def batch_norm() -> Network:
    network = Network().conv((4, 3, 3, 3), bias=False)
    values = [network.random.uniform(0.5, 1.5, 4).astype(np.float32) for _ in range(4)]
    names = [network.constant(name, value) for name, value in zip("sbmv", values, strict=True)]
    return network.add("BatchNormalization", *names).add("Relu").add("Flatten").gemm(144, 6)


def added_constant() -> Network:
    network = Network(("N", 12))
    network.add("MatMul", network.constant("w", network.normal(12, 9)))
    network.add("Add", network.constant("b", network.normal(9, 4)[:, 0])).add("Relu")
    return network.gemm(9, 6)


def clipped() -> Network:
    network = Network().conv((4, 3, 3, 3))
    bounds = [network.constant(name, np.float32(value)) for name, value in (("low", 0), ("high", 0.5))]
    return network.add("Clip", *bounds).add("Dropout").add("Identity").add("Flatten").gemm(144, 6)


def concatenated() -> Network:
    network = Network().conv((4, 3, 3, 3)).add("Relu", name="left")
    network.add("Conv", network.constant("v", network.normal(2, 3, 3, 3)), inputs=["x", "v"])
    network.add("Tanh", name="right").add("Concat", inputs=["left.out", "right.out"], axis=1)
    network.add("Concat", inputs=[network.last, "left.out"], axis=1)
    return network.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).add("Flatten").gemm(90, 6)


def rearranged() -> Network:
    network = Network().conv((4, 3, 3, 3)).add("Relu")
    network.add("Split", outputs=["rest"], axis=1, name="parts").add("Transpose", perm=[0, 1, 3, 2])
    network.add("Concat", inputs=[network.last, "rest"], axis=3)
    pads = network.constant("pads", np.array([0, 0, 1, 0, 0, 0, 0, 2], np.int64))
    bounds = [network.constant(name, np.array([value], np.int64)) for name, value in zip("sed", (1, 9, 2), strict=True)]
    network.add("Pad", pads).add("Slice", *bounds, network.constant("step", np.array([2], np.int64)))
    return network.add("Flatten").gemm(84, 6)


def products() -> Network:
    network = Network().conv((4, 3, 3, 3), name="conv").add("Sigmoid")
    network.add("Mul", inputs=[network.last, "conv.out"], name="silu")
    network.add("Mul", inputs=["silu.out", "silu.out"]).add("Mul", network.constant("c", np.float32(-0.5)))
    network.add("Sub", inputs=["conv.out", network.last])
    factors = network.constant("f", np.linspace(0.5, 1.5, 4, dtype=np.float32).reshape(4, 1, 1))
    offsets = network.constant("o", network.normal(4, 6, 6))
    return network.add("Mul", factors).add("Add", offsets).add("Flatten").gemm(144, 6)


def activations() -> Network:
    network = Network(opset=14).conv((4, 3, 3, 3)).add("LeakyRelu", alpha=0.1).conv((4, 4, 2, 2)).add("HardSwish")
    network.conv((4, 4, 2, 2)).add("HardSigmoid").conv((4, 4, 2, 2)).add("Softplus").add("Neg")
    bounds = [network.constant(name, np.float32(value)) for name, value in (("low", -0.9), ("high", -0.2))]
    return network.add("Clip", *bounds).add("Flatten").gemm(36, 6)


def gated() -> Network:
    network = Network().conv((6, 3, 3, 3)).add("Relu", name="image").add("ReduceMean", axes=[2, 3])
    network.conv((6, 6, 1, 1)).add("Sigmoid").add("Mul", inputs=["image.out", "sigmoid4.out"])
    return network.add("ReduceMean", axes=[2, 3], keepdims=0).gemm(6, 6)


def gated_at_large() -> Network:
    """A gate of channels so large that ciphertexts multiply them."""
    network = Network(("N", 3, 24, 24)).conv((6, 3, 3, 3)).add("Relu", name="image").add("ReduceMean", axes=[2, 3])
    network.conv((6, 6, 1, 1)).add("Sigmoid").add("Mul", inputs=["image.out", "sigmoid4.out"])
    network.conv((4, 6, 3, 3), strides=[2, 2]).add("Relu")
    return network.add("ReduceMean", axes=[2, 3], keepdims=0).gemm(4, 6)


def rows() -> Network:
    network = Network(("N", 5, 8))
    network.add("MatMul", network.constant("w", network.normal(8, 9))).add("Relu")
    network.add("MatMul", network.constant("v", network.normal(9, 4)))
    network.add("Add", network.constant("b", network.normal(4, 4)[:, 0])).add("ReduceMean", axes=[1], keepdims=0)
    return network.gemm(4, 6)


def chain() -> Network:
    network = Network()
    for _ in range(3):
        network.conv((3, 3, 3, 3), pads=[1, 1, 1, 1])
    return network.add("Relu").add("Flatten").gemm(192, 6)


def matrix_times_rows() -> Network:
    """Two products in a row: the range of the first is seen behind views only."""
    network = Network(("N", 2, 5, 6))
    network.add("MatMul", network.constant("w", network.normal(4, 6).T))
    return network.add("Flatten").gemm(40, 6)


NETWORKS = [
    plain_conv,
    strided_grouped_conv,
    max_pool,
    max_pool_that_leaves_the_border_out,
    average_pool,
    global_average_pool,
    residual,
    batch_norm,
    added_constant,
    clipped,
    concatenated,
    rearranged,
    products,
    activations,
    gated,
    gated_at_large,
    rows,
    chain,
    matrix_times_rows,
]


def inputs(path: Path, count: int) -> np.ndarray:
    """Signed inputs of the model's shape, so that the input is quantised with a sign too."""
    shape = (count, *import_onnx(path).input_shape)
    return np.random.default_rng(2).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("build", NETWORKS)
def test_operator(build, tmp_path):
    source = build().save(tmp_path)
    x = inputs(source, 64)
    compile_model(source, tmp_path / "x.tacit", x, options=Options(rounding="exact"))
    model = Model(tmp_path / "x.tacit")
    expected = FloatModel(source)(x)
    difference = np.abs(model.simulate(x) * model.output_scale - expected)
    spread = np.abs(expected).max()
    assert difference.mean() < 0.02 * spread
    assert difference.max() < 0.08 * spread
    assert Pair(model).run(x[:2], None).report["max_error"] == 0


@pytest.mark.parametrize("bits", [8, 10, 12])
def test_large_channels_are_gated_under_encryption(bits, tmp_path, tacit):
    """Products that round at random, as the layers around them: near the float model, at the price of the plan."""
    source, path = gated_at_large().save(tmp_path), tmp_path / "x.tacit"
    x = inputs(source, 64)
    compile_model(source, path, x, options=Options("auto", bits, bits))
    planned = tacit("plan", path, "--json").json
    assert "matrix product" in [layer["operator"] for layer in planned["layers"]]
    np.save(tmp_path / "x.npy", x[:1])
    run = tacit("run", path, tmp_path / "x.npy", "--json").json
    assert (run["bytes"], run["rounds"]) == (planned["bytes"], planned["rounds"])
    model, expected = Model(path), FloatModel(source)(x[:8])
    got = Pair(model).run(x[:8], None).prediction.outputs * model.output_scale
    assert np.abs(got - expected).max() < 0.08 * np.abs(expected).max()


def test_widths_beyond_all_extensions_are_refused(tmp_path):
    network = Network(("N", 16, 40, 40)).conv((16, 16, 3, 3), pads=[1, 1, 1, 1])
    network.add("Mul", inputs=[network.last, network.last]).add("Flatten").gemm(25600, 6, name="last")
    source = network.save(tmp_path)
    with pytest.raises(UnsupportedError, match=r"`last`.*use fewer weight or activation bits"):
        compile_model(source, tmp_path / "x.tacit", inputs(source, 16), options=Options("auto", 12, 12))
