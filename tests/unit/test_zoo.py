"""The model zoo's list, its page, and what happens where packages are missing; nothing here needs them."""

import json

import numpy as np
import pytest
from conftest import ROOT
from networks import Network
from tacit.compiler.compiler import Options
from tacit.errors import UnsupportedError
from tacit_lab.zoo import measure as measured
from tacit_lab.zoo.entry import Entry, above, largest, largest_last
from tacit_lab.zoo.measure import AGREE, NEAR, measure
from tacit_lab.zoo.page import page
from tacit_lab.zoo.registry import ENTRIES

NUMBERS = ROOT / "bench/results/zoo.json"
LEAST = 60
"""Rows of the page that have numbers."""
CHANCE = 0.005
"""The share of labels that stochastic rounding may cost, or one label where that is more."""


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


def test_a_width_that_does_not_fit_is_one_bit_less(tmp_path, monkeypatch):
    def of_width(_entry, _path, options, _data):
        if options.activation_bits in (8, 12):
            raise UnsupportedError("needs a width of 50 bits")
        return {"bits": options.activation_bits}

    monkeypatch.setattr(measured, "at_widths", of_width)
    found = [measured.tried(None, tmp_path, Options(), bits, None) for bits in (8, 10, 12)]
    assert [row["bits"] for row in found] == [7, 10, 11]


@pytest.mark.parametrize(
    ("labels", "expected"),
    # Of two channels with two pixels, of two steps with two classes, and of four probabilities; then the same again.
    [(largest, 0.5), (largest_last, 0.75), (above(0.5), 0.75), (None, None)],
)
def test_labels_are_of_classes_pixels_or_thresholds(labels, expected):
    floats = np.array([[0.1, 0.9, 0.4, 0.2], [0.1, 0.9, 0.4, 0.2]])
    found = np.array([[0.1, 0.9, 0.4, 0.2], [0.8, 0.1, 0.4, 0.2]])
    assert measured.agreement(found, floats, (2, 2), labels) == expected


DOCUMENT = json.loads(NUMBERS.read_text(encoding="utf-8"))
COMPILED = [row for row in DOCUMENT["models"] if "bytes" in row]


def test_the_page_is_of_the_numbers():
    assert (ROOT / "docs/zoo.md").read_text(encoding="utf-8") == page(DOCUMENT)


def test_rows_are_of_models_that_are_registered():
    assert {row["name"] for row in DOCUMENT["models"]} <= {entry.name for entry in ENTRIES}


def test_at_least_sixty_models_compile():
    assert len(COMPILED) >= LEAST


@pytest.mark.parametrize("row", COMPILED, ids=lambda row: row["name"])
def test_a_row_is_near_the_float_model(row):
    real = row["real"] and row["agreement"] is not None
    assert (row["agreement"] >= AGREE if real else row["relative_rmse"] <= NEAR) or row["note"]
    if real:
        lost = row["agreement"] - row["stochastic_agreement"]
        assert lost <= max(CHANCE, (1 + 1e-9) / row["inputs"]) or row["note"]


@pytest.mark.parametrize("row", [row for row in COMPILED if "private" in row], ids=lambda row: row["name"])
def test_a_private_result_is_that_of_the_interpreter(row):
    assert row["exact"]["equal_outputs"] == row["exact"]["inputs"] > 0
