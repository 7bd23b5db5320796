"""Decision trees from the command line: compiled, simulated and run by two processes."""

import json
from pathlib import Path

import numpy as np
import pytest
from tacit import Client, MisuseError, Model
from tacit.compiler.trees import compile_ensemble
from tacit.session.pair import Pair
from tacit_lab.reproduce.forests import Forest, grow

GOLDEN = Path(__file__).parents[1] / "golden"
TREES = Path(__file__).parents[1] / "data" / "trees"


def test_a_model_of_xgboost_runs_privately(tacit, tmp_path: Path) -> None:
    model, rows = tmp_path / "fraud.tacit", tmp_path / "rows.csv"
    stored = json.loads((GOLDEN / "xgboost_small_margins.json").read_text())
    x, margins = np.asarray(stored["rows"], np.uint32).view(np.float32), np.asarray(stored["margins"])
    names = json.loads((GOLDEN / "xgboost_small.json").read_text())["learner"]["feature_names"]
    order = list(reversed(range(len(names))))
    lines = [",".join(["note", *(names[at] for at in order)])]
    # Nine digits tell all numbers of 32 bits apart.
    lines += [",".join(["x", *("" if np.isnan(row[at]) else f"{row[at]:.9g}" for at in order)]) for row in x]
    rows.write_text("\n".join(lines) + "\n")
    assert tacit("compile", GOLDEN / "xgboost_small.json", "-o", model).code == 0
    simulated = tacit("simulate", model, rows, "--json").json
    run = tacit("run", model, rows, "--batch", 32, "--json").json
    planned = tacit("plan", model, "--batch", 32, "--json").json
    assert run["logits"] == simulated["logits"]
    assert run["clipped"] == simulated["clipped"] == 0
    scores = np.asarray(run["logits"])[:, 0] * run["output_scale"]
    assert np.abs(scores - margins).max() < 13 * run["output_scale"] / 2 + 1e-5
    runs = -(-len(x) // 32)
    trees = [next(row for row in report["layers"] if row["name"] == "trees") for report in (run, planned)]
    sent = [sum(row["bytes"].values()) for row in trees]
    assert sent[0] == runs * sent[1]
    # A run may begin with the message of the party that ended the one before.
    assert runs * (trees[1]["rounds"] - 1) < trees[0]["rounds"] <= runs * trees[1]["rounds"]


@pytest.mark.parametrize("name", ["xgboost-sets", "lightgbm-binary", "catboost-multiclass"])
def test_models_of_other_libraries_run_privately(tacit, name: str, tmp_path: Path) -> None:
    stored = json.loads((TREES / f"{name}.expected.json").read_text())
    rows = np.asarray(stored["rows"], np.uint32).view(np.float32)[-12:]
    model, table = tmp_path / "model.tacit", tmp_path / "rows.npy"
    np.save(table, rows)
    assert tacit("compile", TREES / stored["model"], "-o", model).code == 0
    simulated = tacit("simulate", model, table, "--json").json
    run = tacit("run", model, table, "--batch", 12, "--json").json
    assert run["logits"] == simulated["logits"]
    assert (run["max_error"], run["equal_outputs"]) == (0, len(rows))
    sizes = [(part["bytes"], part["rounds"]) for part in (run, run["predicted"])]
    assert sizes[0] == sizes[1]
    assert run["estimates"] == simulated["estimates"] if "link" in simulated else "estimates" not in run
    scores = np.asarray(run["logits"]) * run["output_scale"]
    assert np.abs(scores - np.asarray(stored["margins"])[-12:]).max() < 20 * run["output_scale"] + 1e-5
    if "link" in run:
        assert np.abs(np.asarray(run["estimates"]) - np.asarray(stored["estimates"])[-12:]).max() < 1e-5


def test_clients_say_that_values_may_be_missing(tacit, tmp_path: Path) -> None:
    assert tacit("compile", GOLDEN / "xgboost_small.json", "-o", tmp_path / "x.tacit").code == 0
    model = Model(tmp_path / "x.tacit")
    rows = np.full((1, *model.input_shape), np.nan, np.float32)
    with Pair(model).server() as server:
        with pytest.raises(MisuseError, match="NaN"):
            Client(server.address, pin=server.pin, keep_keys=False).predict(rows)
        found = Client(server.address, pin=server.pin, missing=True, keep_keys=False).predict(rows)
        server.final_report(60)
    np.testing.assert_array_equal(found.outputs, model.simulate(rows))


def test_clients_may_learn_the_bucket_or_the_sign_of_a_score_alone(tacit, tmp_path: Path) -> None:
    model, rows = tmp_path / "fraud.tacit", tmp_path / "rows.npy"
    stored = json.loads((GOLDEN / "xgboost_small_margins.json").read_text())
    np.save(rows, np.asarray(stored["rows"], np.uint32).view(np.float32)[:40])
    assert tacit("compile", GOLDEN / "xgboost_small.json", "-o", model).code == 0
    simulated = tacit("simulate", model, rows, "--json").json
    compiled = Model(model)
    scores = np.asarray(simulated["logits"])[:, 0]
    edges = [float(np.quantile(scores, part)) * compiled.output_scale for part in (0.3, 0.8)]
    reveal = f"bucket:{edges[0]},{edges[1]}"
    run = tacit("run", model, rows, "--batch", 16, "--reveal", reveal, "--json").json
    expected = (scores[:, None] * compiled.output_scale >= np.asarray(edges)).sum(axis=1)
    assert set(expected) == {0, 1, 2}
    assert run["output"] == expected.tolist() and run["agreement"] == 1.0 and run["logits"] is None
    assert str(edges[0]) not in json.dumps(run["plan"])
    planned = tacit("plan", model, "--batch", 16, "--reveal", reveal, "--json").json
    bands = [next(row for row in report["layers"] if row["name"] == "bands") for report in (run, planned)]
    assert sum(bands[0]["bytes"].values()) == 3 * sum(bands[1]["bytes"].values())
    label = tacit("run", model, rows, "--reveal", "label", "--json").json
    assert label["output"] == (scores > 0).astype(int).tolist() and label["agreement"] == 1.0
    shown = tacit("run", model, rows, "--reveal", reveal)
    assert shown.code == 0 and "bucket 2 of 0 to 2" in shown.out


@pytest.mark.parametrize("network", [None, "wan"])
def test_deep_trees_are_walked_through_in_private(tmp_path: Path, network: str | None) -> None:
    (tmp_path / "source").write_text("deep")
    rows = np.random.default_rng(2).normal(size=(6, 5)).astype(np.float32)
    rows[1, 2], rows[2, 3] = np.nan, np.inf
    sent = []
    for tests in (401, 403):
        compile_ensemble(grow(Forest(8, tests, 5, 24), "deep"), tmp_path / "source", tmp_path / "x.tacit", None)
        run = Pair(Model(tmp_path / "x.tacit"), network=network, batch=4).run(rows, None)
        assert run.report["max_error"] == 0
        assert "walks of 12 steps" in str(run.report["layers"])
        sent.append(run.report["bytes"])
    # Two ensembles of one padded class.
    assert sent[0] == sent[1]
