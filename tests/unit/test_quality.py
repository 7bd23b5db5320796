"""How near results are to the float model's, against the formulas written out."""

import numpy as np
import pytest
from tacit.errors import MisuseError
from tacit.measure.quality import automatic, chosen, compared


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape)


@pytest.mark.parametrize(
    ("shape", "metric"),
    [
        ((), "regression"),
        ((1,), "regression"),
        ((1, 1), "regression"),
        ((10,), "labels"),
        ((10, 1, 1), "labels"),
        ((16, 30), "tokens"),
        ((21, 8, 9), "segmentation"),
        ((1, 8, 9), "segmentation"),
        ((2, 3, 4, 5), "regression"),
    ],
)
def test_the_shape_chooses(shape, metric):
    assert automatic(shape) == metric
    assert chosen("auto", shape) == metric


def test_a_named_metric_must_fit():
    assert chosen("embedding", (10,)) == "embedding"
    assert chosen("regression", (4, 10)) == "regression"
    for metric, shape in (("labels", (1,)), ("tokens", (10,)), ("segmentation", (4, 10))):
        with pytest.raises(MisuseError, match=f"--metric {metric} is not for results of shape"):
            chosen(metric, shape)


def test_labels():
    floats = np.eye(4)[[0, 1, 2, 3]]
    found = np.eye(4)[[0, 1, 2, 0]]
    content = compared("labels", found, floats, (4,))
    assert content == {"metric": "labels", "score": 0.75, "verdict": "poor"}


def test_regression_is_in_real_units():
    floats = np.array([[1.0], [3.0], [5.0], [7.0]])
    content = compared("regression", floats + np.array([[0.1], [-0.1], [0.1], [-0.1]]), floats, (1,))
    assert content["rmse"] == pytest.approx(0.1)
    assert content["largest_error"] == pytest.approx(0.1)
    assert content["relative_rmse"] == pytest.approx(0.1 / np.sqrt(5))
    assert content["r2"] == pytest.approx(1 - 4 * 0.01 / 20)
    assert content["verdict"] == "close"


def test_constant_results_have_errors_too():
    content = compared("regression", np.full((3, 1), 2.02), np.full((3, 1), 2.0), (1,))
    assert content["relative_rmse"] == pytest.approx(0.01)
    assert compared("regression", np.zeros((3, 1)), np.zeros((3, 1)), (1,))["score"] == 1
    assert compared("regression", np.ones((3, 1)), np.zeros((3, 1)), (1,))["score"] == 0


def test_tokens_are_compared_one_by_one():
    floats = random(5, 4, 6)
    found = floats.copy()
    found[0, 0] = -found[0, 0]
    content = compared("tokens", found.reshape(5, 24), floats.reshape(5, 24), (4, 6))
    assert content["token_accuracy"] == content["score"] == 19 / 20


def test_maps_are_compared_by_their_areas():
    floats = np.zeros((1, 2, 2, 4))
    floats[0, 1, :, 2:] = 1
    floats[0, 0, :, :2] = 1
    found = floats.copy()
    found[0, :, 0, 1] = [0, 1]
    content = compared("segmentation", found, floats, (2, 2, 4))
    assert content["pixel_accuracy"] == 7 / 8
    assert content["mean_iou"] == pytest.approx((3 / 4 + 4 / 5) / 2)


def test_a_map_of_one_class_is_where_it_is_positive():
    floats = random(3, 1, 4, 4)
    assert compared("segmentation", floats * 2, floats, (1, 4, 4))["mean_iou"] == 1
    assert compared("segmentation", -floats, floats, (1, 4, 4))["mean_iou"] == 0


def test_embeddings_are_compared_by_their_cosine():
    floats = np.array([[1.0, 0.0], [0.0, 2.0]])
    found = np.array([[3.0, 0.0], [2.0, 2.0]])
    content = compared("embedding", found, floats, (2,))
    assert content["cosine_min"] == pytest.approx(np.sqrt(0.5))
    assert content["cosine_mean"] == pytest.approx((1 + np.sqrt(0.5)) / 2)
    assert compared("embedding", found * 0, floats, (2,))["score"] == 0


@pytest.mark.parametrize(("wrong", "word"), [(0, "faithful"), (1, "faithful"), (3, "close"), (10, "poor")])
def test_one_word(wrong, word):
    floats = np.tile([1.0, 0.0], (100, 1))
    found = floats.copy()
    found[:wrong] = [0.0, 1.0]
    assert compared("labels", found, floats, (2,))["verdict"] == word
