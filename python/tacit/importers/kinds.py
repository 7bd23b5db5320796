"""What a file is that should be a model and is none, and what to do with it."""

import json
import zipfile
from pathlib import Path

START = 512
"""Bytes of a file that are looked at."""
EXPORT_TORCH = "export the module: torch.onnx.export(module, example, 'model.onnx')"
EXPORT_SKLEARN = "export the estimator: skl2onnx.to_onnx(estimator, examples)"
EXPORT_KERAS = "convert it with tf2onnx: python -m tf2onnx.convert --keras model.h5 --output model.onnx"
MAGIC: dict[bytes, tuple[str, str]] = {
    b"\x80": ("a pickle, as of PyTorch, joblib or scikit-learn", f"{EXPORT_SKLEARN}, or {EXPORT_TORCH}"),
    b"\x89HDF": ("an HDF5 file, as of Keras", EXPORT_KERAS),
    b"version https://git-lfs": ("a pointer of Git LFS", "fetch the file itself: git lfs pull"),
    b"<": ("a web page or XML", "download the file itself"),
    b"\x93NUMPY": ("an array of NumPy", "give the model here, and arrays to --calibrate or `tacit run`"),
    b"tree\n": ("a model of LightGBM", "convert it with onnxmltools.convert_lightgbm"),
}
"""How files begin, what they are and what to do."""


def remedy(path: Path) -> str | None:
    """What the file or directory is and what to do with it, for kinds that are known and are no ONNX model."""
    if path.is_dir():
        return of_directory(path)
    with path.open("rb") as file:
        start = file.read(START)
    if start.startswith(b"PK\x03\x04"):
        return of_archive(path)
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= path.stat().st_size:
        return of_tensors(path)
    return of_start(start)


def of_start(start: bytes) -> str | None:
    """A file by how it begins."""
    if not start:
        return "is empty; copy or export it again"
    if start[4:8] == b"TFL3":
        return "is a TensorFlow Lite model; convert it with tf2onnx: python -m tf2onnx.convert --tflite model.tflite"
    if start.lstrip()[:1] in (b"{", b"["):
        return f"is JSON and no network; for a model of XGBoost convert it with onnxmltools, else {EXPORT_TORCH}"
    known = (f"is {kind}; {advice}" for magic, (kind, advice) in MAGIC.items() if start.startswith(magic))
    return next(known, None)


def of_directory(path: Path) -> str:
    """A directory without a configuration."""
    if (path / "saved_model.pb").is_file():
        return "is a SavedModel of TensorFlow; convert it: python -m tf2onnx.convert --saved-model FOLDER --output FILE"
    found = sorted(entry.name for entry in path.iterdir() if entry.suffix in (".onnx", ".xz"))
    if found:
        return f"is a directory; give a file of it: {', '.join(found[:3])}"
    return "is a directory without config.json; give a directory of Hugging Face or an .onnx file"


def of_archive(path: Path) -> str:
    """A zip archive, by what is in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return f"is an incomplete zip archive, as of PyTorch; copy it again, then {EXPORT_TORCH}"
    if any(name.endswith("data.pkl") for name in names):
        return f"is a file of PyTorch; {EXPORT_TORCH}"
    if "model.weights.h5" in names:
        return f"is a file of Keras; {EXPORT_KERAS}"
    if any(name.endswith(".npy") for name in names):
        return "is an archive of NumPy arrays; give the model here, and arrays to --calibrate or `tacit run`"
    if any(name.endswith(".onnx") for name in names):
        return "is a zip archive with an ONNX model in it; unpack it first"
    return "is a zip archive; give an .onnx file or a directory of Hugging Face"


def of_tensors(path: Path) -> str:
    """A safetensors file: weights alone, or a model of ours."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        try:
            about = json.loads(file.read(min(length, 1 << 26))).get("__metadata__", {})
        except (ValueError, AttributeError):
            return "begins as a safetensors file and is damaged; copy it again"
    if isinstance(about, dict) and about.get("format") == "tacit":
        return "is compiled already; run it: tacit run, tacit serve, tacit inspect"
    return "holds weights without a network; give the directory with its config.json, or an .onnx file"
