"""Ensembles of trees in ONNX graphs, of all versions, modes and aggregates, against onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tacit import MisuseError, Model, UnsupportedError, compile_model
from tacit.importers.trees.onnx_graph import find

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
MEMBER = 6
FEATURES = 4
DEPTH = 3
Rng = np.random.Generator
SPECIAL = np.float32([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 7.0, 8.0, 1e-45, 3e38, -3e38])


def rows(rng: Rng) -> NDArray[np.float32]:
    """Rows of numbers at which trees split, their neighbours, infinities and NaN."""
    ends = np.float32(np.inf)
    near = [SPECIAL, np.nextafter(SPECIAL, ends), np.nextafter(SPECIAL, -ends), np.float32([ends, -ends])]
    found = rng.choice(np.concatenate(near), (400, FEATURES)).astype(np.float32)
    found[rng.random(found.shape) < 0.1] = np.nan
    return found


def graph(node: onnx.NodeProto, version: int, outputs: list[str], more: Any = ()) -> onnx.ModelProto:
    """A model of an ensemble and of what follows it."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", FEATURES])
    kinds = {"y": (TensorProto.FLOAT, ["N", "K"]), "label": (TensorProto.STRING, ["N"])}
    ends = [helper.make_tensor_value_info(name, *kinds[name]) for name in outputs]
    made = helper.make_graph([node, *more], "trees", [x], ends)
    versions = [helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(made, opset_imports=versions, ir_version=10)


def older(rng: Rng, kind: str, results: int, modes: tuple[str, ...], **settings: Any) -> onnx.NodeProto:
    """A node of complete trees: node i has the children 2i + 1 and 2i + 2; leaves have values of all results."""
    inner, count = (1 << DEPTH) - 1, (1 << (DEPTH + 1)) - 1
    given: dict[str, list[Any]] = {}
    role = "class" if kind == "TreeEnsembleClassifier" else "target"

    def add(name: str, value: Any) -> None:
        given.setdefault(name, []).append(value)

    for tree in range(5):
        for at in range(count):
            leaf = at >= inner
            add("nodes_treeids", tree)
            add("nodes_nodeids", at)
            add("nodes_featureids", 0 if leaf else int(rng.integers(FEATURES)))
            add("nodes_modes", "LEAF" if leaf else str(rng.choice(modes)))
            add("nodes_values", 0.0 if leaf else float(rng.choice(SPECIAL)))
            add("nodes_truenodeids", 0 if leaf else 2 * at + 1)
            add("nodes_falsenodeids", 0 if leaf else 2 * at + 2)
            add("nodes_missing_value_tracks_true", 0 if leaf else int(rng.integers(2)))
            for result in range(results) if leaf else ():
                add(f"{role}_treeids", tree)
                add(f"{role}_nodeids", at)
                add(f"{role}_ids", result)
                add(f"{role}_weights", float(np.float32(rng.normal())))
    outputs = ["y"] if role == "target" else ["label", "y"]
    return helper.make_node(kind, ["x"], outputs, "trees", domain="ai.onnx.ml", **given, **settings)


def newer(rng: Rng, results: int, **settings: Any) -> onnx.NodeProto:
    """A node of TreeEnsemble: complete trees of all modes, sets of members among them."""
    inner, leaves, trees = (1 << DEPTH) - 1, 1 << DEPTH, 4
    lists: dict[str, list[Any]] = {name: [] for name in ("features", "splits", "modes", "missing")}
    ends: dict[str, list[int]] = {name: [] for name in ("true", "trueleafs", "false", "falseleafs")}
    members: list[float] = []
    for tree in range(trees):
        for at in range(inner):
            lists["features"].append(int(rng.integers(FEATURES)))
            lists["splits"].append(rng.choice(SPECIAL))
            mode = int(rng.integers(MEMBER + 1))
            lists["modes"].append(mode)
            lists["missing"].append(0 if mode == MEMBER else int(rng.integers(2)))
            # onnxruntime has sets of small integers only.
            members += [*rng.choice([1.0, 2.0, 7.0, 8.0], 3).tolist(), np.nan] if mode == MEMBER else []
            for side, child in (("true", 2 * at + 1), ("false", 2 * at + 2)):
                leaf = child >= inner
                ends[side].append(tree * leaves + child - inner if leaf else tree * inner + child)
                ends[f"{side}leafs"].append(int(leaf))

    def tensor(name: str, values: Any, dtype: Any) -> onnx.TensorProto:
        return numpy_helper.from_array(np.asarray(values, dtype), name)

    return helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        "trees",
        domain="ai.onnx.ml",
        tree_roots=[tree * inner for tree in range(trees)],
        nodes_featureids=lists["features"],
        nodes_splits=tensor("splits", lists["splits"], np.float32),
        nodes_modes=tensor("modes", lists["modes"], np.uint8),
        nodes_missing_value_tracks_true=lists["missing"],
        nodes_truenodeids=ends["true"],
        nodes_trueleafs=ends["trueleafs"],
        nodes_falsenodeids=ends["false"],
        nodes_falseleafs=ends["falseleafs"],
        leaf_targetids=[int(rng.integers(results)) for _ in range(trees * leaves)],
        leaf_weights=tensor("weights", rng.normal(size=trees * leaves), np.float32),
        membership_values=tensor("members", members or [np.nan], np.float32),
        n_targets=results,
        **settings,
    )


def compared(content: onnx.ModelProto, x: NDArray[np.float32], tmp_path: Path) -> Model:
    """The compiled model, whose estimates are those of onnxruntime."""
    path = tmp_path / "model.onnx"
    onnx.save(content, path)
    compile_model(path, tmp_path / "model.tacit")
    model = Model(tmp_path / "model.tacit")
    want = onnxruntime.InferenceSession(content.SerializeToString()).run(["y"], {"x": x})[0].reshape(len(x), -1)
    outputs = model.simulate(x)
    estimates = model.estimates(outputs)
    found = model.real(outputs) if estimates is None else estimates
    want = want[:, -found.shape[1] :]
    assert np.abs(found - want).max() < 20 * model.output_scale + 1e-5
    return model


@pytest.mark.parametrize("mode", [*MODES, "all"])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE"])
def test_regressors(mode: str, aggregate: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(len(mode) + len(aggregate))
    settings: dict[str, Any] = {"n_targets": 2, "aggregate_function": aggregate, "base_values": [0.5, -2.0]}
    # onnxruntime reads the nodes of a tree by one rule unless they have different modes.
    modes = MODES if mode == "all" else (mode,)
    node = older(rng, "TreeEnsembleRegressor", 2, modes, **settings)
    compared(graph(node, 3, ["y"]), rows(rng), tmp_path)


@pytest.mark.parametrize(("transform", "link"), [("NONE", None), ("LOGISTIC", "sigmoid"), ("SOFTMAX", "softmax")])
def test_classifiers(transform: str, link: str | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    names = ["low", "middle", "high"]
    settings = {"classlabels_strings": names, "post_transform": transform}
    node = older(rng, "TreeEnsembleClassifier", 3, MODES[:1], **settings)
    model = compared(graph(node, 3, ["label", "y"]), rows(rng), tmp_path)
    assert model.description["labels"] == names
    assert (model.link and model.link.function) == link


@pytest.mark.parametrize("results", [1, 3])
@pytest.mark.parametrize("aggregate", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_ensembles_of_opset_5(results: int, aggregate: int, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    node = newer(rng, results, aggregate_function=aggregate, post_transform=0)
    compared(graph(node, 5, ["y"]), rows(rng), tmp_path)


def test_what_follows_an_ensemble_is_its_link_or_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    node = older(rng, "TreeEnsembleRegressor", 1, MODES[:1], n_targets=1)
    node.output[0] = "scores"
    behind = [helper.make_node("Sigmoid", ["scores"], ["y"])]
    model = compared(graph(node, 3, ["y"], behind), rows(rng), tmp_path)
    assert model.link is not None
    for operator in ("Relu", "Exp"):
        again = graph(node, 3, ["y"], [helper.make_node(operator, ["scores"], ["y"])])
        onnx.save(again, tmp_path / "model.onnx")
        if operator == "Exp":
            compile_model(tmp_path / "model.onnx", tmp_path / "model.tacit")
        else:
            with pytest.raises(UnsupportedError, match="what follows the trees"):
                compile_model(tmp_path / "model.onnx", tmp_path / "model.tacit")
    found = find(graph(node, 3, ["y"], behind))
    assert found is not None
    assert ([each.op_type for each in found.before], [each.op_type for each in found.behind]) == ([], ["Sigmoid"])


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("nodes_truenodeids", [0], "twice"),
        ("nodes_truenodeids", [99], "damaged"),
        ("nodes_truenodeids", [7], "no root leads to"),
        ("nodes_nodeids", [1], "damaged"),
        ("nodes_featureids", [-1], "tests feature -1"),
        ("nodes_featureids", [9], "feature 9 of 4"),
        ("nodes_values", [float("nan")], "damaged"),
        ("nodes_modes", [b"BRANCH_ABOUT"], "BRANCH_ABOUT"),
        ("target_ids", [7], "result that there is not"),
        ("target_nodeids", [77], "damaged"),
        ("target_weights", [float("inf")], "not finite"),
        ("n_targets", 1 << 40, "results"),
        ("aggregate_function", b"MIN", "only sums and averages"),
        ("post_transform", b"PROBIT", "post_transform=PROBIT"),
        ("base_values", [1.0, 2.0, 3.0], "base values"),
    ],
)
def test_hostile_ensembles_are_refused(name: str, value: Any, what: str, tmp_path: Path) -> None:
    node = older(np.random.default_rng(1), "TreeEnsembleRegressor", 1, MODES[:1], n_targets=1)
    kept = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    changed = [*value, *kept.get(name, [])[len(value) :]] if isinstance(value, list) else value
    del node.attribute[:]
    node.attribute.extend(helper.make_attribute(key, each) for key, each in {**kept, name: changed}.items())
    onnx.save(graph(node, 3, ["y"]), tmp_path / "model.onnx")
    with pytest.raises((MisuseError, UnsupportedError), match=what):
        compile_model(tmp_path / "model.onnx", tmp_path / "model.tacit")
