"""Factors of channels that move between layers keep the function and make ranges even."""

from itertools import pairwise

import numpy as np
import onnx
import pytest
from networks import Network
from onnx import numpy_helper
from tacit.compiler import Options, compile_model
from tacit.compiler.equalise import WORTH, Statistics, Widths, eligible, equalised
from tacit.compiler.float_model import FloatModel
from tacit.compiler.quantize import calibrate, statistics
from tacit.importers.onnx import import_onnx
from tacit.model import Model

WIDTHS = Widths(8, 8)


def unbalanced(path, seed=0):
    """Give the channels of all inner layers of a chain of convolutions factors that change nothing but ranges."""
    model = onnx.load(path)
    arrays = {tensor.name: numpy_helper.to_array(tensor).copy() for tensor in model.graph.initializer}
    linear = [node.input for node in model.graph.node if node.op_type in ("Conv", "Gemm")]
    random = np.random.default_rng(seed)
    for (_, weight, bias), (_, reader, _) in pairwise(linear):
        factors = np.exp2(random.uniform(-3, 3, len(arrays[weight]))).astype(np.float32)
        arrays[weight] *= factors[:, None, None, None]
        arrays[bias] *= factors
        depthwise = arrays[reader].shape[1] == 1
        repeated = np.repeat(factors, arrays[reader].shape[0 if depthwise else 1] // len(factors))
        arrays[reader] /= repeated.reshape((-1, 1, 1, 1) if depthwise else (1, -1, 1, 1)[: arrays[reader].ndim])
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(arrays[tensor.name], tensor.name))
    onnx.save(model, path)
    return path


@pytest.fixture
def model(tmp_path):
    """A small depthwise separable network with uneven channels."""
    network = Network(("N", 3, 8, 8)).conv((8, 3, 3, 3), pads=[1] * 4).add("Relu")
    network.conv((8, 1, 3, 3), group=8, pads=[1] * 4).add("Relu").conv((12, 8, 1, 1)).add("Relu")
    network.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).add("Flatten").gemm(12 * 16, 5)
    return unbalanced(network.save(tmp_path))


def images(count=80):
    return np.random.default_rng(1).uniform(-1, 2, (count, 3, 8, 8)).astype(np.float32)


def test_the_function_stays(model, tmp_path):
    """With all bits that there are, results are those of the float model."""
    x = images()
    compile_model(model, tmp_path / "x.tacit", x, options=Options(activation_bits=12, weight_bits=12))
    compiled, wanted = Model(tmp_path / "x.tacit"), FloatModel(model)(x)
    found = compiled.simulate(x) * compiled.output_scale
    assert np.abs(found - wanted).max() < 0.01 * np.abs(wanted).max()


def test_uneven_channels_cost_less(model, tmp_path):
    x, errors = images(), {}
    for equalise in ("off", "auto", "on"):
        compile_model(model, tmp_path / "x.tacit", x, options=Options(equalise=equalise))
        compiled = Model(tmp_path / "x.tacit")
        errors[equalise] = np.abs(compiled.simulate(x) * compiled.output_scale - FloatModel(model)(x)).mean()
        assert compiled.inspect()["options"].get("equalise", "auto") == equalise
    assert errors["on"] <= errors["auto"] < errors["off"] / 3


def test_calibration_sees_scaled_tensors(model):
    source, x = import_onnx(model), images()
    peaks = statistics(model, source, x)
    even = equalised(source, peaks, WIDTHS)
    before, after = calibrate(model, source, x), calibrate(model, even, x)
    scaled = {name: np.array(where.factors) for name, where in even.seen.items() if where.factors}
    assert list(scaled) == [name for name in source.tensor_names() if name not in (source.input_name, source.output)]
    for name, factors in scaled.items():
        largest = max(abs(end) for end in after.ranges[name])
        assert largest == pytest.approx((peaks[name].peaks * factors).max(), rel=1e-4)
        if name in before.means:
            assert after.means[name] == pytest.approx(np.array(before.means[name]) * factors, rel=1e-4)
    assert after.ranges[source.output] == before.ranges[source.output]


def test_sums_share_factors(tmp_path):
    network = Network(("N", 3, 8, 8)).conv((4, 3, 1, 1), name="first").conv((4, 4, 3, 3), name="branch", pads=[1] * 4)
    network.add("Add", inputs=["first.out", "branch.out"]).add("Relu", name="relu").conv((4, 4, 1, 1), name="last")
    path = network.save(tmp_path)
    source, x = import_onnx(path), images()
    (group,) = eligible(source, statistics(path, source, x))
    assert {node.name for node in group.writers} == {"first", "branch"}
    assert {node.name for node in group.readers} == {"branch", "last"}


@pytest.mark.parametrize("operator", ["Sigmoid", "Clip", "BatchNormalization"])
def test_what_does_not_commute_keeps_its_factors(tmp_path, operator):
    network = Network(("N", 3, 8, 8)).conv((4, 3, 1, 1))
    if operator == "BatchNormalization":
        constants = [network.constant(role, np.ones(4, np.float32)) for role in ("scale", "bias", "mean", "variance")]
        network.add(operator, *constants)
    elif operator == "Clip":
        network.add(operator, *(network.constant(name, np.float32(end)) for name, end in (("low", 0), ("high", 6))))
    else:
        network.add(operator)
    path = network.conv((4, 4, 1, 1)).save(tmp_path)
    source = import_onnx(path)
    assert not eligible(source, statistics(path, source, images()))


def test_layers_behind_tensors_that_calibration_does_not_see(tmp_path):
    """A shuffle of channels makes tensors that the model does not have, and layers read them."""
    network = Network(("N", 4, 8, 8)).conv((4, 4, 1, 1)).add("Reshape", "split").add("Transpose", perm=[0, 2, 1, 3, 4])
    network.constant("split", np.array([-1, 2, 2, 8, 8]))
    network.constant("joined", np.array([-1, 4, 8, 8]))
    path = network.add("Reshape", "joined").conv((4, 4, 3, 3)).add("Relu").conv((5, 4, 1, 1)).save(tmp_path)
    x = np.random.default_rng(1).uniform(-1, 2, (30, 4, 8, 8)).astype(np.float32)
    source = import_onnx(path)
    found = statistics(path, source, x)
    assert all(node.inputs[0] in found for group in eligible(source, found) for node in group.writers)
    for equalise in ("auto", "on"):
        compile_model(path, tmp_path / "x.tacit", x, options=Options(equalise=equalise))


def test_channels_that_were_zero_in_calibration_get_no_factor(model):
    source = import_onnx(model)
    seen = statistics(model, source, images())
    name = next(node.output for node in source.nodes if node.operation["op"] == "Relu")
    channel = int(np.argmin(seen[name].peaks))
    (group,) = (group for group in eligible(source, seen) if name in group.repeats)
    for one in group.repeats:
        seen[one].peaks[channel] = 0
    even = equalised(source, seen, WIDTHS)
    assert even.seen[name].factors[channel] == 1


def test_the_input_and_the_output_keep_theirs(tmp_path):
    path = Network(("N", 3, 8, 8)).conv((4, 3, 1, 1)).add("Relu").save(tmp_path)
    source = import_onnx(path)
    assert equalised(source, statistics(path, source, images()), WIDTHS).seen == {}


def test_channels_that_are_always_zero_stay(model):
    source = import_onnx(model)
    zeros = {
        name: Statistics(one.peaks * 0, one.squares * 0) for name, one in statistics(model, source, images()).items()
    }
    assert equalised(source, zeros, WIDTHS).seen == {}


def test_even_channels_are_left_alone(tmp_path):
    """A network whose channels are much alike is compiled to the same integers as before."""
    path = Network(("N", 3, 8, 8)).conv((4, 3, 3, 3)).add("Relu").conv((4, 4, 3, 3)).save(tmp_path)
    source, x = import_onnx(path), images()
    assert equalised(source, statistics(path, source, x), WIDTHS, WORTH["auto"]).seen == {}


def test_people_are_told(model, tmp_path):
    said = []
    compile_model(model, tmp_path / "x.tacit", images(), options=Options(say=said.append))
    assert ["channels" in line for line in said] == [True]
