"""Compressed model files are read like plain ones, within bounds."""

import gzip
import lzma

import numpy as np
import pytest
from networks import Network
from tacit.compiler.float_model import FloatModel
from tacit.errors import MisuseError
from tacit.importers import packed
from tacit.importers.onnx import import_onnx

PACK = {".xz": lzma.compress, ".gz": gzip.compress}


@pytest.fixture(params=PACK)
def pair(request, tmp_path):
    """A model and the same compressed."""
    plain = Network(("N", 4)).gemm(4, 3).save(tmp_path)
    path = tmp_path / f"small.onnx{request.param}"
    path.write_bytes(PACK[request.param](plain.read_bytes()))
    return plain, path


def test_compressed_models_are_the_same(pair):
    plain, path = pair
    assert import_onnx(path).to_json() == import_onnx(plain).to_json()
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(FloatModel(path)(x), FloatModel(plain)(x))


def test_names_lose_both_endings(tmp_path):
    assert packed.model_name(tmp_path / "net.v2.onnx.xz") == "net.v2"
    assert packed.model_name(tmp_path / "net.v2.onnx") == "net.v2"


def test_damage_is_named(pair):
    _, path = pair
    whole = path.read_bytes()
    middle = len(whole) // 2
    for content in (b"", b"text", whole[:middle], whole[:-1], whole[:middle] + b"\x55" * 20 + whole[middle + 20 :]):
        path.write_bytes(content)
        with pytest.raises(MisuseError, match=r"small\.onnx\..z"):
            import_onnx(path)


def test_content_that_is_no_model(pair):
    _, path = pair
    path.write_bytes(PACK[path.suffix](b"not a model"))
    with pytest.raises(MisuseError, match="no ONNX model, or not all of one"):
        import_onnx(path)


def test_the_size_is_bounded(pair, monkeypatch):
    monkeypatch.setattr(packed, "MOST_BYTES", 100)
    with pytest.raises(MisuseError, match="larger than"):
        import_onnx(pair[1])


def test_memory_for_xz_is_bounded(pair, monkeypatch):
    monkeypatch.setattr(packed, "XZ_MEMORY", 1000)
    if pair[1].suffix == ".xz":
        with pytest.raises(MisuseError, match="xz"):
            import_onnx(pair[1])


def test_absent_files(tmp_path):
    with pytest.raises(MisuseError, match="does not exist"):
        import_onnx(tmp_path / "absent.onnx.xz")
