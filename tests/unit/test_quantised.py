"""Directories of networks trained with few bits: what is read, what is refused."""

import json

import few_bits
import numpy as np
import pytest
from tacit.errors import MisuseError
from tacit.importers.quantised import DESCRIPTION, WEIGHTS, import_quantised, is_quantised


@pytest.fixture
def folder(tmp_path):
    return few_bits.network(tmp_path / "small")


def test_a_directory_is_read(folder):
    assert is_quantised(folder)
    assert not is_quantised(folder.parent)
    network = import_quantised(folder)
    assert network.source.input_shape == (2, 6, 6)
    assert (network.activation_bits, network.labels, network.preprocess) == (4, ("a", "b", "c"), None)
    assert network.source.weights["stem_weight"].dtype == np.float32
    assert network.ranges["skip"] == (0.0, 255 / 32)
    assert json.loads(network.source.to_json())["nodes"][0]["importance"] == [1, 2, -8]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("format", "other", "does not describe"),
        ("version", 2, "update Tacit"),
        ("source", {}, "lacks 'nodes'"),
        ("ranges", {"x": [1.0, 0.0]}, "range 1.0..0.0"),
        ("ranges", {"x": [0.0, float("nan")]}, "range 0.0..nan"),
        ("ranges", [], "no network of few bits"),
        ("activation_bits", "many", "no network of few bits"),
    ],
)
def test_wrong_descriptions_are_refused(folder, field, value, words):
    path = folder / DESCRIPTION
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(MisuseError, match=words):
        import_quantised(folder)


def test_missing_and_broken_arrays_are_refused(folder):
    with np.load(folder / WEIGHTS) as archive:
        kept = {name: archive[name] for name in archive.files if name != "inner_scale"}
    np.savez(folder / WEIGHTS, **kept)
    with pytest.raises(MisuseError, match="lacks the array `inner_scale`"):
        import_quantised(folder)
    (folder / WEIGHTS).write_bytes(b"nothing")
    with pytest.raises(MisuseError, match="no readable file of arrays"):
        import_quantised(folder)
    (folder / DESCRIPTION).write_text("[")
    with pytest.raises(MisuseError, match="no readable JSON"):
        import_quantised(folder)
