"""Trees behind scalers and imputers in ONNX: onnxruntime says where each row goes."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tacit import MisuseError, Model, UnsupportedError, compile_model
from tacit.importers.pipelines.onnx_ml import is_trees_behind, read

ML = "ai.onnx.ml"
RANDOM = np.random.default_rng(7)
TREES, DEPTH = 8, 3
REPLACED = {"replaced_value_float": float("nan")}


def ensemble(reads, columns):
    """Complete trees of random tests of `columns` columns."""
    inner, nodes = 2**DEPTH - 1, 2 ** (DEPTH + 1) - 1
    ids = np.tile(np.arange(nodes), TREES)
    leaves = ids >= inner
    given = {
        "nodes_treeids": np.repeat(np.arange(TREES), nodes),
        "nodes_nodeids": ids,
        "nodes_featureids": np.where(leaves, 0, RANDOM.integers(0, columns, len(ids))),
        "nodes_values": np.where(leaves, 0, RANDOM.normal(size=len(ids))).astype(np.float32),
        "nodes_truenodeids": np.where(leaves, 0, 2 * ids + 1),
        "nodes_falsenodeids": np.where(leaves, 0, 2 * ids + 2),
        "nodes_missing_value_tracks_true": RANDOM.integers(0, 2, len(ids)) * ~leaves,
        "target_treeids": np.repeat(np.arange(TREES), nodes)[leaves],
        "target_nodeids": ids[leaves],
        "target_ids": np.zeros(leaves.sum(), int),
        "target_weights": RANDOM.normal(size=leaves.sum()).astype(np.float32),
    }
    settings = {name: values.tolist() for name, values in given.items()}
    modes = ["LEAF" if leaf else "BRANCH_LEQ" for leaf in leaves]
    return helper.make_node(
        "TreeEnsembleRegressor", [reads], ["score"], "trees", domain=ML, n_targets=1, nodes_modes=modes, **settings
    )


def save(path, nodes, sizes, constants=(), texts=()):
    """A model with inputs of `sizes` by their names, and columns of texts."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size]) for name, size in sizes.items()]
    inputs += [helper.make_tensor_value_info(name, TensorProto.STRING, ["N", 1]) for name in texts]
    outputs = [helper.make_tensor_value_info("score", TensorProto.FLOAT, ["N", 1])]
    graph = helper.make_graph(nodes, "pipeline", inputs, outputs, constants)
    versions = [helper.make_opsetid(ML, 3), helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), path)
    return path


def prepared(reads, output):
    """An imputer and a scaler of four columns."""
    imputer = helper.make_node(
        "Imputer",
        [reads],
        ["filled"],
        "imputer",
        domain=ML,
        imputed_value_floats=[0.5, -20.0, 0.001, 2.0],
        replaced_value_float=float("nan"),
    )
    scale = {"offset": [0.1, 5.0, 0.002, -1.0], "scale": [1.3, 0.01, 700.0, 1 / 3]}
    return [imputer, helper.make_node("Scaler", ["filled"], [output], "scaler", domain=ML, **scale)]


def rows(path):
    """Rows at moved thresholds, their neighbours, and missing values."""
    limits = np.concatenate([tree.threshold[tree.feature >= 0] for tree in read(path)[0].trees])
    ends = np.float32(np.inf)
    near = [limits, np.nextafter(limits, ends), np.nextafter(limits, -ends), np.float32([np.nan, 0, -0.0, 1e20, -1e20])]
    return RANDOM.choice(np.concatenate(near), (3000, 4)).astype(np.float32)


def test_leaves_are_those_of_onnxruntime(tmp_path):
    path = save(tmp_path / "x.onnx", [*prepared("x", "ready"), ensemble("ready", 4)], {"x": 4})
    assert is_trees_behind(path)
    compile_model(path, tmp_path / "x.tacit")
    model, x = Model(tmp_path / "x.tacit"), rows(path)
    (wanted,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    found = model.real(model.simulate(x))
    assert np.abs(found - wanted).max() < model.error + 1e-5


def test_columns_are_picked_and_joined(tmp_path):
    places = numpy_helper.from_array(np.array([3, 0, 2], np.int64), "places")
    nodes = [
        helper.make_node("Concat", ["a", "b", "c", "d"], ["x"], "join", axis=1),
        *prepared("x", "ready"),
        helper.make_node("ArrayFeatureExtractor", ["ready", "places"], ["some"], "pick", domain=ML),
        ensemble("some", 3),
    ]
    path = save(tmp_path / "x.onnx", nodes, dict.fromkeys("abcd", 1), [places])
    compile_model(path, tmp_path / "x.tacit")
    model, x = Model(tmp_path / "x.tacit"), rows(path)
    assert model.schema.names == ("a", "b", "c", "d")
    given = {name: x[:, [at]] for at, name in enumerate("abcd")}
    (wanted,) = onnxruntime.InferenceSession(path).run(None, given)
    found = model.real(model.simulate({name: values[:, 0] for name, values in given.items()}))
    assert np.abs(found - wanted).max() < model.error + 1e-5
    assert json.loads(Path(tmp_path / "x.schema").read_text())["result"]["kind"] == "value"


def test_texts_are_encoded_by_the_lists_of_the_graph(tmp_path):
    cities, jobs = ["Lima", "Oslo", "Rome"], ["a", "b"]
    shape = numpy_helper.from_array(np.array([-1, 3], np.int64), "shape")
    one = numpy_helper.from_array(np.array([-1, 1], np.int64), "one")
    given = {"keys_strings": jobs, "values_int64s": [4, 2], "default_int64": -1}
    nodes = [
        helper.make_node("OneHotEncoder", ["city"], ["hot"], "hot", domain=ML, cats_strings=cities, zeros=1),
        helper.make_node("Reshape", ["hot", "shape"], ["cities"], "flat"),
        helper.make_node("LabelEncoder", ["job"], ["code"], "code", domain=ML, **given),
        helper.make_node("Reshape", ["code", "one"], ["codes"], "flat2"),
        helper.make_node("Cast", ["codes"], ["jobs"], "cast", to=TensorProto.FLOAT),
        helper.make_node("Concat", ["cities", "age", "jobs"], ["x"], "join", axis=1),
        ensemble("x", 5),
    ]
    path = save(tmp_path / "x.onnx", nodes, {"age": 1}, [shape, one], ["city", "job"])
    compile_model(path, tmp_path / "x.tacit")
    model = Model(tmp_path / "x.tacit")
    given = {
        "age": RANDOM.normal(size=300).astype(np.float32),
        "city": RANDOM.choice([*cities, "Bern"], 300).astype(object),
        "job": RANDOM.choice([*jobs, "c"], 300).astype(object),
    }
    columns = {name: values[:, None] for name, values in given.items()}
    (wanted,) = onnxruntime.InferenceSession(path).run(None, columns)
    found = model.real(model.simulate(given))
    assert np.abs(found - wanted).max() < model.error + 1e-5
    assert {each.name: each.categories for each in model.schema.columns}["city"] == tuple(cities)


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (helper.make_node("Scaler", ["x"], ["ready"], "s", domain=ML, offset=[0.0], scale=[-1.0]), "not positive"),
        (helper.make_node("Imputer", ["x"], ["ready"], "i", domain=ML, imputed_value_floats=[0.0]), "other values"),
        (helper.make_node("Normalizer", ["x"], ["ready"], "n", domain=ML, norm="L2"), "Normalizer"),
    ],
)
def test_other_nodes_are_refused_by_name(node, what, tmp_path):
    path = save(tmp_path / "x.onnx", [node, ensemble("ready", 4)], {"x": 4})
    with pytest.raises(UnsupportedError, match=what):
        compile_model(path, tmp_path / "x.tacit")


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Scaler", ["x"], ["ready"], "s", domain=ML, offset=[0.0] * 3, scale=[1.0] * 3),
        helper.make_node("Imputer", ["x"], ["ready"], "i", domain=ML, imputed_value_floats=[0.0] * 9, **REPLACED),
        helper.make_node("ArrayFeatureExtractor", ["x", "far"], ["ready"], "a", domain=ML),
        helper.make_node("Gather", ["x"], ["ready"], "g", axis=1),
        helper.make_node("Cast", ["x"], ["ready"], "c"),
    ],
)
def test_damaged_nodes_are_refused(node, tmp_path):
    far = numpy_helper.from_array(np.array([10**9], np.int64), "far")
    path = save(tmp_path / "x.onnx", [node, ensemble("ready", 4)], {"x": 4}, [far])
    with pytest.raises((MisuseError, UnsupportedError)):
        compile_model(path, tmp_path / "x.tacit")
