"""Tables beside other systems: ours is measured, theirs is as it was typed."""

from pathlib import Path

import pytest
from tacit_lab.reproduce import peers as tables


def test_operations_are_measured_beside_each_of_the_others(monkeypatch):
    few = [operator for operator in tables.OPERATORS if operator.name in {"argmax of 10", "extend 8 to 16"}]
    monkeypatch.setattr(tables, "OPERATORS", few)
    content = tables.operators(False, Path())
    rows = {row["name"]: row for row in content["rows"]}
    assert list(rows) == [
        "argmax of 10, beside SPU",
        "extend 8 to 16, each, beside OpenCheetah",
        "extend 8 to 16, each, beside SCI",
    ]
    argmax, cheetah, sci = rows.values()
    assert (argmax["paper"], argmax["unit"]) == (0.006, "MB")
    assert 0 < argmax["ours"] < argmax["paper"]
    assert (cheetah["paper"], sci["paper"], sci["unit"]) == (10.6, 119, "B")
    assert 5 < cheetah["ours"] == sci["ours"] < 10.6
    assert [entry["name"] for entry in content["measured"]] == ["argmax of 10", "extend 8 to 16"]
    assert content["measured"][0]["SPU_seconds"] == 0.06


def test_networks_are_measured_cold_and_warm(monkeypatch):
    monkeypatch.setattr(tables, "QUICK", tables.QUICK[:1])
    content = tables.networks(False, Path())
    megabytes = {row["name"]: row for row in content["rows"] if row["unit"] == "MB"}
    cold, warm = (megabytes[f"MiniONN's network, MNIST, {kind}, beside SPU"] for kind in ("cold", "warm"))
    assert (cold["paper"], warm["paper"]) == (26.4, 4.06)
    assert 0.3 < warm["ours"] < cold["ours"] < 1
    assert all(row["ours"] > 0 for row in content["rows"] if row["unit"] == "s")


def test_every_operator_has_somebody_beside_it():
    assert all(operator.others for operator in tables.OPERATORS)
    assert len({operator.name for operator in tables.OPERATORS}) == len(tables.OPERATORS)
    sizes = [other.size for operator in tables.OPERATORS for other in operator.others]
    assert min(sizes) == 0.006
    assert max(sizes) == 1099
    assert tables.spent(
        {"phases": {"offline": {"bytes": {"a": 1, "b": 2}, "seconds": 0.5}, "setup": {}}}, ("offline",)
    ) == pytest.approx((3, 0.5))
