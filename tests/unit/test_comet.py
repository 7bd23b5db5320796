"""Encoders in the clear with approximate inverse square roots, and the starts of these."""

import json

import numpy as np
import pytest
from encoders import LAYERS, tokens, weights, write
from tacit.compiler.float_model import FloatModel
from tacit.errors import MisuseError
from tacit.importers.onnx import import_onnx
from tacit_lab.comet.accuracy import KINDS, measure
from tacit_lab.comet.clear import Clear
from tacit_lab.comet.starts import Root, affine, branches, exact, flooding, line, line_error, unflooded
from tacit_lab.reproduce import tables

SEQUENCE = 12
UNIFIED = {
    "hidden_act": "smu",
    "smu": [[0.0, 1.0], [0.1, 0.5]],
    "attention": "relu-softmax",
    "relu_softmax": [[1.0, 0.1], [0.5, 0.1]],
}
ACTIVATION = {name: UNIFIED[name] for name in ("hidden_act", "smu")}
ATTENTION = {name: UNIFIED[name] for name in ("attention", "relu_softmax")}
CLASSIFIER = {"architectures": ["BertForSequenceClassification"]}
NAMES = list(enumerate(("man", "woman", "dog", "cat", "fish", "ball")))


def relative(z, y):
    return np.abs(y * np.sqrt(z) - 1).max()


@pytest.mark.parametrize("ratio", [2.0, 16.0, 64.0])
def test_the_line_errs_as_much_at_both_ends_as_between(ratio):
    a, b = line(ratio)
    z = np.linspace(1, ratio, 4001)
    errors = (a - b * z) * np.sqrt(z) - 1
    assert errors[0] == pytest.approx(errors[-1]) == pytest.approx(-errors.max(), rel=1e-4)
    constant = (np.sqrt(ratio) - 1) / (np.sqrt(ratio) + 1)
    assert errors.max() < constant


def test_branches_keep_newton_where_it_converges():
    bounds = (0.3, 3000.0)
    z = np.geomspace(*bounds, 2000).astype(np.float32)
    assert branches(bounds) == 3
    errors = [relative(z, Root(affine, count, line_error)(z, bounds)) for count in range(5)]
    assert errors == sorted(errors, reverse=True)
    assert errors[4] < 2**-8
    full = np.geomspace(1, 64, 2000).astype(np.float32)
    assert relative(full, Root(affine, 4, line_error)(full, (1.0, 64.0))) < 2**-8
    assert relative(full, Root(affine, 4)(full, (1.0, 64.0))) > 2**-6
    outside = np.array([0.01, 1e5], np.float32)
    np.testing.assert_allclose(Root(affine, 4, line_error)(outside, bounds), exact(np.array(bounds), bounds), rtol=0.01)


def test_flooding_gives_a_constant():
    z = np.geomspace(1, 64, 500).astype(np.float32)
    guesses = flooding(1)(z, (1.0, 64.0))
    assert guesses.std() / guesses.mean() < 2e-3
    assert guesses.mean() == pytest.approx(8**-0.5, rel=0.1)
    assert relative(z, Root(flooding(1), 4)(z, (1.0, 64.0))) > 10 * relative(
        z, Root(affine, 4, line_error)(z, (1.0, 64.0))
    )


def test_shares_of_other_sizes_give_any_guess():
    z = np.full(500, 4.0, np.float32)
    guesses = unflooded(1)(z, (1.0, 64.0))
    assert guesses.max() / guesses.min() > 3


def test_exact_roots_compute_the_model(tmp_path):
    folder = write(tmp_path / "unified", pooling="mean_tokens", **UNIFIED)
    x = tokens(3, SEQUENCE)
    run = Clear(import_onnx(folder, SEQUENCE))
    outputs = run(x)
    np.testing.assert_allclose(outputs, FloatModel(folder, (), SEQUENCE)(x), atol=1e-3)
    assert len(run.bounds) == 1 + 5 * LAYERS
    assert all(0 < low <= high for low, high in run.bounds.values())
    errors = [np.abs(run.learned(Root(affine, count))(x) - outputs).max() for count in (0, 4, 6)]
    assert errors[0] > 1 > errors[1]
    assert errors[2] < 0.02


def test_tables_need_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MisuseError, match="run this in the repository"):
        tables.reproduce("comet-table1", False, tmp_path)
    with pytest.raises(MisuseError, match="make train-glue"):
        tables.reproduce("comet-table1", True, tmp_path)


def write_texts(data, name):
    (data / "glue").mkdir(exist_ok=True)
    rows = ["sentence1\tsentence2\tlabel", *(f"the cat sees a dog\ta {word} plays\t{i % 2}" for i, word in NAMES)]
    for part in ("train", "dev"):
        (data / "glue" / f"{name}_{part}.tsv").write_text("\n".join(rows) + "\n")


def test_tables_of_committed_and_of_new_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored = weights(LAYERS, labels=2)
    for name, config in (("mrpc", {}), ("mrpc-unified", UNIFIED)):
        write(tmp_path / "build" / "glue" / name, stored=stored, **CLASSIFIER, **config)
    write_texts(tmp_path, "mrpc")
    content = tables.reproduce("comet-table2", True, tmp_path)
    assert [row["paper"] for row in content["rows"]] == [81.58, 86.9, 88.6]
    assert all(0 <= row["ours"] <= 100 for row in content["rows"])
    results = tmp_path / "bench" / "results" / "papers"
    results.mkdir(parents=True)
    task = {"measure": "f1", "original": 0.9, "unified": 0.8}
    (results / "comet-glue.json").write_text(json.dumps({"tasks": {"mrpc": task}}))
    ours = [row["ours"] for row in tables.reproduce("comet-table1", False, tmp_path)["rows"]]
    assert ours == [90, 80, -10]


def test_models_of_one_unified_function_have_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored, models = weights(LAYERS, labels=2), tmp_path / "build" / "glue"
    kinds = {"": {}, "-unified": UNIFIED, "-activation": ACTIVATION, "-attention": ATTENTION}
    for end, config in kinds.items():
        write(models / f"mrpc{end}", stored=stored, **CLASSIFIER, **config)
    write_texts(tmp_path, "mrpc")
    found = measure("mrpc", models, tmp_path, None, ())
    assert [kind for kind in found if kind in KINDS] == list(KINDS)
    content = tables.reproduce("comet-table1", True, tmp_path)
    assert [row["name"] for row in content["rows"]] == [
        "MRPC (f1), GELU and softmax",
        "MRPC (f1), unified GELU, softmax",
        "MRPC (f1), GELU, unified softmax",
        "MRPC (f1), unified",
        "MRPC (f1), difference",
    ]
    assert [row["paper"] for row in content["rows"][:4]] == [88.97, 86.7, 86.3, 88.6]
    assert [row["ours"] for row in content["rows"][:4]] == [round(100 * found[kind], 4) for kind in KINDS]
    papers = [row["paper"] for row in tables.reproduce("comet-table5", True, tmp_path)["rows"][:4]]
    assert papers == [88.97, 86.7, 87.1, 89.5]
