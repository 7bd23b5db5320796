"""Entries that the Python side keeps in a .tacit file."""

import json

import numpy as np
import pytest
from networks import Network
from sealed import edit
from tacit.compiler import Options, compile_model, metadata
from tacit.data.preprocess import PRESETS, Preprocessing
from tacit.errors import MisuseError
from tacit.model import Model


def compiled(folder, **options):
    source = Network(("N", 3, 8, 8)).conv((4, 3, 3, 3)).add("Relu").add("Flatten").gemm(144, 3).save(folder)
    compile_model(source, folder / "small.tacit", None, (0, 1), Options(**options))
    return folder / "small.tacit"


def test_preprocessing_is_kept_and_the_model_unchanged(tmp_path):
    x = np.random.default_rng(0).random((3, 3, 8, 8), np.float32)
    bare = Model(compiled(tmp_path))
    assert bare.preprocessing is None
    digest, outputs = bare.description["digest"], bare.simulate(x)
    model = Model(compiled(tmp_path, preprocessing=PRESETS["unit"]))
    assert model.preprocessing == PRESETS["unit"]
    assert model.description["digest"] == digest
    np.testing.assert_array_equal(model.simulate(x), outputs)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_foreign_preprocessing_is_refused(tmp_path):
    path = compiled(tmp_path, preprocessing=PRESETS["raw"])
    edit(path, lambda entries: entries.update(preprocess=json.dumps({"crop": "x"})))
    with pytest.raises(MisuseError, match="`crop`"):
        _ = Model(path).preprocessing


def test_entries_are_covered_by_the_digest(tmp_path):
    path = compiled(tmp_path, preprocessing=PRESETS["unit"])
    content = path.read_bytes()
    at = content.index(b"preprocess")
    path.write_bytes(content[:at] + b"P" + content[at + 1 :])
    with pytest.raises(MisuseError, match=r"small\.tacit: damaged: its digest should be [0-9a-f]{12}\.\.\. and is"):
        _ = Model(path).preprocessing


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 8, (2).to_bytes(8, "little") + b"[]", (4).to_bytes(8, "little") + b"none"]
)
def test_files_of_another_kind(tmp_path, content):
    path = tmp_path / "other.tacit"
    path.write_bytes(content)
    with pytest.raises(MisuseError, match=r"other\.tacit"):
        metadata.entries(path)


@pytest.mark.parametrize("chosen", [Preprocessing(9, 9), Preprocessing(channel_order="L")])
def test_preprocessing_must_fit_the_model(tmp_path, chosen):
    with pytest.raises(MisuseError, match=r"the model takes \[3, 8, 8\]"):
        compiled(tmp_path, preprocessing=chosen)
