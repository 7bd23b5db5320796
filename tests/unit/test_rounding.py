"""Weights rounded with the inputs in view lie on the core's grid and err less."""

import numpy as np
import pytest
from encoders import tokens, write
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.compiler.quantize import batches_of
from tacit.compiler.reading import Reading
from tacit.compiler.rounding import fed_back, loss, on_grid, rounded
from tacit.errors import MisuseError
from tacit.importers.onnx import import_onnx
from tacit.model import Model

BITS = 5
SEQUENCE = 8


@pytest.fixture
def model(tmp_path):
    """All kinds of layers: dense, without a bias, depthwise, strided, pointwise and fully connected."""
    network = Network(("N", 3, 8, 8)).conv((8, 3, 3, 3), bias=False, pads=[1] * 4).add("Relu")
    network.conv((8, 1, 3, 3), group=8, pads=[1] * 4, strides=[2, 2]).add("Relu").conv((12, 8, 1, 1)).add("Relu")
    return network.add("Flatten").gemm(12 * 16, 5).save(tmp_path)


def images(count=100):
    """Neighbouring pixels are alike, as in pictures."""
    noise = np.random.default_rng(1).standard_normal((count, 3, 8, 8))
    return np.cumsum(np.cumsum(noise, axis=2), axis=3).astype(np.float32) / 4


def compiled(model, path, **options):
    compile_model(model, path, images(), options=Options(weight_bits=BITS, **options))
    return Model(path)


def test_errors_are_smaller(model, tmp_path):
    x, errors = images(150)[100:], {}
    for how in ("nearest", "fed-back"):
        found = compiled(model, tmp_path / "x.tacit", weight_rounding=how)
        assert found.inspect()["options"].get("weight_rounding", "nearest") == how
        errors[how] = np.square(found.simulate(x) * found.output_scale - FloatModel(model)(x)).mean()
    assert errors["fed-back"] < 0.6 * errors["nearest"]


@pytest.mark.parametrize("centred", [True, False])
def test_weights_lie_on_the_grid_of_the_core(model, tmp_path, centred):
    """Compiled again, all weights but the largest of each channel are what they were made."""
    source, path = import_onnx(model), compiled(model, tmp_path / "first.tacit").path
    assert [layer.node.name for layer in on_grid(source, path, BITS)] == ["conv0", "conv2", "conv4", "gemm7"]
    even = rounded(source, path, lambda tensors: batches_of(model, source, images(), tensors), BITS, centred)
    options = {"weight_rounding": "fed-back", "bias_correction": centred}
    layers = on_grid(even, compiled(model, tmp_path / "second.tacit", **options).path, BITS)
    assert [layer.node.name for layer in layers] == ["conv0", "conv2", "conv4", "gemm7"]
    for before, after in zip(on_grid(source, path, BITS), layers, strict=True):
        assert (before.steps == after.steps).all()
        lines, peaks = np.arange(len(after.rows)), np.abs(before.rows).argmax(axis=1)
        assert (before.rows[lines, peaks] == after.rows[lines, peaks]).all()
        whole = after.rows / after.steps[:, None]
        whole[lines, peaks] = 0
        changed = (before.rows != after.rows).any(axis=1)
        assert changed.mean() > 0.5
        assert np.abs(whole - np.rint(whole))[changed].max() < 1e-3
        assert (after.node.operation["bias"] is None) == (not centred and before.node.operation["bias"] is None)


def test_layers_that_passes_change_are_left_alone(tmp_path):
    network = Network(("N", 3, 8, 8)).conv((4, 3, 3, 3), name="folded")
    constants = [network.constant(f"n{i}", np.linspace(0.5, 2, 4, dtype=np.float32)) for i in range(4)]
    path = network.add("BatchNormalization", *constants).add("Relu").conv((5, 4, 1, 1), name="kept").save(tmp_path)
    assert [
        layer.node.name for layer in on_grid(import_onnx(path), compiled(path, tmp_path / "x.tacit").path, BITS)
    ] == ["kept"]


def test_no_row_is_worse_than_rounded_to_the_nearest():
    random = np.random.default_rng(0)
    inputs = random.standard_normal((500, 20)) @ random.standard_normal((20, 20))
    rows, moments = random.standard_normal((30, 20)), inputs.T @ inputs / 500
    steps = np.abs(rows).max(axis=1) / 7
    found = fed_back(rows, steps, 7, moments)
    after, before = (loss(one, rows, steps, 7, moments) for one in (found, rows))
    assert (after <= before).all()
    assert after.sum() < 0.7 * before.sum()
    peaks = np.abs(rows).argmax(axis=1)
    assert (found[np.arange(30), peaks] == rows[np.arange(30), peaks]).all()


def test_inputs_that_are_always_zero_do_no_harm():
    rows, moments = np.random.default_rng(0).standard_normal((4, 6)), np.zeros((6, 6))
    assert (fed_back(rows, np.ones(4), 7, moments) == rows).all()


def test_encoders_are_rounded_too(tmp_path):
    folder, path = write(tmp_path / "mini"), tmp_path / "x.tacit"
    reading = Reading(SEQUENCE)
    x = tokens(20, SEQUENCE)
    compile_model(folder, path, x, options=Options(reading=reading, weight_rounding="fed-back"))
    found = Model(path).simulate(x) * Model(path).output_scale
    wanted = FloatModel(folder, (), SEQUENCE)(x)
    assert np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()


def test_suites_with_a_rounding_of_their_own_refuse(model, tmp_path):
    with pytest.raises(MisuseError, match="its own rounding"):
        compile_model(model, tmp_path / "x.tacit", images(), options=Options(suite="ufo", weight_rounding="fed-back"))
