"""Files that are no ONNX model are named for what they are, with what to do."""

import json
import pickle
import struct
import zipfile

import pytest
from networks import Network
from tacit.errors import MisuseError
from tacit.importers.onnx import load


def tensors(fields):
    header = json.dumps({"__metadata__": fields}).encode()
    return struct.pack("<Q", len(header)) + header


def archive(*names):
    def write(path):
        with zipfile.ZipFile(path, "w") as file:
            for name in names:
                file.writestr(name, b"x")

    return write


def folder(*names):
    def write(path):
        path.mkdir()
        for name in names:
            (path / name).write_bytes(b"x")

    return write


CASES = {
    "torch": (archive("model/data.pkl", "model/data/0"), ["a file of PyTorch", "torch.onnx.export"]),
    "keras": (archive("config.json", "model.weights.h5"), ["a file of Keras", "tf2onnx"]),
    "arrays": (archive("x.npy"), ["NumPy arrays", "--calibrate"]),
    "zipped": (archive("folder/model.onnx"), ["an ONNX model in it", "unpack"]),
    "zip": (archive("notes.txt"), ["a zip archive", ".onnx"]),
    "half a zip": (lambda path: path.write_bytes(b"PK\x03\x04 and no more"), ["incomplete zip archive"]),
    "pickle": (lambda path: path.write_bytes(pickle.dumps({"a": 1})), ["a pickle", "skl2onnx"]),
    "hdf5": (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n"), ["HDF5", "tf2onnx"]),
    "tflite": (lambda path: path.write_bytes(b"\x1c\0\0\0TFL3" + bytes(9)), ["TensorFlow Lite", "tf2onnx"]),
    "weights": (lambda path: path.write_bytes(tensors({})), ["weights without a network", "config.json"]),
    "compiled": (lambda path: path.write_bytes(tensors({"format": "tacit"})), ["compiled already", "tacit run"]),
    "damaged": (lambda path: path.write_bytes(struct.pack("<Q", 9) + b"{" + bytes(8)), ["damaged", "copy it again"]),
    "pointer": (lambda path: path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n"), ["git lfs pull"]),
    "page": (lambda path: path.write_bytes(b"<!DOCTYPE html><html>"), ["a web page", "download"]),
    "array": (lambda path: path.write_bytes(b"\x93NUMPY\x01\0"), ["an array of NumPy", "tacit run"]),
    "lightgbm": (lambda path: path.write_bytes(b"tree\nversion=v4\n"), ["LightGBM", "onnxmltools"]),
    "json": (lambda path: path.write_bytes(b' {"learner": 1}'), ["is JSON", "XGBoost"]),
    "empty": (lambda path: path.write_bytes(b""), ["is empty"]),
    "text": (lambda path: path.write_bytes(b"hello"), ["no ONNX model"]),
    "saved model": (folder("saved_model.pb"), ["a SavedModel of TensorFlow", "tf2onnx"]),
    "folder of models": (folder("a.onnx", "notes.txt"), ["give a file of it: a.onnx"]),
    "folder": (folder("notes.txt"), ["a directory without config.json"]),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("suffix", [".onnx", ".json"])
def test_the_kind_and_the_remedy_are_named(kind, suffix, tmp_path):
    write, words = CASES[kind]
    path = tmp_path / f"model{suffix}"
    write(path)
    with pytest.raises(MisuseError) as caught:
        load(path)
    assert all(word in str(caught.value) for word in [str(path), *words])


def test_half_a_model_is_incomplete(tmp_path):
    path = Network().add("Relu").save(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(MisuseError, match="not all of one: copy or export it again"):
        load(path)


def test_a_suffix_does_not_matter(tmp_path):
    path = Network().add("Relu").save(tmp_path)
    renamed = path.rename(tmp_path / "model.json")
    assert load(renamed).graph.node
