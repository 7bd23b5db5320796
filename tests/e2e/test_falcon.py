"""Suites falcon-ntt and falcon, and garbled circuits: whole networks, as cheap as planned."""

import json

import numpy as np
import pytest
from conftest import ASSETS, DATA
from tacit.compiler import Options, compile_model
from tacit.model import Model
from tacit.session.pair import Pair
from tacit_lab.reproduce.falcon import cifar

DIGITS = ASSETS / "mnist_digits.npz"
PAPER_MB = {"mnist": 92.5, "cifar": 1194 + 265}


def total_bytes(report, *phases):
    return sum(sum(report["phases"][phase]["bytes"].values()) for phase in phases)


@pytest.fixture(scope="module")
def circuits(tmp_path_factory):
    """The MNIST network with garbled circuits, for a suite."""
    folder = tmp_path_factory.mktemp("circuits")

    def compiled(suite):
        path = folder / f"{suite}.tacit"
        if not path.exists():
            x = np.load(ASSETS / "mnist_calibration.npz")["x"]
            options = Options(suite=suite, nonlinear="gc", rounding="exact")
            compile_model(ASSETS / "mnist.onnx", path, x, options=options)
        return path

    return compiled


@pytest.mark.parametrize("suite", ["auto", "gazelle", "gala", "falcon-ntt"])
def test_networks_equal_the_interpreter(tacit, circuits, suite):
    report = tacit("run", circuits(suite), DIGITS, "--json").json
    assert (report["suite"], report["max_error"], report["equal_outputs"]) == (suite, 0, 10)
    assert report["output"] == list(range(10))
    assert "garbled circuits" in json.dumps(report["layers"])


@pytest.mark.parametrize("reveal", ["output", "label", "probability"])
def test_one_prediction_costs_what_the_plan_says_and_less_than_the_paper(tacit, circuits, one_digit, reveal):
    model = circuits("falcon-ntt")
    plan = tacit("plan", model, "--reveal", reveal, "--json").json
    run = tacit("run", model, one_digit, "--reveal", reveal, "--threads", 1, "--json").json
    for phase, cost in plan["phases"].items():
        measured = run["phases"][phase]
        assert (phase, measured["bytes"], measured["rounds"]) == (phase, cost["bytes"], cost["rounds"])
    assert total_bytes(run, "offline", "online") <= PAPER_MB["mnist"] * 1e6


@pytest.mark.parametrize("suite", ["auto", "falcon-ntt"])
def test_the_best_class_comes_with_its_probability(tacit, circuits, suite):
    report = tacit("run", circuits(suite), DIGITS, "--reveal", "probability", "--json").json
    assert report["output"] == list(range(10))
    assert report["logits"] is None
    assert all(0 < probability <= 1 for probability in report["probability"])
    assert report["max_probability_error"] <= 1e-4
    done = tacit("run", circuits(suite), DIGITS, "--reveal", "probability")
    assert "%)" in done.out


@pytest.fixture(scope="module")
def leaky(tacit, tmp_path_factory):
    """The MNIST network for suite falcon, whose masks leak."""
    path = tmp_path_factory.mktemp("leaky") / "falcon.tacit"
    arguments = ("--suite", "falcon", "--accept-leakage", "--calibrate", ASSETS / "mnist_calibration.npz")
    done = tacit("compile", ASSETS / "mnist.onnx", "-o", path, *arguments)
    assert done.code == 0, done.err
    return path


def test_the_published_system_gives_the_labels(tacit, leaky):
    run = tacit("run", leaky, DIGITS, "--accept-leakage", "--json").json
    assert (run["suite"], run["output"], run["agreement"]) == ("falcon", list(range(10)), 1.0)


def test_the_published_system_costs_what_the_plan_says(tacit, leaky, one_digit):
    plan = tacit("plan", leaky, "--json").json
    run = tacit("run", leaky, one_digit, "--accept-leakage", "--threads", 1, "--json").json
    for phase, cost in plan["phases"].items():
        measured = run["phases"][phase]
        assert (phase, measured["bytes"], measured["rounds"]) == (phase, cost["bytes"], cost["rounds"])
    assert "which leak" in json.dumps(plan["layers"])


def test_a_suite_that_leaks_is_refused_by_every_command(tacit, leaky, one_digit, tmp_path):
    for arguments in (
        ("compile", ASSETS / "mnist.onnx", "-o", tmp_path / "x.tacit", "--suite", "falcon"),
        ("serve", leaky, "--listen", "127.0.0.1:0", "--once"),
        ("run", leaky, one_digit),
        ("evaluate", leaky, DIGITS, "--mode", "private"),
        ("bench", "model", leaky),
    ):
        done = tacit(*arguments)
        assert done.code == 1, arguments
        assert "leaks" in done.err, arguments
        assert "--accept-leakage" in done.err, arguments
    assert not (tmp_path / "x.tacit").exists()
    assert tacit("simulate", leaky, one_digit).code == 0


def test_a_client_refuses_a_suite_that_leaks(tacit, leaky, one_digit):
    with Pair(Model(leaky), accept_leakage=True).server() as server:
        done = tacit("predict", one_digit, "--server", server.address, "--pin", server.pin)
    assert done.code == 1
    assert "suite `falcon` leaks" in done.err
    with Pair(Model(leaky), accept_leakage=True).server() as server:
        done = tacit(
            "predict", one_digit, "--server", server.address, "--pin", server.pin, "--accept-leakage", "--json"
        )
    assert (done.code, done.json["output"]) == (0, [7])


def test_compile_takes_circuits_for_falcon_and_transfers_elsewhere(tacit, tmp_path):
    def protocols(*options):
        path = tmp_path / "x.tacit"
        assert tacit("compile", ASSETS / "mnist.onnx", "-o", path, *options).code == 0
        return {layer["protocol"] for layer in tacit("plan", path, "--json").json["layers"]}

    assert "garbled circuits" in protocols("--suite", "falcon-ntt")
    assert "garbled circuits" not in protocols("--suite", "falcon-ntt", "--nonlinear", "ot")
    assert "garbled circuits" in protocols("--nonlinear", "gc")
    assert "garbled circuits" not in protocols()


@pytest.mark.parametrize(
    "arguments",
    [
        "relu --count 500 --bits 12 --saturate --activation-bits 8 --out-bits 20",
        "maxpool --count 100 --window 4",
        "argmax --count 20",
        "truncate --count 100 --bits 24 --drop 9",
        "extend --count 100 --bits 8 --out-bits 20",
        "matmul --rows 1 --inner 100 --cols 12",
        "conv --height 8 --width 8 --in 4 --out 6 --stride 2 --padding 1",
    ],
)
def test_layers_are_measured_and_exact(tacit, arguments):
    report = tacit("bench", *arguments.split(), "--suite", "falcon-ntt", "--repeat", 1, "--json").json
    assert (report["max_error"], report["checked"] > 0) == (0, True)
    assert "transfer" not in report["layers"][-1]["protocol"]


def test_minionn_on_cifar_stays_below_the_paper(tmp_path):
    if not (DATA / "cifar10").exists() or not (DATA / "models").exists():
        pytest.skip(f"{DATA} has no CIFAR-10 or no models: FALCON's network is not checked")
    model, examples, _ = cifar(tmp_path, DATA, 1)
    report = Pair(Model(model.path), reveal="probability").run(examples.x, examples.y).report
    assert report["agreement"] == 1.0
    assert report["max_probability_error"] <= 1e-4
    assert total_bytes(report, "offline", "online") <= PAPER_MB["cifar"] * 1e6


def test_tables_have_the_papers_numbers_and_ours(tacit):
    tables = tacit("reproduce", "--list", "--json").json["tables"]
    assert {f"falcon-table{number}" for number in range(3, 7)} <= tables.keys()
    for number in (3, 4):
        table = tacit("reproduce", f"falcon-table{number}", "--json").json
        assert all(set(row) == {"name", "paper", "ours", "unit"} for row in table["rows"])
        rows = {row["name"]: row for row in table["rows"] if row["name"].endswith("MB")}
        assert len(rows) >= 8
        setup = [row for name, row in rows.items() if "setup" in name]
        assert all(row["ours"] <= row["paper"] for row in setup)
