"""Suites gazelle and gala: whole networks on packed slots, exact and as cheap as planned."""

import json
from pathlib import Path

import pytest
from conftest import ASSETS
from tacit_lab.reproduce import gala

DIGITS = ASSETS / "mnist_digits.npz"
SUITES = ["gazelle", "gala"]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("network", ["mnist", "mnist_mlp"])
def test_networks_equal_the_interpreter(tacit, compiled, suite, network):
    report = tacit("run", compiled("stochastic", suite, network), DIGITS, "--json").json
    assert (report["suite"], report["max_error"], report["equal_outputs"]) == (suite, 0, 10)
    assert report["output"] == list(range(10))


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("reveal", ["output", "label"])
def test_one_prediction_costs_what_the_plan_says(tacit, compiled, one_digit, suite, reveal):
    model = compiled("stochastic", suite)
    plan = tacit("plan", model, "--reveal", reveal, "--json").json
    run = tacit("run", model, one_digit, "--reveal", reveal, "--threads", 1, "--json").json
    for phase, cost in plan["phases"].items():
        measured = run["phases"][phase]
        assert (phase, measured["bytes"], measured["rounds"]) == (phase, cost["bytes"], cost["rounds"])
    counted = [layer["operations"] for layer in run["layers"] if "operations" in layer]
    assert len(counted) == 4
    assert all(operations["multiplications"] > 0 for operations in counted)


def test_the_perceptron_takes_less_than_four_fifths_of_a_megabyte(tacit, compiled, one_digit):
    """The first layer takes N = 8192: it needs 109 bits of modulus, and N = 4096 has 128 bits of security up to 106."""
    run = tacit("run", compiled("stochastic", "gala", "mnist_mlp"), one_digit, "--json").json
    assert sum(sum(run["phases"][phase]["bytes"].values()) for phase in ("offline", "online")) <= 800_000
    assert "N = 8192" in json.dumps(run["layers"])


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("option", ["--batch", "--offline"])
def test_what_slots_do_not_do_is_refused(tacit, compiled, one_digit, suite, option):
    done = tacit("run", compiled("stochastic", suite), one_digit, option, 2)
    assert (done.code, done.out) == (1, "")
    assert "one by one" in done.err


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize(
    "arguments",
    ["matmul --rows 1 --inner 100 --cols 12", "conv --height 8 --width 8 --in 4 --out 6 --stride 2 --padding 1"],
)
def test_layers_are_measured_and_exact(tacit, suite, arguments):
    report = tacit("bench", *arguments.split(), "--suite", suite, "--repeat", 1, "--json").json
    assert (report["suite"], report["max_error"]) == (suite, 0)
    assert report["checked"] > 0


def test_operations_are_counted_without_weights(tacit):
    counted = {suite: tacit("plan", "resnet152", "--suite", suite, "--json").json for suite in SUITES}
    assert counted["gala"]["operations"]["rotations"] < counted["gazelle"]["operations"]["rotations"]
    assert len(counted["gala"]["layers"]) == 156
    done = tacit("plan", "mlp", "--suite", "auto")
    assert (done.code, "has no packed slots" in done.err) == (1, True)


def test_tables_have_the_papers_numbers_and_ours(tacit):
    tables = tacit("reproduce", "--list", "--json").json["tables"]
    assert {"gala-operations", "gala-matvec", "gala-conv", "gala-networks", "gala-accuracy"} <= tables.keys()
    table = tacit("reproduce", "gala-operations", "--json").json
    rows = {row["name"]: row for row in table["rows"]}
    assert all(set(row) == {"name", "paper", "ours", "unit"} for row in table["rows"])
    mlp = rows["MLP 784-128-128-10, GALA"]
    assert mlp["ours"] <= mlp["paper"] == 55
    products = tacit("reproduce", "gala-matvec", "--json").json
    assert all(row["paper"] == row["ours"] for row in products["rows"])


def test_linear_layers_take_a_part_of_the_time():
    assert gala.activations("mlp") == 256
    assert gala.activations("vgg16") == 276480
    assert gala.activations("resnet18") == 557056
    content = gala.gala_percentages(False, Path())
    assert [row["paper"] for row in content["rows"]] == [97.7, 98.2, 98.3, 98.5, 98.4, 98]
    assert all(0 < row["ours"] < 100 for row in content["rows"])
    networks = content["measured"][1:]
    shares = [entry[suite] for entry in networks for suite in ("gala_gc", "gazelle_gc")]
    assert all(0 < share < 100 for share in shares)


def test_linear_layers_take_a_smaller_part_under_gala_by_operations(monkeypatch):
    """At given prices, so that nothing is timed: five products a rotation, hoisted or not, as the paper counts them."""
    prices = gala.Prices(product=7e-5, rotation=3.5e-4, hoisted=3.5e-4)
    monkeypatch.setattr(gala, "prices", lambda: prices)
    monkeypatch.setattr(gala, "relu_seconds", {"gc": 2e-6, "ot": 1e-6}.__getitem__)
    networks = gala.gala_percentages(False, Path())["measured"][1:]
    assert len(networks) == 6
    for nonlinear in ("gc", "ot"):
        assert all(0 < entry[f"gala_{nonlinear}"] <= entry[f"gazelle_{nonlinear}"] < 100 for entry in networks)


def test_transforms_stand_beside_rotations_and_the_published_form(tacit):
    table = tacit("reproduce", "falcon-table2", "--json").json
    rows = {row["name"]: row for row in table["rows"]}
    assert all(set(row) == {"name", "paper", "ours", "unit"} for row in table["rows"])
    for layer, paper in (
        ("28x28x1 to 5, 5x5", 36.8),
        ("16x16x128 to 128, 3x3", 13.8),
        ("2048 to 1", 80),
        ("1024 to 16", 9.8),
    ):
        assert rows[f"{layer}, GAZELLE/FALCON, up to the masks"]["paper"] == pytest.approx(paper, abs=0.06)
        assert rows[f"{layer}, falcon/falcon-ntt, products"]["ours"] == 4
        assert rows[f"{layer}, falcon/falcon-ntt, bytes"]["ours"] >= 2
    assert {entry["name"] for entry in table["measured"]} == {name.rsplit(", ", 2)[0] for name in rows}


def test_a_figure_is_drawn(tacit, tmp_path):
    path = tmp_path / "figure.svg"
    assert tacit("reproduce", "gala-networks", "--figure", path).code == 0
    assert "ResNet-152" in path.read_text() or path.stat().st_size > 10_000
    done = tacit("reproduce", "gala-operations", "--figure", path)
    assert (done.code, "has no figure" in done.err) == (1, True)


def test_unknown_tables_are_named(tacit):
    done = tacit("reproduce", "table-1")
    assert (done.code, "there is no table `table-1`" in done.err) == (1, True)
