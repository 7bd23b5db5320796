"""Rows of tables from the command line: pipelines and trees, by names of columns, with results and metrics."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import recorded
from tacit import Client, Model
from tacit import compile as compile_object
from tacit.data import tables
from tacit.data.cells import is_missing
from tacit.errors import MisuseError
from tacit.session.pair import Pair

GOLDEN = Path(__file__).parents[1] / "golden"


def write(path, columns):
    """A .csv file of columns by their names; missing values are empty."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        cells = (["" if is_missing(value) else value for value in column] for column in columns.values())
        writer.writerows(zip(*cells, strict=True))
    return path


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A folder with a logistic regression behind a pipeline, X.schema, rows, and what the library says of them."""
    folder = tmp_path_factory.mktemp("scored")
    said = recorded.read("logistic")
    compile_object(said["model"], said["examples"], output=folder / "x.tacit")
    ids = [f"row {at}" for at in range(60)]
    beside = {"id": ids, "truth": said["predicted"], "library": said["scores"]}
    write(folder / "rows.csv", dict(reversed({**said["rows"], **beside}.items())))
    return folder, said


def test_rows_are_scored_privately_and_written_by_their_ids(tacit, scored, tmp_path):
    folder, said = scored
    arguments = ("run", folder / "x.tacit", folder / "rows.csv", "--batch", 60, "--id", "id")
    done = tacit(*arguments, "--output", tmp_path / "out.csv", "--json")
    assert "left out columns that the model does not read: library, truth" in done.err
    run = done.json
    assert run["ids"][:2] == ["row 0", "row 1"]
    assert run["undecided"] == run["label"].count(None)
    assert run["max_error"] == 0
    with (tmp_path / "out.csv").open() as file:
        lines = list(csv.DictReader(file))
    scores = np.array([float(line["score"]) for line in lines])
    assert list(lines[0]) == ["id", "score", "probability", "label"]
    assert np.abs(scores - said["scores"]).max() <= run["error_bound"]
    assert [line["label"] for line in lines] == [label or "undecided" for label in run["label"]]
    assert float(lines[3]["probability"]) == pytest.approx(1 / (1 + np.exp(-scores[3])), rel=1e-6)
    shown = tacit("simulate", folder / "x.tacit", folder / "rows.csv").out
    assert "60 rows; the first 10 are shown" in shown
    assert "labels: " in shown
    assert "scores are within" in shown


def test_clients_read_tables_by_the_schema(tacit, scored, tmp_path):
    folder, said = scored
    model = Model(folder / "x.tacit")
    with Pair(model, batch=60).server() as server:
        arguments = ("--server", server.address, "--pin", server.pin, "--schema", folder / "x.schema", "--json")
        found = tacit("predict", *arguments, folder / "rows.csv", "--output", tmp_path / "out.csv").json
    assert found["logits"] == model.simulate(said["rows"]).tolist()
    assert [label in (None, wanted) for label, wanted in zip(found["label"], said["predicted"], strict=True)] == [
        True
    ] * 60
    with Pair(model, batch=60).server() as server:
        client = Client(server.address, pin=server.pin, keep_keys=False, schema=folder / "x.schema")
        np.testing.assert_array_equal(client.predict(said["rows"]).outputs, model.simulate(said["rows"]))


def test_metrics_of_a_table(tacit, scored):
    folder, said = scored
    arguments = ("evaluate", folder / "x.tacit", folder / "rows.csv", "--target", "truth", "--expected", "library")
    found = tacit(*arguments, "--json").json
    assert found["accuracy"] == found["top1"] == found["auc"] == found["expected_agreement"] == 1.0
    assert found["expected_error"] <= found["error_bound"]
    assert 0 < found["log_loss"] < 1
    private = tacit(*arguments, "--mode", "private", "--batch", 60, "--json").json
    assert private["auc"] == 1.0
    said = tacit(*arguments).out
    for line in ("area under the ROC curve: 1.0000", "Kolmogorov-Smirnov statistic: 1.0000", "log loss: "):
        assert line in said
    wrong = tacit("evaluate", folder / "x.tacit", folder / "rows.csv", "--target", "age")
    assert wrong.code == 1
    assert "column `age`, row 1 holds no class of the model; classes are bad, good" in wrong.err


def test_trees_take_tables_by_the_same_rules(tacit, tmp_path):
    made = tacit("compile", GOLDEN / "xgboost_small.json", "-o", tmp_path / "x.tacit")
    assert "clients read tables with it" in made.out
    stored = json.loads((GOLDEN / "xgboost_small_margins.json").read_text())
    x, margins = np.asarray(stored["rows"], np.uint32).view(np.float32), np.asarray(stored["margins"])
    names = Model(tmp_path / "x.tacit").columns
    columns = {name: [float(value) for value in x[:, at]] for at, name in enumerate(names)}
    rows = write(tmp_path / "rows.csv", {"score": margins.tolist(), **columns, "y": (margins > 0).tolist()})
    found = tacit("evaluate", tmp_path / "x.tacit", rows, "--target", "y", "--expected", "score", "--json").json
    assert found["auc"] == 1.0
    assert found["undecided"] == 0
    assert found["expected_error"] <= found["error_bound"]
    del columns["debt"], columns["age"]
    lacking = tacit("simulate", tmp_path / "x.tacit", write(tmp_path / "few.csv", columns))
    assert "lacks 2 of the model's columns: age, debt" in lacking.err


def test_parquet_needs_its_package(tmp_path, monkeypatch):
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MisuseError, match=r"need pyarrow, which is not installed; run pip install 'tacit\[tables\]'"):
        tables.load(tmp_path / "rows.parquet")


def test_parquet_is_read_as_csv_is(tmp_path, scored):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    folder, said = scored
    rows = {name: [None if is_missing(value) else value for value in values] for name, values in said["rows"].items()}
    table = arrow.table({**rows, "more": [True] * 60})
    table = table.set_column(3, "city", table["city"].dictionary_encode())
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=7)
    schema = Model(folder / "x.tacit").schema
    found = tables.load(tmp_path / "rows.parquet", schema, ["more"])
    np.testing.assert_array_equal(found.x, tables.load(folder / "rows.csv", schema).x)
    assert found.kept == {"more": [True] * 60}
    (tmp_path / "damaged.parquet").write_bytes((tmp_path / "rows.parquet").read_bytes()[:-50])
    with pytest.raises(MisuseError, match=r"no readable .parquet file"):
        tables.load(tmp_path / "damaged.parquet", schema)
