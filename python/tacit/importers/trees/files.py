"""Files of tree libraries, which their content tells apart, whatever they are called."""

import json
from pathlib import Path
from typing import Any

from tacit.errors import MisuseError
from tacit.importers.kinds import remedy
from tacit.importers.trees.catboost import is_catboost, of_catboost
from tacit.importers.trees.ensemble import Ensemble
from tacit.importers.trees.lightgbm import is_lightgbm, of_lightgbm
from tacit.importers.trees.onnx_graph import mentions_ensemble, read_graph, stands_alone
from tacit.importers.trees.ubjson import is_ubjson, parse
from tacit.importers.trees.xgboost import is_xgboost, of_xgboost

MOST_BYTES = 1 << 30
HEAD = 64
SUFFIXES = frozenset({".json", ".ubj", ".txt", ".cbm", ".pkl", ".pickle", ".joblib"})
"""Endings of files that are no ONNX models, whatever they are."""
ACCEPTED = (
    "give a model of XGBoost (save_model to .json or .ubj), LightGBM (save_model to .txt), CatBoost "
    '(save_model with format="json"), or an ONNX file'
)
ZLIB = (b"\x01", b"\x5e", b"\x9c", b"\xda")
"""Second bytes of what zlib compressed."""
OTHERS = (
    (b"CBM1", "a binary model of CatBoost", 'save it with model.save_model("model.json", format="json")'),
    (b"binf", "a binary model of XGBoost's old format", 'save it with save_model("model.json")'),
    (b"\x80", "a pickle, which is code that Tacit does not run", "load it in Python and give it to tacit.compile"),
    (b"\x1f\x8b", "a compressed file", "decompress it"),
    *((b"\x78" + level, "a file of joblib", "load it in Python and give it to tacit.compile") for level in ZLIB),
)
"""Beginnings of files that are something else, what that is, and what to do."""


def is_trees(path: Path) -> bool:
    """Whether a file is meant as an ensemble of trees: by how it begins, by its ending, or as ONNX with an ensemble."""
    if not path.is_file():
        return False
    if path.suffix.lower() in SUFFIXES:
        return True
    head = begins(path)
    if is_lightgbm(head) or is_ubjson(head) or head.startswith((b"CBM1", b"binf")) or head.lstrip()[:1] == b"{":
        return True
    return mentions_ensemble(path) and stands_alone(path)


def read(path: Path) -> Ensemble:
    """The ensemble in a file.

    Raises `MisuseError` for a file that is none, saying what it is, and `UnsupportedError` for what does not run.
    """
    head = begins(path)
    if is_lightgbm(head):
        return of_lightgbm(content(path).decode("utf-8", "replace"), path.stem)
    if is_ubjson(head):
        return of_object(path, parse(content(path)))
    if head.lstrip()[:1] in (b"{", b"["):
        return of_object(path, parsed(path))
    for beginning, what, instead in OTHERS:
        if head.startswith(beginning) and path.suffix.lower() != ".onnx":
            raise MisuseError(f"{path} is {what}; {instead}")
    if path.suffix.lower() not in SUFFIXES:
        found = read_graph(path)
        if found is not None:
            return found
    known = remedy(path) if head else f"is empty; {ACCEPTED}"
    raise MisuseError(f"{path} {known or f'is no model; {ACCEPTED}'}")


def begins(path: Path) -> bytes:
    """The first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError as error:
        raise MisuseError(f"{path} cannot be read: {error}") from error


def content(path: Path) -> bytes:
    """The whole file, where it is no larger than any model."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise MisuseError(f"{path} has more than {MOST_BYTES} bytes; no model that runs is as large")
        return path.read_bytes()
    except OSError as error:
        raise MisuseError(f"{path} cannot be read: {error}") from error


def parsed(path: Path) -> Any:
    """A file as JSON."""
    try:
        return json.loads(content(path))
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"{path} is no readable JSON file: {error}; copy or save it again") from error


def of_object(path: Path, found: Any) -> Ensemble:
    """The ensemble that an object describes."""
    if is_catboost(found):
        return of_catboost(found, path.stem)
    if is_xgboost(found):
        return of_xgboost(found, path.stem)
    if isinstance(found, dict) and "tree_info" in found:
        raise MisuseError(f'{path} is what dump_model of LightGBM gives; save it with save_model("model.txt")')
    if isinstance(found, list):
        raise MisuseError(f'{path} is no whole model, a dump of trees perhaps; save it with save_model("model.json")')
    raise MisuseError(f"{path} is JSON of something else; {ACCEPTED}")
