"""Features of a table that differ much in size, which have units of their own."""

import numpy as np
import pytest
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.compiler.parts import of_features
from tacit.importers.source import Selection
from tacit.model import Model
from tacit.session.pair import Pair

SIZES = np.array([3000, 0.004, 1, 0.5, 2, 20, 0.1, 5], np.float32)


def scaled(tmp_path):
    """A scaler and a linear layer over features of very different sizes."""
    network = Network(("N", len(SIZES)))
    network.add("Sub", network.constant("mean", SIZES / 2)).add("Div", network.constant("deviation", SIZES / 3))
    return network.gemm(len(SIZES), 3).save(tmp_path)


def rows(count):
    random = np.random.default_rng(0)
    return (random.uniform(0, 1, (count, len(SIZES))) * SIZES).astype(np.float32)


def relative(model, path, x):
    wanted = FloatModel(path, selection=model.selection)(x)
    return np.sqrt(np.square(model.real(model.simulate(x)) - wanted).mean()) / wanted.std()


def test_each_feature_has_steps_of_its_own(tmp_path):
    path, said = scaled(tmp_path), []
    compile_model(path, tmp_path / "x.tacit", rows(64), options=Options(rounding="exact", say=said.append))
    model = Model(tmp_path / "x.tacit")
    assert ["differ much in size" in note for note in said] == [True]
    (part,) = model.inputs
    ratios = np.array(part.units) / SIZES
    assert part.shape == (8,) and ratios.min() > 0.5 and ratios.max() < 4
    assert relative(model, path, rows(200)[64:]) < 0.03
    assert [layer["operator"] for layer in model.plan()["layers"] if layer["phase"] == "online"][:-1] == [
        "fully connected"
    ]
    beside = rows(4)
    assert model.bounds.clipped(beside) == 0
    beside[:, 1] = 1
    assert model.bounds.clipped(beside) == 1 / len(SIZES)
    noted = Selection.of(model.inspect()["options"])
    assert noted == model.selection and noted.units[0][1] == part.units


def test_private_results_are_those_of_the_interpreter(tmp_path):
    path = scaled(tmp_path)
    compile_model(path, tmp_path / "x.tacit", rows(64), options=Options(rounding="exact"))
    model, x = Model(tmp_path / "x.tacit"), rows(3)
    answer = Pair(model, threads=1).run(x, None).prediction
    np.testing.assert_array_equal(answer.outputs, model.simulate(x))
    np.testing.assert_allclose(answer.logits, FloatModel(path)(x), atol=0.2)


def test_features_of_like_sizes_and_signals_have_one_step(tmp_path):
    even = rows(64) / SIZES
    compile_model(scaled(tmp_path), tmp_path / "x.tacit", even)
    assert Model(tmp_path / "x.tacit").inputs == ()
    network = Network(("N", 8)).add("Unsqueeze", inputs=["x", "axis"])
    network.constant("axis", np.array([1]))
    signal = network.conv((2, 1, 3)).add("Relu").add("Flatten").gemm(12, 2).save(tmp_path)
    compile_model(signal, tmp_path / "signal.tacit", rows(64))
    assert Model(tmp_path / "signal.tacit").inputs == ()


@pytest.mark.parametrize(
    ("largest", "units"),
    [
        ([1, 2, 3, 4], ()),
        ([1, 1, 1, 31], ()),
        ([1, 1, 0.75, 100], (1, 1, 1, 128)),
        ([0, 1, 1, 1000], (2**-8, 1, 1, 1024)),
        ([0, 0, 0, 1], ()),
    ],
)
def test_units_are_powers_of_two_above_what_was_seen(largest, units):
    assert of_features(np.array([largest, [0] * 4], np.float32)) == units
    assert of_features(-np.array([largest], np.float32)) == units


def test_features_that_are_no_numbers_are_left_to_calibration():
    assert of_features(np.array([[1, np.inf, 1000]], np.float32)) == ()
