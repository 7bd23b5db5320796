"""Measures of GLUE, against the formulas written out."""

import numpy as np
import pytest
from tacit.report import metrics

FOUND = np.array([1, 1, 0, 1, 0, 0, 1, 0])
LABELS = np.array([1, 0, 0, 1, 1, 0, 1, 0])


def test_two_classes():
    scores = metrics.of_classes(FOUND, LABELS)
    assert scores["accuracy"] == pytest.approx(6 / 8)
    precision, recall = 3 / 4, 3 / 4
    assert scores["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert scores["matthews"] == pytest.approx((3 * 3 - 1 * 1) / np.sqrt(4 * 4 * 4 * 4))


def test_several_classes_have_an_accuracy_only():
    assert metrics.of_classes(np.array([0, 2]), np.array([0, 1])) == {"accuracy": 0.5}


def test_constant_predictions():
    scores = metrics.of_classes(np.zeros(4, np.int64), np.array([0, 1, 0, 1]))
    assert scores == {"accuracy": 0.5, "f1": 0.0, "matthews": 0.0}
    assert metrics.pearson(np.ones(3), np.arange(3.0)) is None


def test_estimates():
    values = np.array([0.0, 1.0, 3.0, 2.5])
    scores = metrics.of_values(np.exp(values), values)
    assert scores["spearman"] == pytest.approx(1)
    assert scores["pearson"] == pytest.approx(np.corrcoef(np.exp(values), values)[0, 1])
