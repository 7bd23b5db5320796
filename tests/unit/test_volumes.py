"""Inputs of more axes than the engine has, and positions of texts that a model counts itself."""

import numpy as np
import onnx
from networks import Network
from onnx import TensorProto, helper, numpy_helper
from source_run import evaluate
from tacit.compiler.float_model import FloatModel
from tacit.importers.onnx import import_onnx


def test_a_volume_keeps_its_shape(tmp_path):
    network = Network(("N", 2, 3, 4, 5))
    path = network.add("Conv", network.constant("w", network.normal(3, 2, 2, 2, 2))).save(tmp_path)
    source = import_onnx(path)
    assert source.example_shape == (2, 3, 4, 5)
    x = np.random.default_rng(0).uniform(-1, 1, (2, 120)).astype(np.float32)
    for example, expected in zip(x, FloatModel(path)(x), strict=True):
        found = evaluate(source, example)[source.output].ravel()
        np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-4, atol=1e-5)


def positions(tmp_path, length=6, pad=1):
    """A table of positions, counted over the tokens that are no padding, beside one of words."""
    words = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    places = np.random.default_rng(1).standard_normal((12, 4)).astype(np.float32)
    values = {"words": words, "places": places, "pad": np.array(pad), "axis": np.array(1), "whole": np.array([1])}
    nodes = [
        helper.make_node("Equal", ["input_ids", "pad"], ["is_pad"], "equal"),
        helper.make_node("Not", ["is_pad"], ["is_word"], "not"),
        helper.make_node("Cast", ["is_word"], ["real"], "cast", to=TensorProto.INT64),
        helper.make_node("CumSum", ["real", "axis"], ["counted"], "count"),
        helper.make_node("Mul", ["counted", "real"], ["kept"], "keep"),
        helper.make_node("Add", ["kept", "pad"], ["place"], "move"),
        helper.make_node("Gather", ["places", "place"], ["positions"], "look_up_places"),
        helper.make_node("Gather", ["words", "input_ids"], ["embedded"], "look_up_words"),
        helper.make_node("Add", ["embedded", "positions"], ["states"], "sum"),
        helper.make_node("MatMul", ["states", "weight"], ["logits"], "dense"),
    ]
    values["weight"] = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
    graph = helper.make_graph(
        nodes,
        "counted",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["N", length]) for name in ("input_ids",)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", length, 3])],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "counted.onnx")
    return tmp_path / "counted.onnx", values


def test_positions_are_counted_over_words(tmp_path):
    path, values = positions(tmp_path)
    source = import_onnx(path, 6)
    tokens = np.array([3, 4, 5, 6, 1, 1], np.float32)
    found = evaluate(source, np.stack([tokens, tokens != 1]))[source.output]
    states = values["words"][tokens.astype(int)] + values["places"][np.arange(6) + 2]
    expected = states @ values["weight"]
    found = found.reshape(expected.shape) if found.shape[0] == 6 else found.reshape(3, -1).T
    np.testing.assert_allclose(found[:4], expected[:4], rtol=1e-4, atol=1e-5)
