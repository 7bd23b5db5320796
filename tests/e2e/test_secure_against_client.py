"""Models that are secure against their client: compiled, run, served, and what is refused of them."""

import json

import numpy as np
import pytest
import real_networks
from conftest import ASSETS, DATA, ROOT
from test_serving import serving

DIGITS = ASSETS / "mnist_digits.npz"
MODE = ("--secure-against", "client")
TREES = ROOT / "tests" / "data" / "trees"
MOST = {"minionn": 250e6, "resnet20": 250e6}
"""Networks of CIFAR-10, and the bytes that a run of them stays below."""


@pytest.fixture(scope="module")
def checked(tacit, tmp_path_factory):
    """The shipped network 784-128-128-10."""
    path = tmp_path_factory.mktemp("checked") / "mlp.tacit"
    calibration = ("--calibrate", ASSETS / "mnist_calibration.npz")
    done = tacit("compile", ASSETS / "mnist_mlp.onnx", "-o", path, *calibration, *MODE, "--json")
    assert done.code == 0, done.err
    assert (done.json["suite"], done.json["secure_against"]) == ("checked", "client")
    return path


def facts(costs):
    """Bytes and rounds, phase by phase."""
    return {phase: (cost["bytes"], cost["rounds"]) for phase, cost in costs["phases"].items()}


@pytest.mark.parametrize("source", ["auto", "softspoken8", "ferret"])
def test_results_are_exact_and_cost_what_was_planned(tacit, checked, source):
    plan = tacit("plan", checked, "--ot", source, "--json").json
    run = tacit("run", checked, DIGITS, "--ot", source, "--json").json
    assert (run["max_error"], run["equal_outputs"], run["secure_against"]) == (0, 10, "client")
    assert facts(run) == facts(run["predicted"])
    one = tacit("bench", "model", checked, "--ot", source, "--repeat", 1, "--json").json
    assert facts(one) == facts(plan)
    assert sum(one["bytes"].values()) < 2e6


def test_runs_are_prepared_before_their_inputs(tacit, checked):
    plan = tacit("plan", checked, "--offline", 2, "--json").json
    run = tacit("run", checked, DIGITS, "--offline", 2, "--json").json
    assert (run["max_error"], run["equal_outputs"]) == (0, 10)
    assert facts(run) == facts(run["predicted"])
    online, usual = plan["phases"]["online"], tacit("plan", checked, "--json").json["phases"]["online"]
    assert 2 * sum(online["bytes"].values()) < sum(usual["bytes"].values())


def test_inputs_of_a_batch_share_the_key_and_the_check(tacit, checked):
    """Ten digits in batches of four, the last of which has two places that are empty; threads change no byte."""
    runs = [tacit("run", checked, DIGITS, "--batch", 4, *threads, "--json").json for threads in ((), ("--threads", 2))]
    for run in runs:
        assert (run["max_error"], run["equal_outputs"]) == (0, 10)
        assert facts(run) == facts(run["predicted"])
    assert facts(runs[0]) == facts(runs[1])
    alone = tacit("run", checked, DIGITS, "--json").json
    assert sum(runs[0]["bytes"].values()) < sum(alone["bytes"].values())
    assert 2 * runs[0]["rounds"] < alone["rounds"]


def test_labels_are_found_before_anything_is_opened(tacit, checked):
    run = tacit("run", checked, DIGITS, "--reveal", "label", "--json").json
    assert (run["output"], run["agreement"], run["logits"]) == (list(range(10)), 1, None)
    assert facts(run) == facts(run["predicted"])


def test_convolutions_and_maximum_pools_are_exact(tacit, tmp_path, one_digit):
    path = tmp_path / "mnist.tacit"
    calibration = ("--calibrate", ASSETS / "mnist_calibration.npz")
    assert tacit("compile", ASSETS / "mnist.onnx", "-o", path, *calibration, *MODE).code == 0
    run = tacit("run", path, one_digit, "--json").json
    assert (run["output"], run["max_error"]) == ([7], 0)
    assert facts(run) == facts(run["predicted"])


@pytest.mark.parametrize(("name", "most"), MOST.items())
def test_residual_sums_and_average_pools_are_exact(tacit, tmp_path, name, most):
    """Few images calibrate: this is about operators and costs."""
    if not (DATA / "models").exists():
        pytest.skip(f"{DATA} has no models: {name} is not checked")
    network, path = real_networks.NETWORKS[name], tmp_path / "x.tacit"
    test, calibration = real_networks.images(network.data, DATA)
    np.savez(tmp_path / "calibration.npz", x=calibration.x[::8])
    np.savez(tmp_path / "one.npz", x=test.x[:1])
    (tmp_path / "pixels.json").write_text(network.preprocessing.to_json())
    options = ("--calibrate", tmp_path / "calibration.npz", "--preprocess", tmp_path / "pixels.json")
    assert tacit("compile", DATA / "models" / network.file, "-o", path, *options, *MODE, seconds=300).code == 0
    run = tacit("run", path, tmp_path / "one.npz", "--json", seconds=300).json
    assert (run["max_error"], run["equal_outputs"], run["secure_against"]) == (0, 1, "client")
    assert facts(run) == facts(run["predicted"])
    assert sum(run["bytes"].values()) < most


@pytest.mark.parametrize("name", ["xgboost-sets", "lightgbm-binary", "catboost-multiclass"])
def test_leaves_of_trees_are_exact(tacit, tmp_path, name):
    stored = json.loads((TREES / f"{name}.expected.json").read_text())
    model, table = tmp_path / "model.tacit", tmp_path / "rows.npy"
    np.save(table, np.asarray(stored["rows"], np.uint32).view(np.float32)[-3:])
    done = tacit("compile", TREES / stored["model"], "-o", model, *MODE, "--json").json
    assert (done["suite"], done["secure_against"]) == ("checked", "client")
    run = tacit("run", model, table, "--json").json
    assert run["logits"] == tacit("simulate", model, table, "--json").json["logits"]
    assert (run["max_error"], run["equal_outputs"], run["secure_against"]) == (0, 3, "client")
    assert facts(run) == facts(run["predicted"])
    refused = tacit("run", model, table, "--reveal", "label")
    assert (refused.code, "--secure-against client" in " ".join(refused.err.split())) == (1, True)


def test_server_and_client_say_it(tacit, checked, one_digit):
    with serving(checked, *MODE) as (_, line):
        arguments = (one_digit, "--server", line["listening"], "--pin", line["pin"])
        done = tacit("predict", *arguments, "--json").json
        shown = tacit("predict", *arguments)
    assert (done["output"], done["secure_against"]) == ([7], "client")
    assert "secure against clients that send anything" in " ".join(shown.out.split())


def test_servers_refuse_models_that_are_not(tacit, compiled):
    done = tacit("serve", compiled(), "--listen", "127.0.0.1:0", *MODE)
    assert done.code == 1
    assert "compile it with --secure-against client" in " ".join(done.err.split())


def test_what_has_no_checked_form_is_refused(tacit, checked, one_digit):
    done = tacit("run", checked, one_digit, "--reveal", "probability")
    assert done.code == 1
    assert "--secure-against client" in done.err


def test_networks_without_a_checked_form_are_refused_when_they_are_compiled(tacit, tmp_path):
    path = tmp_path / "x.tacit"
    done = tacit("compile", ASSETS / "lola_small.onnx", "-o", path, *MODE)
    assert done.code == 1
    assert "--secure-against client" in done.err
    assert not path.exists()
    done = tacit("compile", ASSETS / "mnist_mlp.onnx", "-o", path, *MODE, "--suite", "gala")
    assert done.code == 2
    assert "drop --suite" in " ".join(done.err.split())
