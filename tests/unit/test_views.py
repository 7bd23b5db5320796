"""Orders of elements as views one after another."""

import numpy as np
import pytest
from tacit.importers.views import views


def shown(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """What the views give of a tensor, in the shape of `places`."""
    found = views(places, x.size)
    assert found is not None
    for shape, start, strides in found:
        assert len(shape) <= 3
        steps = (np.arange(n) * stride for n, stride in zip(shape, strides, strict=True))
        x = x.ravel()[start + sum(np.ix_(*steps))]
    return x.reshape(places.shape)


@pytest.mark.parametrize(
    ("lengths", "order"),
    [
        ((6, 5), (1, 0)),
        ((2, 3, 4, 5), (1, 0, 3, 2)),
        ((2, 3, 4, 5, 2), (4, 1, 3, 0, 2)),
        ((3, 2, 2, 4, 4), (0, 3, 1, 4, 2)),
    ],
)
def test_transpositions(lengths, order):
    places = np.arange(np.prod(lengths)).reshape(lengths).transpose(order)
    x = np.random.default_rng(0).integers(0, 1000, places.size)
    np.testing.assert_array_equal(shown(x, places), x[places])


def test_repetitions_inside_and_outside():
    places = np.tile(np.repeat(np.arange(24).reshape(4, 6), 2, axis=0), (3, 2))
    x = np.arange(24) * 7
    np.testing.assert_array_equal(shown(x, places), x[places])


def test_parts_of_a_tensor_are_one_view():
    places = np.arange(60).reshape(3, 4, 5)[1:, ::2, 3]
    assert len(views(places, 60) or ()) == 1


def test_an_order_without_fixed_distances_has_none():
    assert views(np.array([0, 1, 3, 7, 2, 5]), 8) is None
    assert views(np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).transpose(1, 0, 3, 2)[:, :, 1:, 1:], 120) is None
