"""Files of tree libraries that are damaged, hostile, or something else: refused with a message, and soon."""

import json
import pickle
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tacit import MisuseError, TacitError, UnsupportedError, compile_model
from tacit.importers.trees.catboost import of_catboost
from tacit.importers.trees.files import is_trees
from tacit.importers.trees.ubjson import parse

FOLDER = Path(__file__).parents[1] / "data" / "trees"
FILES = sorted(
    path
    for path in FOLDER.iterdir()
    if not path.name.endswith(".expected.json") and not path.name.startswith("sklearn")
)
SECONDS = 20.0


def attempt(path: Path, output: Path) -> bool:
    """Whether a file compiles; anything but an error of ours fails the test."""
    began = time.monotonic()
    try:
        compile_model(path, output)
    except TacitError as error:
        assert str(error)
        return False
    finally:
        assert time.monotonic() - began < SECONDS
    return True


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_damaged_files_raise_nothing_but_refusals(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    rng = np.random.default_rng(len(data))
    broken = tmp_path / path.name
    # What follows the trees of LightGBM may be missing.
    whole = data.find(b"end of trees") if path.suffix == ".txt" else len(data)
    for cut in (0, 1, whole // 2, whole * 9 // 10):
        broken.write_bytes(data[:cut])
        assert not attempt(broken, tmp_path / "out.tacit") or path.suffix == ".onnx"
    for _ in range(12):
        changed = bytearray(data)
        for at in rng.integers(0, len(data), int(rng.integers(1, 4))):
            changed[at] = rng.choice([0, 48, 57, 45, 255, int(rng.integers(0, 256))])
        broken.write_bytes(changed)
        attempt(broken, tmp_path / "out.tacit")


def numbers_in(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where numbers and texts of numbers stand in JSON, of each list some."""
    if isinstance(content, dict):
        return [place for key, value in content.items() for place in numbers_in(value, (*path, key))]
    if isinstance(content, list):
        chosen = sorted({0, len(content) // 2, len(content) - 1} & set(range(len(content))))
        return [place for at in chosen for place in numbers_in(content[at], (*path, at))]
    return [path]


@pytest.mark.parametrize("name", ["xgboost-sets", "xgboost-vector", "catboost-binary", "catboost-lossguide"])
def test_numbers_that_do_not_fit_are_refused_or_harmless(name: str, tmp_path: Path) -> None:
    sound = json.loads((FOLDER / f"{name}.json").read_text())
    rng = np.random.default_rng(7)
    places = numbers_in(sound)
    refused = 0
    for index in rng.choice(len(places), 60):
        content = json.loads(json.dumps(sound))
        *way, last = places[index]
        within = content
        for key in way:
            within = within[key]
        values = [-1, 0, 2**31, 10**30, float("nan"), float("inf"), None, "x", [], {}, "1e999", [[1]]]
        within[last] = values[int(rng.integers(len(values)))]
        (tmp_path / "model.json").write_text(json.dumps(content))
        refused += not attempt(tmp_path / "model.json", tmp_path / "out.tacit")
    assert refused > 5


def lines_changed(text: str, start: str, change: Callable[[str], str]) -> str:
    """A text of LightGBM whose first line that begins so has another value."""
    key, _, rest = text.partition(f"\n{start}=")
    value, newline, after = rest.partition("\n")
    return f"{key}\n{start}={change(value)}{newline}{after}"


@pytest.mark.parametrize(
    ("start", "value", "what"),
    [
        ("left_child", "0 0 0 0 0 0", "twice"),
        ("left_child", "99 1 2 3 4 5", "children"),
        ("split_feature", "0 0 0 0 0 77", "feature 77"),
        ("threshold", "nan 0 0 0 0 0", "no number"),
        ("leaf_value", "inf 0 0 0 0 0 0", "not finite"),
        ("num_leaves", "1000000000", "1000000000"),
        ("num_leaves", "0", "0 leaves"),
        ("is_linear", "1", "linear_tree=false"),
        ("max_feature_idx", "999999999", "features"),
        ("num_tree_per_iteration", "0", "0 results"),
        ("num_tree_per_iteration", "1000000000", "results"),
        ("objective", "mine", "objective mine"),
        ("objective", "binary sigmoid:nan", "sigmoid"),
        ("decision_type", "1 1 1 1 1 1", "IndexError"),
    ],
)
def test_hostile_models_of_lightgbm(start: str, value: str, what: str, tmp_path: Path) -> None:
    text = (FOLDER / "lightgbm-quantile.txt").read_text()
    path = tmp_path / "model.txt"
    path.write_text(lines_changed(text, start, lambda _: value))
    with pytest.raises((MisuseError, UnsupportedError), match=what):
        compile_model(path, tmp_path / "out.tacit")


def test_files_that_are_something_else_are_named(tmp_path: Path) -> None:
    for name, content, what in [
        ("model.pkl", pickle.dumps([1, 2]), "a pickle"),
        ("model.joblib", b"\x78\x9c0000", "joblib"),
        ("model.cbm", b"CBM1" + bytes(40), 'format="json"'),
        ("model", b"CBM1" + bytes(40), 'format="json"'),
        ("model.bin", b"binf" + bytes(40), "XGBoost's old format"),
        ("model.json", b'{"tree_info": [], "version": "v4"}', 'save_model("model.txt")'),
        ("model.json", b'[{"nodeid": 0}]', "a dump of trees"),
        ("model.json", b'{"layers": 3}', "JSON of something else"),
        ("model.json", b'{"learner": ', "no readable JSON"),
        ("model.json", b'{"a":' * 100_000, "no readable JSON"),
        ("model.txt", b"", "is empty"),
        ("model.txt", b"hello", "is no model"),
        ("model.txt", b"tree\nversion=v4\n", "not whole"),
        ("model.ubj", b"{L" + struct.pack(">q", 1 << 60) + b"learner", "UBJSON"),
    ]:
        path = tmp_path / name
        path.write_bytes(content)
        assert is_trees(path)
        with pytest.raises(MisuseError) as raised:
            compile_model(path, tmp_path / "out.tacit")
        assert what in str(raised.value)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 1000,
        b"[#L" + struct.pack(">q", 1 << 40),
        b"[#L" + struct.pack(">q", -1),
        b"[$d#L" + struct.pack(">q", 1 << 61),
        b"[$Z#l" + struct.pack(">i", (1 << 31) - 1),
        b"[$T#L" + struct.pack(">q", 1 << 62),
        b"[$d",
        b"{i\xff",
        b"{S",
        b"SU\xffabc",
        b"{i\x01aD123}",
        b"",
        b"{}x",
        b"N" * 100,
        b"?",
    ],
)
def test_hostile_ubjson_is_refused(data: bytes) -> None:
    began = time.monotonic()
    with pytest.raises(MisuseError, match="UBJSON"):
        parse(data)
    assert time.monotonic() - began < SECONDS


def test_ubjson_is_read() -> None:
    data = b"{i\x01a[$l#i\x02" + struct.pack(">ii", 3, -4) + b"i\x01b[ZTFU\xc8]i\x01cSi\x02hii\x01d{#i\x01i\x01ed"
    found = parse(data + struct.pack(">f", 0.5) + b"}")
    assert found["a"].tolist() == [3, -4]
    assert found["b"] == [None, True, False, 200]
    assert (found["c"], found["d"]) == ("hi", {"e": 0.5})


def test_deep_trees_of_catboost_need_no_recursion() -> None:
    content = json.loads((FOLDER / "catboost-depthwise.json").read_text())
    split = {"border": 0.5, "float_feature_index": 0, "split_type": "FloatFeature"}
    node: Any = {"value": 1.0, "weight": 1}
    for _ in range(5000):
        node = {"split": split, "left": {"value": 0.0, "weight": 1}, "right": node}
    content["trees"] = [node]
    assert len(of_catboost(content, "deep").trees[0].feature) == 10001
