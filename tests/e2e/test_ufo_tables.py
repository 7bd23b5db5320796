"""UFO's tables: what is printed keeps what the project promises."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from tacit.demo.digits import asset
from tacit.session.pair import Pair
from tacit_lab.reproduce import ufo as tables

UFO_AT_MOST = 0.6


def test_convolutions_stay_below_the_papers(monkeypatch):
    monkeypatch.setattr(tables, "TABLE_4", tables.TABLE_4[1:2])
    content = tables.table_4(False, Path())
    ours = {row["name"]: row["ours"] for row in content["rows"]}
    paper = {row["name"]: row["paper"] for row in content["rows"]}
    for bits in tables.WIDTHS:
        name = f"16x16, 32 to 64, W2A{bits}"
        assert ours[f"{name}, UFO"] <= UFO_AT_MOST * paper[f"{name}, UFO"]
        assert ours[f"{name}, SiRNN at these widths"] > 1.8 * ours[f"{name}, UFO"]
    assert "16x16" in content["note"]


def test_simplified_residuals_save_what_the_paper_says(monkeypatch):
    monkeypatch.setitem(tables.ADDED, "ResNet-20", 20000)
    (row,) = tables.figure_13(False, Path())["rows"]
    assert row["ours"] >= 2.7


def test_the_trained_network_is_cheap_and_private_runs_equal_the_integers():
    random = np.random.default_rng(1)
    x = random.normal(size=(1, 3, 32, 32)).astype(np.float32)
    with tables.compiled(asset(tables.TRAINED)) as model:
        total, online = tables.planned(model)
        assert online < 0.01 < total <= 0.16
        assert Pair(model, threads=1).run(x, None).report["max_error"] == 0
    content = tables.figure_18(False, Path())
    assert len(content["rows"]) == 19
    assert 2.5 <= content["measured"][0]["bits"] < 3.5


def test_plans_are_split_at_the_sums_of_blocks():
    plan = {"layers": [{"name": name, "bytes": {"a": 1_000_000}} for name in ("stem", "b.few", "c", "other")]}
    assert tables.blocks(plan, [["stem"], ["b", "c"]]) == [1.0, 2.0]


def test_every_step_adds_a_pass():
    steps = tables.steps()
    assert steps[0] == tables.PASSES and steps[-1] == ()
    assert all(after == before[1:] for before, after in pairwise(steps))
