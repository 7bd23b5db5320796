"""Inputs are checked before anything else sees them."""

import numpy as np
import pytest
from tacit.data.examples import load
from tacit.errors import MisuseError

SHAPE = (1, 4, 4)


def saved(folder, x, **others):
    """An archive with `x`, or a plain array when that is all."""
    path = folder / ("data.npz" if others else "data.npy")
    if others:
        np.savez(path, x=x, **others)
    else:
        np.save(path, x)
    return path


@pytest.mark.parametrize("shape", [SHAPE, (1, *SHAPE), (5, *SHAPE)])
def test_single_inputs_and_batches(tmp_path, shape):
    x = np.random.default_rng(0).random(shape, np.float32)
    loaded = load(saved(tmp_path, x), SHAPE)
    assert loaded.y is None
    np.testing.assert_array_equal(loaded.x, x.reshape(-1, *SHAPE))


def test_labels_come_along(tmp_path):
    loaded = load(saved(tmp_path, np.zeros((2, *SHAPE), np.float32), y=np.array([3, 4], np.uint8)), SHAPE)
    assert loaded.y is not None
    assert (loaded.y.dtype, loaded.y.tolist()) == (np.int64, [3, 4])


@pytest.mark.parametrize("dtype", [np.float64, np.uint8, np.float16, np.complex64])
def test_other_types_are_refused(tmp_path, dtype):
    with pytest.raises(MisuseError, match="float32"):
        load(saved(tmp_path, np.zeros(SHAPE, dtype)), SHAPE)


@pytest.mark.parametrize("shape", [(4, 4), (1, 4, 5), (2, 2, 1, 4, 4), ()])
def test_other_shapes_are_refused(tmp_path, shape):
    with pytest.raises(MisuseError, match=r"the model takes \[1, 4, 4\]"):
        load(saved(tmp_path, np.zeros(shape, np.float32)), SHAPE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(tmp_path, value):
    with pytest.raises(MisuseError, match="NaN or infinity"):
        load(saved(tmp_path, np.full(SHAPE, value, np.float32)), SHAPE)


def test_empty_batches_are_refused(tmp_path):
    with pytest.raises(MisuseError, match="no input"):
        load(saved(tmp_path, np.zeros((0, *SHAPE), np.float32)), SHAPE)


@pytest.mark.parametrize("y", [np.zeros(3, np.int64), np.zeros((2, 1), np.int64), np.zeros(2, np.float32)])
def test_labels_that_do_not_fit_are_refused(tmp_path, y):
    with pytest.raises(MisuseError, match="need 2 integers"):
        load(saved(tmp_path, np.zeros((2, *SHAPE), np.float32), y=y), SHAPE)


def test_pickles_are_refused(tmp_path):
    path = tmp_path / "pickle.npy"
    np.save(path, np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(MisuseError, match="no readable"):
        load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x93NUMPY\x01\x00", b"text"])
def test_broken_files_are_refused(tmp_path, content):
    path = tmp_path / "broken.npz"
    path.write_bytes(content)
    with pytest.raises(MisuseError, match=r"broken\.npz"):
        load(path)


def test_archives_without_x_say_what_they_have(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, images=np.zeros(3))
    with pytest.raises(MisuseError, match="it has images"):
        load(path)


def test_absent_files(tmp_path):
    with pytest.raises(MisuseError, match="does not exist"):
        load(tmp_path / "absent.npy")
