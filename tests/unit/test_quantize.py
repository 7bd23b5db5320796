"""Calibration observes every tensor of the source graph."""

import numpy as np
import pytest
from networks import Network
from tacit.compiler import Options, compile_model, float_model
from tacit.compiler.clipping import percentile
from tacit.compiler.float_model import FloatModel
from tacit.compiler.quantize import calibrate
from tacit.errors import MisuseError
from tacit.importers.onnx import import_onnx
from tacit.model import Model


@pytest.fixture(params=["N", 1])
def model(request, tmp_path):
    """A small network, with a dynamic batch and with a batch fixed at one."""
    network = Network((request.param, 3, 8, 8))
    network.conv((4, 3, 3, 3)).add("Relu").add("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).add("Flatten")
    return network.gemm(36, 5).save(tmp_path)


def images(count):
    return np.random.default_rng(1).uniform(-1, 2, (count, 3, 8, 8)).astype(np.float32)


def test_ranges_are_those_of_the_float_model(model):
    source = import_onnx(model)
    x = images(70)
    ranges = calibrate(model, source, x).ranges
    assert list(ranges) == source.tensor_names()
    assert ranges["x"] == (x.min(), x.max())
    assert ranges["relu1.out"][0] == 0
    assert ranges["relu1.out"][1] == ranges["conv0.out"][1] == ranges["flatten3.out"][1]
    output = FloatModel(model)(x)
    assert ranges["gemm4.out"] == (output.min(), output.max())


def test_means_are_those_of_what_linear_layers_read(model):
    source = import_onnx(model)
    x = images(70)
    means = calibrate(model, source, x).means
    assert list(means) == ["x", "flatten3.out"]
    assert means["x"] == pytest.approx(x.mean(axis=(0, 2, 3)), abs=1e-6)
    flat = [values["flatten3.out"] for values in FloatModel(model, ["flatten3.out"]).batches(x)]
    assert means["flatten3.out"] == pytest.approx(np.concatenate(flat).mean(axis=0), rel=1e-5)


def test_corrected_biases_bring_the_mean_of_the_output_near(model, tmp_path):
    x = images(70)
    expected = FloatModel(model)(x).mean(axis=0)

    def off(corrected):
        """How far the means of the output are from those of the float model, with coarse weights."""
        options = Options(weight_bits=3, bias_correction=corrected)
        compile_model(model, tmp_path / "x.tacit", x, options=options)
        compiled = Model(tmp_path / "x.tacit")
        outputs = compiled.simulate(x).mean(axis=0) * compiled.output_scale
        return float(np.linalg.norm(outputs - expected))

    assert off(True) < off(False) / 2


def test_batches_of_one_give_the_same_ranges(tmp_path):
    results = []
    for batch in ("N", 1):
        path = Network((batch, 3, 8, 8)).conv((4, 3, 3, 3)).save(tmp_path)
        results.append(calibrate(path, import_onnx(path), images(9)).ranges["conv0.out"])
    assert results[0] == pytest.approx(results[1], rel=1e-5)


def test_a_declared_range_widens_the_input_only(model):
    source = import_onnx(model)
    x = images(5)
    narrow, wide = calibrate(model, source, x).ranges, calibrate(model, source, x, (-4, 1)).ranges
    assert wide["x"] == (-4, x.max())
    assert {k: v for k, v in wide.items() if k != "x"} == {k: v for k, v in narrow.items() if k != "x"}


def test_without_data_the_input_is_drawn_from_the_range(model):
    source = import_onnx(model)
    seen = calibrate(model, source, None, (-3, 5))
    assert seen.ranges["x"] == (-3, 5)
    assert calibrate(model, source, None).ranges["x"] == (0, 1)
    assert seen == calibrate(model, source, None, (-3, 5))
    assert seen.means == {}


def test_inputs_of_another_shape_are_refused(model):
    with pytest.raises(MisuseError, match="the model takes"):
        calibrate(model, import_onnx(model), np.zeros((2, 3, 9, 8), np.float32))


def outliers(count):
    """A network that gives its input back, and inputs of which one value in a thousand is large."""
    x = np.random.default_rng(3).uniform(-1, 1, (count, 1000)).astype(np.float32)
    x[:, 0] = 50
    return Network(("N", 1000)).add("Identity").add("Relu", name="middle").add("Identity"), x


def test_percentiles_cut_the_tails_between_input_and_output(tmp_path):
    network, x = outliers(20)
    path = network.save(tmp_path)
    whole = calibrate(path, import_onnx(path), x).ranges
    cut = calibrate(path, import_onnx(path), x, clip=percentile(99.5)).ranges
    assert (cut["x"], cut["identity2.out"]) == (whole["x"], whole["identity2.out"])
    assert whole["middle.out"] == (0, 50)
    assert cut["middle.out"] == (0, pytest.approx(1, abs=0.02))
    low, high = cut["identity0.out"]
    assert (low, high) == (pytest.approx(-0.99, abs=0.02), pytest.approx(1, abs=0.02))


def test_a_high_percentile_keeps_everything(tmp_path):
    network, x = outliers(3)
    path = network.save(tmp_path)
    assert calibrate(path, import_onnx(path), x, clip=percentile(99.99999)) == calibrate(path, import_onnx(path), x)


def test_constant_tensors_have_no_tails(tmp_path):
    path = Network(("N", 4)).add("Identity").add("Relu").save(tmp_path)
    cut = calibrate(path, import_onnx(path), np.zeros((2, 4), np.float32), clip=percentile(99)).ranges
    assert cut["identity0.out"] == (0, 0)


def test_batches_are_as_large_as_memory_allows(model, monkeypatch):
    def sizes():
        return [len(values["x"]) for values in FloatModel(model, import_onnx(model).tensor_names()).batches(images(70))]

    batched = FloatModel(model).signature.batched
    assert sizes() == ([1, 64, 5] if batched else [1] * 70)
    monkeypatch.setattr(float_model, "BATCH_BYTES", 1)
    assert sizes() == [1] * 70
