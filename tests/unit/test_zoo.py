"""The model zoo's list, its page, and what happens where packages are missing; nothing here needs them."""

import json

import numpy as np
import pytest
from conftest import ROOT
from networks import Network
from tacit_lab.zoo.entry import Entry
from tacit_lab.zoo.measure import measure
from tacit_lab.zoo.page import page
from tacit_lab.zoo.registry import ENTRIES

NUMBERS = ROOT / "bench/results/zoo.json"


def small(path):
    """A model that needs no package."""
    network = Network(("N", 3, 4, 4)).conv((4, 3, 3, 3), pads=[1, 1, 1, 1]).add("Relu").add("GlobalAveragePool")
    assert network.save(path.parent) == path


def test_names_are_unique():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)


def test_a_missing_package_is_said(tmp_path):
    def make(_):
        raise ImportError("no module", name="torch")

    row = measure(Entry("none", "vision", "nowhere", "MIT", make), tmp_path)
    assert "torch is missing" in row["skipped"]


def test_a_model_is_measured(tmp_path):
    entry = Entry("small", "vision", "here", "MIT", small)
    row = measure(entry, tmp_path)
    assert row["relative_rmse"] < 0.1
    assert row["bytes"] > 0
    assert np.load(tmp_path / "small.npz")["x"].shape[1:] == (3, 4, 4)
    document = {"machine": {"processor": "any"}, "models": [row, row | {"name": "bad", "error": "no"}]}
    document["models"][1].pop("bytes")
    shown = page(document)
    assert "| small | here, MIT |" in shown
    assert "| bad | no |" in shown
    assert "tacit compile build/zoo/small.onnx" in shown


@pytest.mark.skipif(not NUMBERS.exists(), reason="the zoo was never measured: `make models`")
def test_the_page_is_of_the_numbers():
    document = json.loads(NUMBERS.read_text(encoding="utf-8"))
    assert (ROOT / "docs/zoo.md").read_text(encoding="utf-8") == page(document)
