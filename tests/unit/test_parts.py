"""Several inputs and results as one tensor each, states, and ranks above three."""

import numpy as np
import onnxruntime
import pytest
from networks import Network
from onnx import helper
from streams import chunks, examples_of_two, heard, recurrent, saved, two_of_each, value, weights
from tacit import _core
from tacit.cli.options import pair
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.data.examples import load
from tacit.data.parts import apart, joined, unit_of_each
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Part, Selection
from tacit.model import Model
from typer import BadParameter

BOTH = Selection("scores, boxes")
STATE = (("state", "next"),)


def test_parts_have_the_names_and_shapes_of_the_model(tmp_path):
    source = import_onnx(two_of_each(tmp_path / "two.onnx"), selection=BOTH)
    assert source.inputs == (Part("a", (6,)), Part("image", (3, 4, 4)))
    assert source.outputs == (Part("scores", (5,)), Part("boxes", (3, 4)))
    assert source.input_shape == (54,)


def test_several_inputs_of_one_result_need_nothing_to_be_said(tmp_path):
    source = import_onnx(two_of_each(tmp_path / "two.onnx"), selection=Selection("boxes"))
    assert len(source.inputs) == 2 and source.outputs == ()


def test_units_follow_from_the_calibration_and_are_noted(tmp_path):
    path = two_of_each(tmp_path / "two.onnx")
    x = examples_of_two(64)
    compile_model(path, tmp_path / "two.tacit", x, options=Options(rounding="exact", result="scores,boxes"))
    model = Model(tmp_path / "two.tacit")
    units = dict(model.selection.units)
    assert units["a"] == pytest.approx(np.abs(x["a"]).max()) and units["image"] <= 1
    assert [part.unit for part in model.outputs] == [units["scores"], units["boxes"]]
    flat = joined(model.inputs, x)
    found = FloatModel(path, selection=model.selection)(flat)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    expected = np.concatenate([v.reshape(64, -1) for v in session.run(["scores", "boxes"], x)], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    difference = np.abs(model.real(model.simulate(flat)) - expected)
    assert difference[:, :5].max() < 0.03 * np.abs(expected[:, :5]).max()
    assert difference[:, 5:].max() < 0.03 * np.abs(expected[:, 5:]).max()
    assert model.bounds.clipped(flat) == 0
    assert model.bounds.clipped(flat * 2) > 0


def test_old_opsets_cut_inputs_too(tmp_path):
    network = Network(("N", 4))
    proto = network.gemm(4, 3, "fc").proto()
    proto.graph.input.append(value("other", "N", 3))
    last = proto.graph.output[0].name
    proto.graph.node.append(helper.make_node("Add", [last, "other"], ["both"], "both"))
    del proto.graph.output[:]
    proto.graph.output.append(value("both", "N", 3))
    proto.opset_import[0].version = 9
    (tmp_path / "old.onnx").write_bytes(proto.SerializeToString())
    assert [part.size for part in import_onnx(tmp_path / "old.onnx").inputs] == [4, 3]


def test_arrays_of_a_file_are_joined_by_name(tmp_path):
    parts = (Part("a", (2,)), Part("b", (1, 3)))
    np.savez(tmp_path / "x.npz", b=np.ones((4, 1, 3), np.float32), a=np.zeros((4, 2), np.float32), y=np.arange(4))
    read = load(tmp_path / "x.npz", (5,), parts=parts)
    np.testing.assert_array_equal(read.x, [[0, 0, 1, 1, 1]] * 4)
    assert read.y.tolist() == [0, 1, 2, 3]
    np.savez(tmp_path / "less.npz", a=np.zeros((4, 2), np.float32))
    with pytest.raises(MisuseError, match="inputs are `a`, `b`, not `a`"):
        load(tmp_path / "less.npz", (5,), parts=parts)
    with pytest.raises(MisuseError, match="1 of `a`, 2 of `b`"):
        joined(parts, {"a": np.zeros((1, 2)), "b": np.zeros((2, 1, 3))})
    with pytest.raises(MisuseError, match="give numbers"):
        joined(parts, {"a": np.array(["x", "y"]), "b": np.zeros((1, 3))})


def test_results_come_apart_in_their_shapes():
    parts = (Part("a", (2,), 3.0), Part("b", (), 0.5))
    found = apart(parts, np.arange(6.0).reshape(2, 3))
    assert {name: array.shape for name, array in found.items()} == {"a": (2, 2), "b": (2,)}
    np.testing.assert_array_equal(unit_of_each(parts), [3, 3, 0.5])


def test_results_of_four_axes_keep_their_shape(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Reshape", ["h", "shape"], ["y"]),
    ]
    constants = {"w": weights(4, 16), "shape": np.array([-1, 2, 2, 2, 2])}
    path = saved(tmp_path / "deep.onnx", nodes, [value("x", "N", 4)], [value("y", "N", 2, 2, 2, 2)], constants)
    x = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
    compile_model(path, tmp_path / "deep.tacit", x)
    assert Model(tmp_path / "deep.tacit").output_shape == (2, 2, 2, 2)


def test_inputs_of_four_axes_keep_their_shape(tmp_path):
    nodes = [
        helper.make_node("Flatten", ["x"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    path = saved(
        tmp_path / "deep.onnx", nodes, [value("x", "N", 2, 2, 2, 2)], [value("y", "N", 3)], {"w": weights(16, 3)}
    )
    x = np.random.default_rng(0).normal(size=(16, 2, 2, 2, 2)).astype(np.float32)
    compile_model(path, tmp_path / "deep.tacit", x, options=Options(rounding="exact"))
    model = Model(tmp_path / "deep.tacit")
    assert model.input_shape == (2, 2, 2, 2)
    expected = FloatModel(path, selection=model.selection)(x.reshape(16, 16))
    assert np.abs(model.real(model.simulate(x)) - expected).max() < 0.05


def test_a_state_is_a_vector_of_the_source(tmp_path):
    source = import_onnx(recurrent(tmp_path / "r.onnx"), selection=Selection(states=STATE))
    (state,) = source.states
    assert (state.name, state.shape) == ("state.kept", (16,))
    assert source.input_shape == (5,)
    assert source.output == "y"


def test_a_stream_follows_the_float_model_and_chance_stays_near_it(tmp_path):
    path = recurrent(tmp_path / "r.onnx")
    x = chunks(200)
    compile_model(path, tmp_path / "r.tacit", x, options=Options(states=STATE))
    model = Model(tmp_path / "r.tacit")
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    expected = heard(session, x)
    np.testing.assert_allclose(FloatModel(path, selection=model.selection)(x), expected, rtol=1e-5, atol=1e-6)
    exact = model.real(model.simulate(x))
    chance = model.real(model.simulate(x, seed=1))
    assert np.abs(exact - expected).max() < 0.04 * np.abs(expected).max()
    assert np.abs(chance - expected).max() < 0.06 * np.abs(expected).max()
    assert not np.array_equal(exact, chance)
    np.testing.assert_array_equal(model.simulate(x, seed=1), model.simulate(x, seed=1))
    assert model.states == ("state.kept",)


def test_states_that_cannot_be_are_refused(tmp_path):
    path = recurrent(tmp_path / "r.onnx")
    with pytest.raises(UnsupportedError, match="or keep it from one input to the next: --state state=OUTPUT"):
        import_onnx(path)
    with pytest.raises(MisuseError, match="reads no input `hidden` that could be a state; inputs are `x`, `state`"):
        import_onnx(path, selection=Selection(states=(("hidden", "next"),)))
    with pytest.raises(MisuseError, match="no node of the model writes `nothing`"):
        import_onnx(path, selection=Selection(states=(("state", "nothing"),)))
    with pytest.raises(MisuseError, match=r"`y` of shape \[1, 2\] is no next value of state `state` \[2, 1, 8\]"):
        import_onnx(path, selection=Selection(states=(("state", "y"),)))
    with pytest.raises(UnsupportedError, match="compile for suite auto"):
        options = Options(states=STATE, suite="lola", accept_leakage=True)
        compile_model(path, tmp_path / "r.tacit", chunks(8), options=options)


def test_a_pair_of_names_is_read():
    assert pair("a=b=c") == ("a", "b=c")
    with pytest.raises(BadParameter, match="IN=OUT"):
        pair("a")


def test_simulation_takes_a_seed(tmp_path):
    path = two_of_each(tmp_path / "two.onnx")
    compile_model(path, tmp_path / "two.tacit", examples_of_two(64), options=Options(result="scores"))
    x = joined(Model(tmp_path / "two.tacit").inputs, examples_of_two(64))
    exact, chance = (_core.simulate(str(tmp_path / "two.tacit"), x, seed) for seed in (None, 7))
    assert np.abs(exact - chance).max() <= 16 and not np.array_equal(exact, chance)
