"""How results of rows are shown and written, and what `evaluate` says of estimates in tables."""

import csv
import io
from typing import ClassVar

import numpy as np
import pytest
from rich.console import Console
from tacit.cli.rows import RowOptions
from tacit.data.inputs import Inputs
from tacit.data.links import Link
from tacit.data.schema import Result, usual
from tacit.errors import MisuseError
from tacit.measure.tables import Columns, classes_of, measured
from tacit.report import terminal

SCORES = np.array([[2.0], [-1.0], [0.01], [0.5]])
GIVEN = Inputs(np.zeros((4, 2), np.float32), None, [], None, {"id": ["a", "b", "c", "d"]})
MARGIN = Result("margin", ("no", "yes"), 0.1, Link("sigmoid"))
NONE = np.zeros(4, np.int64)


def lines(results, path):
    results.write(path)
    with path.open(newline="") as file:
        return list(csv.reader(file))


def test_margins_have_probabilities_and_labels(tmp_path):
    found = RowOptions("id").results(GIVEN, SCORES, NONE, MARGIN, [])
    written = lines(found, tmp_path / "x.csv")
    assert written[0] == ["id", "score", "probability", "label"]
    assert [row[3] for row in written[1:]] == ["yes", "no", "undecided", "yes"]
    assert float(written[1][2]) == pytest.approx(1 / (1 + np.exp(-2)))
    assert found.fields() == {
        "error_bound": 0.1,
        "label": ["yes", "no", None, "yes"],
        "undecided": 1,
        "ids": ["a", "b", "c", "d"],
    }
    with pytest.raises(MisuseError, match="--id name names a column"):
        RowOptions("name").results(GIVEN, SCORES, NONE, MARGIN, [])


def test_scores_of_classes_and_estimates_have_names(tmp_path):
    three = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    given = Inputs(np.zeros((2, 2), np.float32), None, [])
    meaning = Result("scores", ("x", "y", "z"), link=Link("softmax"))
    written = lines(RowOptions().results(given, three, NONE[:2], meaning, []), tmp_path / "x.csv")
    assert written[0] == [
        "row",
        *(f"score_{name}" for name in "xyz"),
        *(f"probability_{name}" for name in "xyz"),
        "label",
    ]
    assert [row[-1] for row in written[1:]] == ["x", "z"]
    written = lines(RowOptions().results(given, three[:, :1], NONE[:2], Result(), []), tmp_path / "x.csv")
    assert written == [["row", "value"], ["1", "1"], ["2", "0"]]
    written = lines(
        RowOptions().results(given, three[:, :1], NONE[:2], usual(1, (), Link("exp")), []), tmp_path / "x.csv"
    )
    assert written[0] == ["row", "value", "estimate"]


def test_closed_results_have_labels_alone(tmp_path):
    found = RowOptions().results(GIVEN, None, np.array([0, 1, 1, 0]), MARGIN, [])
    assert lines(found, tmp_path / "x.csv")[1:] == [["1", "no"], ["2", "yes"], ["3", "yes"], ["4", "no"]]
    buckets = RowOptions().results(GIVEN, None, np.array([0, 2, 1, 0]), MARGIN, ["low", "middle", "high"])
    assert buckets.labels == ["low", "high", "middle", "low"]


def test_many_rows_are_summed_up(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "console", Console(file=shown, width=100))
    scores = np.linspace(-1, 1, 1001)[:, None]
    given = Inputs(np.zeros((1001, 2), np.float32), None, [])
    RowOptions().results(given, scores, np.zeros(1001, np.int64), MARGIN, []).show()
    text = shown.getvalue()
    assert "1,001 rows; the first 10 are shown" in text
    undecided = int((np.abs(scores) < 0.1).sum())
    assert f"undecided {undecided}" in text
    assert f"no {int((scores <= -0.1).sum())}" in text
    assert "scores: -1 to 1, median 0" in text
    assert "scores are within 0.1 of the model's" in text
    assert text.count("\n") < 24


class Known:
    """A model that estimates a number."""

    schema = None
    description: ClassVar = {"labels": []}
    link = None


def test_estimates_are_measured_in_their_units():
    values, kept = np.array([[1.0], [2.0], [4.0]]), {"truth": ["1", "2", "3"], "library": ["1.5", "2", "4"]}
    found = measured(Known(), values, kept, Columns("truth", "library"))
    assert found["label_mae"] == pytest.approx(1 / 3)
    assert found["label_rmse"] == pytest.approx(np.sqrt(1 / 3))
    assert found["label_r2"] == pytest.approx(0.5)
    assert found["expected_error"] == 0.5


def test_classes_are_named_numbered_or_true_and_false():
    assert classes_of(["good", "bad"], ("bad", "good"), 1, "here").tolist() == [1, 0]
    assert classes_of(["1.0", "0"], ("0", "1"), 1, "here").tolist() == [1, 0]
    assert classes_of([True, False], ("0", "1"), 1, "here").tolist() == [1, 0]
    assert classes_of(["2", "0"], (), 3, "here").tolist() == [2, 0]
    with pytest.raises(MisuseError, match="here, row 2 holds no class of the model; classes are 0 to 1"):
        classes_of(["1", "2"], (), 1, "here")
