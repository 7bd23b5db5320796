"""Inputs are checked before anything else sees them."""

import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from tacit.data import claims
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


@pytest.mark.parametrize("y", [np.zeros(3, np.int64), np.zeros((2, 1), np.int64), np.zeros(3, np.float32)])
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


def header(shape, kind="<f4", version=1):
    """How a .npy file begins."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text


def archive(path, **members):
    """An archive of these members, each with its bytes, packed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 20, 1 << 20), (1 << 62, 1 << 62)])
def test_arrays_that_claim_too_much_are_refused_before_they_are_read(tmp_path, version, shape):
    content = header(shape, version=version) + bytes(32 << 20)
    (tmp_path / "x.npy").write_bytes(content)
    bomb = archive(tmp_path / "x.npz", x=content)
    assert bomb.stat().st_size < 1 << 16
    for path in (tmp_path / "x.npy", bomb):
        tracemalloc.start()
        with pytest.raises(MisuseError, match=r"claims to hold [\d,.]+ GiB of numbers.*the limit is 4 GiB"):
            load(path, SHAPE)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


def test_the_limit_is_for_all_arrays_of_a_file(tmp_path, monkeypatch):
    path = saved(tmp_path, np.zeros((2, *SHAPE), np.float32), y=np.array([3, 4]))
    monkeypatch.setattr(claims, "MOST_BYTES", 2 * 16 * 4 + 2 * 8)
    assert len(load(path, SHAPE).x) == 2
    monkeypatch.setattr(claims, "MOST_BYTES", 2 * 16 * 4 + 2 * 8 - 1)
    with pytest.raises(MisuseError, match="array `x`"):
        load(path, SHAPE)


def test_labels_may_be_the_bomb_and_other_arrays_are_not_read(tmp_path):
    x = header((1, *SHAPE)) + bytes(64)
    huge = header((1 << 40,), "<i8")
    with pytest.raises(MisuseError, match="array `y`"):
        load(archive(tmp_path / "labels.npz", x=x, y=huge), SHAPE)
    assert len(load(archive(tmp_path / "others.npz", x=x, other=huge), SHAPE).x) == 1


@pytest.mark.parametrize("content", [b"\x93NUMPY\x02\x00\xff\xff\xff\xff", b"\x93NUMPY\x03\x00", b"raw bytes", b""])
def test_headers_that_are_none(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    for path in (tmp_path / "x.npy", archive(tmp_path / "x.npz", x=content + bytes(1 << 20))):
        with pytest.raises(MisuseError, match=r"no readable \.npy or \.npz file"):
            load(path, SHAPE)


def test_objects_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.array([{}, []], object))
    with pytest.raises(MisuseError, match="holds Python objects"):
        load(tmp_path / "x.npz", SHAPE)
