"""Weights in files beside the model, and models with more of them than one message can have."""

import numpy as np
import onnx
import pytest
from networks import Network
from tacit.compile import float_model
from tacit.compile.float_model import FloatModel
from tacit.errors import MisuseError
from tacit.importers import external
from tacit.importers.check import check
from tacit.importers.onnx import import_onnx


@pytest.fixture
def network():
    return Network((1, 3, 8, 8)).conv((8, 3, 3, 3), pads=[1, 1, 1, 1]).add("Relu").add("Flatten").gemm(512, 64)


@pytest.fixture
def path(network, tmp_path):
    """The network with its weights in a file of their own."""
    onnx.save(network.proto(), tmp_path / "m.onnx", save_as_external_data=True, location="m.weights", size_threshold=0)
    return tmp_path / "m.onnx"


def test_weights_in_another_file_are_read(network, path, tmp_path):
    x = np.random.default_rng(0).uniform(0, 1, (3, 3, 8, 8)).astype(np.float32)
    plain = network.save(tmp_path)
    assert import_onnx(path).weights.keys() == import_onnx(plain).weights.keys()
    np.testing.assert_array_equal(FloatModel(path)(x), FloatModel(plain)(x))


def test_a_file_that_is_missing_is_named(path):
    (path.parent / "m.weights").unlink()
    with pytest.raises(MisuseError, match=r"keeps the weight `.*` in m.weights, which is missing; copy it"):
        import_onnx(path)
    assert "m.weights" in str(check(path).errors[0])


def test_a_file_that_ends_too_early_is_named(path):
    content = (path.parent / "m.weights").read_bytes()
    (path.parent / "m.weights").write_bytes(content[:-100])
    with pytest.raises(MisuseError, match=r"in m.weights, which has \d+ bytes and not \d+: copy it again"):
        import_onnx(path)


def test_files_outside_of_the_folder_are_refused(path):
    model = onnx.load(path, load_external_data=False)
    (path.parent.parent / "other").write_bytes(bytes(10**6))
    model.graph.initializer[0].external_data[0].value = "../other"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(MisuseError):
        import_onnx(path)


def test_large_models_are_never_one_message(path, network, tmp_path, monkeypatch):
    x = np.random.default_rng(0).uniform(0, 1, (3, 3, 8, 8)).astype(np.float32)
    expected = FloatModel(network.save(tmp_path))(x)
    for module in (external, float_model):
        monkeypatch.setattr(module, "MOST_BYTES", 1 << 14)
    np.testing.assert_allclose(FloatModel(path)(x), expected, rtol=1e-6)
    names = [node.output for node in import_onnx(path).nodes]
    assert len(next(iter(FloatModel(path, names).batches(x)))) == len(names) + 1


def test_a_weight_of_the_wrong_size_is_refused_in_a_large_model_too(network, tmp_path, monkeypatch):
    model = network.proto()
    model.graph.initializer[2].raw_data = model.graph.initializer[2].raw_data[:-4]
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(MisuseError, match="not a valid ONNX model"):
        import_onnx(tmp_path / "m.onnx")
    monkeypatch.setattr(external, "MOST_BYTES", 1 << 14)
    with pytest.raises(MisuseError, match="not a valid ONNX model"):
        import_onnx(tmp_path / "m.onnx")
