"""`tacit inspect`: what a file says of itself, and whether it is whole."""

import hashlib
import json

import pytest
from networks import Network
from sealed import edit
from tacit import _core
from tacit.cli import main
from tacit.compiler import Options, compile_model, metadata
from tacit.data.preprocess import PRESETS
from tacit.errors import MisuseError
from tacit.model import Model

LABELS = ("a", "b", "c")
BEGINNING = 35


@pytest.fixture
def model(tmp_path):
    """A small network of images with labels and a preprocessing."""
    network = Network(("N", 3, 8, 8)).conv((4, 3, 3, 3)).add("Relu").add("Flatten").gemm(144, 3)
    source = network.save(tmp_path)
    options = Options(labels=LABELS, preprocessing=PRESETS["unit"], rounding="exact")
    compile_model(source, tmp_path / "small.tacit", None, (0, 1), options)
    return Model(tmp_path / "small.tacit")


def inspected(capsys, *arguments):
    """How `tacit inspect` ended, and what it printed."""
    with pytest.raises(SystemExit) as ended:
        main(["inspect", *map(str, arguments)])
    return ended.value.code, capsys.readouterr()


def test_one_object(model, capsys):
    code, printed = inspected(capsys, model.path, "--json")
    found = json.loads(printed.out)
    content = bytearray(model.path.read_bytes())
    content[BEGINNING : BEGINNING + 64] = b"0" * 64
    assert code == 0
    assert found["digest"] == found["found_digest"] == hashlib.sha256(content).hexdigest()
    assert (found["holds"], found["bytes"], found["format_version"]) == (True, len(content), "2")
    assert (found["made_by"], found["suite"]) == (f"tacit {_core.__version__}", "auto")
    assert found["source"].endswith(".onnx")
    assert "/" not in found["source"]
    assert found["options"] == {
        "suite": "auto",
        "weight_bits": 8,
        "activation_bits": 8,
        "rounding": "exact",
        "nonlinear": "ot",
        "calibrated": False,
        "bias_correction": False,
    }
    assert set(found["entries"]) == {"source", "options", "preprocess"}
    assert (found["input"]["shape"], found["output"]["shape"], found["labels"]) == ([3, 8, 8], [3], 3)
    assert found["input"]["scale"] == model.description["input"]["scale"]
    assert found["public_digest"] == model.description["digest"]
    assert found["parameters"] == 4 * 27 + 4 + 144 * 3 + 3
    assert sum(found["operators"].values()) == found["nodes"] == len(model.description["layers"])


def test_tables_for_people(model, capsys):
    code, printed = inspected(capsys, model.path)
    assert code == 0
    for word in ("holds", "small.tacit", "tacit 0.", "3x8x8", "3 labels", "rounding exact", "operator"):
        assert word in printed.out, printed.out


def test_the_same_network_gives_the_same_file(model, tmp_path):
    again, other = tmp_path / "again.tacit", tmp_path / "other.tacit"
    source = tmp_path / model.inspect()["source"]
    for path, salt_of in ((again, model.path), (other, None)):
        options = Options(labels=LABELS, preprocessing=PRESETS["unit"], rounding="exact", salt_of=salt_of)
        compile_model(source, path, None, (0, 1), options)
    assert again.read_bytes() == model.path.read_bytes()
    first, second = model.path.read_bytes(), other.read_bytes()
    for secret in ("salt", "digest"):  # nothing else differs
        ours, theirs = (metadata.entries(path)[secret].encode() for path in (model.path, other))
        assert ours != theirs
        first, second = first.replace(ours, b""), second.replace(theirs, b"")
    assert first == second


def test_the_commitment_is_as_documented(model, capsys):
    found = model.inspect()
    salt = metadata.salt(model.path)
    assert found["commitment"] == hashlib.sha256(f"tacit model v1{salt}{found['digest']}".encode()).hexdigest()
    _, printed = inspected(capsys, model.path)
    assert found["commitment"] in printed.out.replace("\n", "")
    assert salt not in printed.out


def test_a_file_without_a_salt_has_no_commitment(model, capsys):
    edit(model.path, lambda entries: entries.pop(metadata.SALT))
    assert model.inspect()["commitment"] is None
    assert "the file has no salt" in inspected(capsys, model.path)[1].out
    with pytest.raises(MisuseError, match=r"small\.tacit has no salt"):
        metadata.salt(model.path)


def test_damaged_weights_are_told_by_inspect_and_refused_by_all_else(model, capsys):
    digest = model.inspect()["digest"]
    content = bytearray(model.path.read_bytes())
    content[-1] ^= 1
    model.path.write_bytes(content)
    code, printed = inspected(capsys, model.path, "--json")
    found = json.loads(printed.out)
    assert (code, found["holds"], found["digest"]) == (1, False, digest)
    assert found["found_digest"] != digest
    assert "is damaged" in printed.err
    code, printed = inspected(capsys, model.path)
    assert code == 1
    assert "DAMAGED" in printed.out
    with pytest.raises(MisuseError, match=f"damaged: its digest should be {digest[:12]}"):
        _ = model.description


def test_a_damaged_header_is_an_error(model, capsys):
    content = bytearray(model.path.read_bytes())
    content[8] ^= 1
    model.path.write_bytes(content)
    code, printed = inspected(capsys, model.path, "--json")
    assert code == 1
    assert "small.tacit: damaged: its digest should be" in json.loads(printed.out)["error"]["message"]
