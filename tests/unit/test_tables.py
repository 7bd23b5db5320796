"""Rows of files: cells of all kinds become numbers a column at a time."""

import numpy as np
import pytest
from tacit.data import tables
from tacit.data.cells import numbers, texts
from tacit.data.examples import load_one
from tacit.data.schema import Column, Feature, Schema
from tacit.data.wanted import Wanted
from tacit.errors import MisuseError

MIXED = Schema(
    (Column("amount"), Column("city", ("Oslo", "Rome", None), True), Column("year", (2024.0, 2025.0))),
    (
        Feature("filled", 0),
        Feature("missing", 0),
        Feature("lookup", 1, (1.0, 0.0, 0.0, 0.0)),
        Feature("lookup", 1, (0.0, 0.0, 1.0, 0.0)),
        Feature("lookup", 2, (10.0, 20.0, 0.0)),
    ),
)


def test_cells_are_numbers_booleans_and_missing_values():
    given = ["1", " 2.5 ", "-1e3", "", "NA", "nan", "None", "?", "true", "False", "TRUE", " null "]
    wanted = [1, 2.5, -1000, *[np.nan] * 5, 1, 0, 1, np.nan]
    np.testing.assert_array_equal(numbers(given, "here"), wanted)
    np.testing.assert_array_equal(numbers([None, True, 2, np.float32(0.5)], "here"), [np.nan, 1, 2, 0.5])
    np.testing.assert_array_equal(numbers(np.array([True, False]), "here"), [1, 0])
    with pytest.raises(MisuseError, match="here, row 12 holds what is no number; encode categories first"):
        numbers(["1", "NA", "Oslo"], "here", 10)
    assert texts(np.array(["a", None, float("nan"), 3], object), True) == ["a", None, None, "3"]


def test_rows_are_encoded_by_a_schema(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("year,more,city,amount\n2025,x,Oslo,7\n2024.0,y,,NA\n2024,z,Bern,-1\n")
    rows = tables.load(path, MIXED, ["more"])
    np.testing.assert_array_equal(rows.x, [[7, 0, 1, 0, 20], [0, 1, 0, 1, 10], [-1, 0, 0, 0, 10]])
    assert rows.kept == {"more": ["x", "y", "z"]}
    assert rows.extra == ()
    path.write_text("year,city,amount\n2026,Oslo,7\n")
    with pytest.raises(
        MisuseError, match="column `year`, row 1 holds a category that the model's encoder does not know"
    ):
        tables.load(path, MIXED)
    with pytest.raises(MisuseError, match="has no column `id`"):
        tables.load(path, MIXED, ["id"])


def test_numbers_alone_are_read_the_same_way(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 5)).astype(np.float32)
    path = tmp_path / "rows.csv"
    names = ["e", "d", "c", "b", "a"]
    path.write_text("\n".join([",".join(names), *(",".join(f"{value:.9g}" for value in row) for row in x)]) + "\n")
    fast = tables.read(path, sorted(names))
    np.testing.assert_array_equal(fast, x[:, ::-1])
    monkeypatch.setattr(tables, "split", lambda *_: None)
    monkeypatch.setattr(tables, "ROWS", 7)
    np.testing.assert_array_equal(tables.read(path, sorted(names)), fast)
    np.testing.assert_array_equal(tables.read(path), x)


def test_lines_with_quotes_words_and_empty_cells_are_read_alike(tmp_path):
    path = tmp_path / "rows.csv"
    lines = ["amount,more,city,year", *["1,x,Oslo,2024"] * 5000, ",,,2025", "NA,y,Rome,2024", '7,"a,b","Oslo",2024']
    path.write_text("\r\n".join([*lines, '8,"two\nlines",Rome,2025', "", "9,z,Rome,2024"]) + "\r\n")
    rows = tables.load(path, MIXED, ["more"])
    assert rows.x.shape == (5005, 5)
    wanted = [[0, 1, 0, 1, 20], [0, 1, 0, 0, 10], [7, 0, 1, 0, 10], [8, 0, 0, 0, 20], [9, 0, 0, 0, 10]]
    np.testing.assert_array_equal(rows.x[5000:], wanted)
    assert rows.kept["more"][4999:] == ["x", "", "y", "a,b", "two\nlines", "z"]


def test_errors_name_the_place_and_never_the_value(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1,2\n" * 4999 + "1,secret\n")
    with pytest.raises(MisuseError, match="column `b`, row 5000 holds what is no number") as raised:
        tables.read(path, ["a", "b"])
    assert "secret" not in str(raised.value)
    path.write_text("a,b\n" + "1,2\n" * 5000 + "1\n")
    with pytest.raises(MisuseError, match="row 5001 has 1 values, not 2"):
        tables.read(path, ["a", "b"])
    path.write_text("a,b\n1,\n")
    with pytest.raises(MisuseError, match="row 1, column `b` is missing or infinite"):
        load_one(path, Wanted((2,), columns=["a", "b"]))
    path.write_text("1,2,3\n")
    with pytest.raises(MisuseError, match="rows of 3 values without names; the model has 2 columns"):
        tables.read(path, ["a", "b"])
    path.write_bytes(b"a,b\n\xff\xfe,1\n")
    with pytest.raises(MisuseError, match=r"no readable \.csv file"):
        tables.read(path, ["a", "b"])


def test_arrays_of_columns_are_encoded_too(tmp_path):
    schema = Schema((Column("a"), Column("b")), (Feature("filled", 1), Feature("missing", 1), Feature("value", 0)))
    np.savez(tmp_path / "rows.npz", x=np.float32([[1, np.nan], [2, 3]]), y=np.array([0, 1]))
    found = load_one(tmp_path / "rows.npz", Wanted((3,), schema=schema))
    np.testing.assert_array_equal(found.x, [[0, 1, 1], [3, 0, 2]])
    assert found.y.tolist() == [0, 1]
