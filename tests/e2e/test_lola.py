"""Suite lola: one message each way, over a connection and by files."""

import numpy as np
import pytest
from conftest import ASSETS

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
