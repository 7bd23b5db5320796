"""The command line: help, JSON, and errors in one line."""

import numpy as np
import pytest
from conftest import ASSETS
from networks import Network
from tacit.model import Model
from tacit.session.client import Prediction

COMMANDS = {
    "compile": [
        "--suite",
        "--calibrate",
        "--weight-bits",
        "--activation-bits",
        "--rounding",
        "--input-range",
        "--sequence",
    ],
    "keys": ["--output"],
    "encrypt": ["--keys", "--output", "--threads"],
    "evaluate-encrypted": ["--keys", "--output", "--threads"],
    "decrypt": ["--keys"],
    "inspect": [],
    "plan": ["--network", "--reveal", "--protocols", "--explain", "--compare"],
    "calibrate": ["--runs"],
    "simulate": [],
    "serve": ["--network", "--listen", "--reveal", "--client-ca", "--plaintext"],
    "predict": ["--network", "--server", "--pin", "--ca", "--plaintext", "--tokenizer", "--text"],
    "token": ["--reveal"],
    "budget show": ["--ledger", "--client", "--model"],
    "budget set": [
        "--ledger",
        "--client",
        "--model",
        "--total",
        "--per-day",
        "--per-minute",
        "--unlimited",
        "--default",
    ],
    "budget reset": ["--ledger", "--client", "--model", "--all"],
    "run": ["--network", "--reveal", "--threads"],
    "evaluate": ["--network", "--mode", "--limit", "--model", "--metric"],
    "bench model": ["--repeat", "--threads", "--network"],
    "bench relu": ["--count", "--bits", "--out-bits", "--saturate", "--repeat", "--network", "--suite"],
    "bench maxpool": ["--count", "--bits", "--window"],
    "bench argmax": ["--count", "--bits"],
    "bench truncate": ["--count", "--bits", "--drop", "--out-bits"],
    "bench extend": ["--count", "--bits", "--out-bits", "--non-negative"],
    "bench compare": ["--count", "--bits", "--radix"],
    "bench lookup": ["--count", "--bits", "--out-bits"],
    "bench multiply": ["--count", "--bits", "--second-bits", "--out-bits", "--non-negative", "--radix"],
    "bench conv": ["--height", "--in", "--out", "--kernel", "--stride", "--padding", "--dilation", "--groups"],
    "bench matmul": ["--rows", "--inner", "--cols", "--weight-bits", "--activation-bits"],
    "bench ot": ["--kind", "--count"],
    "report": ["--output", "--title", "--plan", "--network", "--open"],
    "reproduce": ["--full", "--list", "--figure", "--all", "--only", "--output", "--again"],
    "chat": ["--tokens", "--threads", "--network"],
    "demo": ["--folder", "--mnist"],
    "demo-text": ["--folder", "--model"],
}
DIGITS = ASSETS / "mnist_digits.npz"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_with_an_example(tacit, command):
    done = tacit(*command.split(), "--help")
    assert done.code == 0
    assert f"Example: tacit {command}" in done.out
    for option in [*COMMANDS[command], "--json"]:
        assert option in done.out


def test_version(tacit):
    assert tacit("--version").out.startswith("tacit ")


@pytest.mark.parametrize(
    "arguments", [["run", "--frobnicate"], ["nothing"], ["compile", "m.onnx"], ["plan", "x", "--reveal", "all"]]
)
def test_wrong_usage(tacit, arguments):
    done = tacit(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")


def test_compile_without_data_warns_on_standard_error(tacit, tmp_path):
    path = tmp_path / "x.tacit"
    done = tacit("compile", ASSETS / "mnist.onnx", "-o", path, "--input-range", "0,1", "--json")
    assert done.code == 0
    assert done.err.startswith("warning: no --calibrate")
    names = [layer["name"] for layer in done.json["layers"]]
    assert {"conv1", "conv2", "fc1", "fc2"} <= set(names)
    assert path.exists()


def test_compile_says_what_it_wrote_and_what_goes_in_and_out(tacit, tmp_path):
    path = tmp_path / "x.tacit"
    summary = tacit("compile", ASSETS / "mnist.onnx", "-o", path, "--json").json
    assert summary["file"] == str(path)
    assert summary["input"]["shape"] == [1, 28, 28]
    assert summary["output"]["shape"] == [10]
    assert summary["output"]["scale"] > 0


def test_compile_names_what_it_cannot_run(tacit, tmp_path):
    model = Network().add("Atan", name="squash").save(tmp_path)
    done = tacit("compile", model, "-o", tmp_path / "x.tacit")
    assert done.code == 1
    assert "error: node `squash`: operator Atan is not supported; " in done.err
    assert not (tmp_path / "x.tacit").exists()


def test_simulate(tacit, compiled, one_digit):
    content = tacit("simulate", compiled("exact"), one_digit, "--json").json
    assert content["output"] == [7]
    assert np.array(content["logits"]).shape == (1, 10)
    assert content["output_scale"] > 0


@pytest.mark.parametrize(
    ("filters", "dense", "said"),
    [(2, None, "2x4x4 numbers from -"), (1, 1, "input 0: "), (1, 3, "class")],
)
def test_results_are_shown_as_what_they_are(tacit, tmp_path, filters, dense, said):
    """An image, a number and classes: on the terminal, in JSON and in Python, in the clear and in private."""
    rng = np.random.default_rng(1)
    network = Network(("N", 1, 4, 4))
    kernel = network.constant("w", rng.normal(size=(filters, 1, 3, 3)).astype(np.float32))
    network.add("Conv", kernel, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    if dense:
        network.add("Flatten")
        network.add("MatMul", network.constant("d", rng.normal(size=(16, dense)).astype(np.float32)))
    path, x = tmp_path / "x.tacit", tmp_path / "x.npy"
    np.save(x, rng.random((2, 1, 4, 4)).astype(np.float32))
    assert tacit("compile", network.save(tmp_path), "-o", path).code == 0
    shown = tacit("run", path, x).out
    assert said in shown
    assert ("class" in shown) == (said == "class")
    content = tacit("simulate", path, x, "--json").json
    assert content["shape"] == list(Model(path).output_shape)
    private = tacit("run", path, x, "--json").json
    assert private["shape"] == content["shape"]
    prediction = Prediction(np.array(private["logits"]), private)
    assert prediction.results.shape == (2, *content["shape"])
    np.testing.assert_array_equal(prediction.results.reshape(2, -1), prediction.logits)


@pytest.mark.parametrize("command", ["simulate", "run"])
def test_inputs_beside_the_range_are_said_or_refused(tacit, compiled, tmp_path, command):
    inside, outside = tmp_path / "inside.npy", tmp_path / "outside.npy"
    x = np.linspace(0, 1, 784, dtype=np.float32).reshape(1, 28, 28)
    np.save(inside, x)
    x.flat[:196] = -2
    np.save(outside, x)
    path = compiled("exact")
    quiet = tacit(command, path, inside, "--strict", "--json")
    assert quiet.json["clipped"] == 0
    assert "warning" not in quiet.err
    loud = tacit(command, path, outside, "--json")
    assert loud.json["clipped"] == 0.25
    assert "warning: 25.00% of the input's values are outside of 0 to 1" in loud.err
    refused = tacit(command, path, outside, "--strict")
    assert refused.code == 1
    assert "and are cut; scale inputs as in training" in refused.err
    assert " -2" not in refused.err + loud.err


@pytest.mark.parametrize("reveal", ["output", "label"])
def test_plan(tacit, compiled, reveal):
    content = tacit("plan", compiled("exact"), "--reveal", reveal, "--network", "20ms,100", "--json").json
    assert set(content["phases"]) == {"setup", "offline", "online"}
    for direction in ("client_to_server", "server_to_client"):
        assert content["bytes"][direction] == sum(p["bytes"][direction] for p in content["phases"].values())
    assert content["rounds"] == sum(phase["rounds"] for phase in content["phases"].values())
    assert content["network_seconds"] > 0
    assert {"conv1", "fc2"} <= {layer["name"] for layer in content["layers"]}


def test_inputs_of_the_wrong_kind(tacit, compiled, tmp_path):
    path = tmp_path / "in.npy"
    for x, word in ((np.zeros((1, 28, 28)), "float32"), (np.zeros((28, 28), np.float32), "[1, 28, 28]")):
        np.save(path, x)
        done = tacit("run", compiled("exact"), path)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: ")
        assert word in done.err


@pytest.mark.parametrize("keep", [0, 7, 100, 5000, -1])
def test_corrupt_models(tacit, compiled, tmp_path, keep):
    path = tmp_path / "corrupt.tacit"
    path.write_bytes(compiled("exact").read_bytes()[:keep])
    for arguments in (("plan", path), ("simulate", path, DIGITS), ("serve", path, "--listen", "127.0.0.1:0")):
        done = tacit(*arguments, seconds=30)
        assert done.code == 1
        assert "error: " in done.err


def test_absent_models(tacit, tmp_path):
    done = tacit("run", tmp_path / "absent.tacit", DIGITS)
    assert done.code == 1
    assert "absent.tacit" in done.err


def test_plain_mode_needs_the_float_model(tacit, compiled):
    done = tacit("evaluate", compiled("exact"), DIGITS, "--mode", "plain")
    assert done.code == 1
    assert "--model" in done.err


def test_plain_and_simulate_modes(tacit, compiled):
    plain = tacit("evaluate", compiled("exact"), DIGITS, "--mode", "plain", "--model", ASSETS / "mnist.onnx", "--json")
    simulated = tacit("evaluate", compiled("exact"), DIGITS, "--mode", "simulate", "--limit", 4, "--json")
    assert (plain.json["top1"], plain.json["output"]) == (1.0, list(range(10)))
    assert (simulated.json["top1"], simulated.json["output"]) == (1.0, list(range(4)))
