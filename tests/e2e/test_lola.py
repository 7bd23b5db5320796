"""Suite lola: one message each way, over a connection and by files."""

import numpy as np
import pytest
from conftest import ASSETS
from faults.parties import ServerProcess
from tacit import Client

DIGITS = ASSETS / "mnist_digits.npz"
SMALL = ASSETS / "lola_small.onnx"


@pytest.fixture(scope="module")
def small(tacit, tmp_path_factory):
    """LoLa-Small, and its public plan beside it."""
    path = tmp_path_factory.mktemp("lola") / "small.tacit"
    calibration = ASSETS / "mnist_calibration.npz"
    arguments = ("--suite", "lola", "--calibrate", calibration, "--layer-bits", "5,5")
    summary = tacit("compile", SMALL, "-o", path, *arguments, "--json").json
    assert summary["plan"] == str(path.with_suffix(".plan"))
    return path


@pytest.mark.parametrize("packing", ["dense", "convolution"])
def test_a_run_equals_the_interpreter_and_costs_what_the_plan_says(tacit, tmp_path, packing):
    path = tmp_path / "small.tacit"
    calibration = ASSETS / "mnist_calibration.npz"
    arguments = ("--suite", "lola", "--calibrate", calibration, "--layer-bits", "5,5", "--packing", packing)
    tacit("compile", SMALL, "-o", path, *arguments)
    plan = tacit("plan", path, "--json").json
    assert any(packing in line or "stacked" in line for line in plan["parameters"])
    x = np.load(DIGITS)["x"][:1].astype(np.float32) / 256
    one = tmp_path / "one.npy"
    np.save(one, x.reshape(1, 1, 28, 28))
    run = tacit("run", path, one, "--json").json
    assert (run["max_error"], run["equal_outputs"]) == (0, 1)
    for phase, cost in plan["phases"].items():
        measured = run["phases"][phase]
        assert (phase, measured["bytes"], measured["rounds"]) == (phase, cost["bytes"], cost["rounds"])
    # The request follows the keys in the same direction.
    assert run["phases"]["online"]["rounds"] == 1


def test_files_give_what_the_interpreter_gives(tacit, small, tmp_path):
    plan, keys = small.with_suffix(".plan"), tmp_path / "alice"
    x = np.load(DIGITS)["x"].astype(np.float32).reshape(-1, 1, 28, 28)[:2] / 256
    inputs = tmp_path / "two.npy"
    np.save(inputs, x)
    made = tacit("keys", plan, "-o", keys, "--json").json
    assert made["keys_bytes"] > made["secret_bytes"]
    assert (tmp_path / "alice.secret").stat().st_mode & 0o077 == 0
    assert tacit("keys", plan, "-o", keys).code == 1
    request, answer = tmp_path / "request", tmp_path / "answer"
    assert tacit("encrypt", plan, inputs, "--keys", keys, "-o", request, "--json").json["inputs"] == 2
    evaluation = ("--keys", tmp_path / "alice.keys", "-o", answer)
    assert tacit("evaluate-encrypted", small, request, *evaluation, "--threads", 2).code == 0
    got = tacit("decrypt", plan, answer, "--keys", keys, "--json").json
    want = tacit("simulate", small, inputs, "--json").json
    assert (got["logits"], got["output"]) == (want["logits"], want["output"])
    refused = tacit("evaluate-encrypted", small, answer, *evaluation)
    assert refused.code == 1
    assert "request" in refused.err


def test_a_secret_with_a_passphrase(tacit, small, tmp_path):
    plan, keys, one = small.with_suffix(".plan"), tmp_path / "alice", tmp_path / "one.npy"
    np.save(one, np.load(DIGITS)["x"].astype(np.float32).reshape(-1, 1, 28, 28)[:1] / 256)
    (tmp_path / "right").write_text("correct horse\n")
    (tmp_path / "wrong").write_text("correct house\n")
    (tmp_path / "none").write_text("\n")
    for name in ("right", "wrong", "none"):
        (tmp_path / name).chmod(0o600)
    right, wrong = (("--passphrase-file", tmp_path / name) for name in ("right", "wrong"))
    assert "holds no passphrase" in tacit("keys", plan, "-o", keys, "--passphrase-file", tmp_path / "none").err
    assert "no terminal" in tacit("keys", plan, "-o", keys, "--passphrase").err
    assert tacit("keys", plan, "-o", keys, *right, "--json").code == 0
    secret = (tmp_path / "alice.secret").read_bytes()
    assert secret[:9] == b"tacit-he\x05"
    assert b"correct horse" not in secret
    asked = ("encrypt", plan, one, "--keys", keys, "-o", tmp_path / "request")
    assert "there is no terminal to ask for the passphrase" in tacit(*asked).err
    refused = tacit(*asked, *wrong, "--json")
    assert refused.json["error"]["kind"] == "misuse"
    assert "the passphrase of the secret key is wrong" in refused.json["error"]["message"]
    assert not (tmp_path / "request").exists()
    assert tacit(*asked, *right).code == 0
    evaluation = (small, tmp_path / "request", "--keys", tmp_path / "alice.keys", "-o", tmp_path / "answer")
    assert tacit("evaluate-encrypted", *evaluation).code == 0
    read = ("decrypt", plan, tmp_path / "answer", "--keys", keys)
    assert "is wrong" in tacit(*read, *wrong).err
    want = tacit("simulate", small, one, "--json").json
    assert tacit(*read, *right, "--json").json["logits"] == want["logits"]
    (tmp_path / "right").chmod(0o644)
    assert "others may read the passphrase" in tacit(*read, *right).err
    server = ServerProcess(small)
    client = Client(server.address, pin=server.pin, keys=keys, passphrase="correct horse")
    assert client.predict(np.load(one)).outputs.tolist() == want["logits"]
    assert "horse" not in repr(client)
    server.close()


def test_comparisons_are_refused_with_advice(tacit, tmp_path):
    calibration = ASSETS / "mnist_calibration.npz"
    arguments = ("--suite", "lola", "--calibrate", calibration)
    done = tacit("compile", ASSETS / "mnist.onnx", "-o", tmp_path / "x.tacit", *arguments)
    assert done.code == 1
    assert "is a comparison" in done.err


def test_labels_alone_are_refused(tacit, small):
    done = tacit("plan", small, "--reveal", "label")
    assert done.code == 1
    assert "drop --reveal" in done.err
