"""Private runs between two processes: equal to the interpreter, metered, and within budget."""

import pytest
from conftest import ASSETS

DIGITS = ASSETS / "mnist_digits.npz"
BOTH = {"client_to_server", "server_to_client"}


@pytest.fixture(scope="module")
def exact_run(tacit, compiled):
    """Report of a run over the ten digits with exact rounding."""
    done = tacit("run", compiled("exact"), DIGITS, "--json")
    assert done.code == 0, done.err
    return done.json


def test_exact_rounding_equals_the_interpreter(exact_run):
    assert exact_run["max_error"] == 0
    assert exact_run["equal_outputs"] == 10
    assert exact_run["output"] == list(range(10))
    assert exact_run["top1"] == 1.0


def test_the_report_has_every_field(exact_run):
    for cost in (exact_run, *exact_run["phases"].values()):
        assert set(cost["bytes"]) == BOTH
        assert cost["rounds"] >= 0
        assert cost["seconds"] >= 0
    for field in ("cpu_seconds", "peak_memory_bytes"):
        assert min(exact_run[field][party] for party in ("client", "server")) > 0
    assert exact_run["key_exchange"] == "X25519MLKEM768"
    assert set(exact_run["phases"]) == {"setup", "offline", "online"}
    assert {"conv1", "fc2"} <= {layer["name"] for layer in exact_run["layers"]}


def test_totals_are_sums_over_phases(exact_run):
    phases = exact_run["phases"].values()
    for direction in BOTH:
        assert exact_run["bytes"][direction] == sum(phase["bytes"][direction] for phase in phases)
    assert exact_run["rounds"] == sum(phase["rounds"] for phase in phases)


def test_stochastic_rounding_keeps_the_labels(tacit, compiled):
    report = tacit("run", compiled("stochastic"), DIGITS, "--json").json
    assert report["output"] == list(range(10))
    assert report["agreement"] == 1.0


def test_only_labels(tacit, compiled):
    report = tacit("run", compiled("exact"), DIGITS, "--reveal", "label", "--json").json
    assert report["output"] == list(range(10))
    assert (report["max_error"], report["logits"]) == (None, None)


@pytest.mark.parametrize("reveal", ["output", "label"])
@pytest.mark.parametrize("rounding", ["exact", "stochastic"])
def test_one_prediction_costs_what_the_plan_says(tacit, compiled, one_digit, reveal, rounding):
    plan = tacit("plan", compiled(rounding), "--reveal", reveal, "--json").json
    run = tacit("run", compiled(rounding), one_digit, "--reveal", reveal, "--threads", 1, "--json").json
    for phase, cost in plan["phases"].items():
        measured = run["phases"][phase]
        assert (phase, measured["bytes"], measured["rounds"]) == (phase, cost["bytes"], cost["rounds"])
    assert sum(run["phases"]["online"]["bytes"].values()) <= 1_500_000
    assert sum(run["phases"]["setup"]["bytes"].values()) <= 2_000_000


@pytest.mark.parametrize("store", [1, 2, 5])
def test_prepared_predictions_cost_little_online_and_what_the_plan_says(tacit, compiled, one_digit, store):
    usual = tacit("plan", compiled("exact"), "--json").json
    plan = tacit("plan", compiled("exact"), "--offline", store, "--json").json
    run = tacit("run", compiled("exact"), one_digit, "--offline", store, "--json").json
    for phase, cost in plan["phases"].items():
        measured = run["phases"][phase]
        assert (phase, measured["bytes"], measured["rounds"]) == (phase, cost["bytes"], cost["rounds"])
    online = [sum(content["phases"]["online"]["bytes"].values()) for content in (plan, usual)]
    assert online[0] < 0.6 * online[1], online
    batch = tacit(
        "evaluate", compiled("exact"), DIGITS, "--mode", "private", "--limit", 4, "--offline", store, "--json"
    )
    assert (batch.json["output"], batch.json["max_error"]) == ([0, 1, 2, 3], 0)


def test_a_store_beyond_memory_is_refused(tacit, compiled):
    refused = tacit("plan", compiled("exact"), "--offline", 1_000_000, "--json")
    assert "prepare fewer" in refused.json["error"]["message"], refused


def test_evaluate_reports_quality_and_cost(tacit, compiled):
    content = tacit("evaluate", compiled("exact"), DIGITS, "--mode", "private", "--limit", 3, "--json").json
    assert (content["mode"], content["inputs"], content["output"]) == ("private", 3, [0, 1, 2])
    assert (content["top1"], content["max_error"]) == (1.0, 0)
    assert set(content["bytes"]) == BOTH


def test_bench_says_where_it_ran(tacit, compiled, one_digit):
    content = tacit("bench", "model", compiled("exact"), "--input", one_digit, "--repeat", 2, "--json").json
    assert (content["bench"], content["threads"], len(content["all_seconds"])) == ("model", 1, 2)
    assert content["machine"]["cores"] >= 1
    assert set(content["phases"]) == {"setup", "offline", "online"}


def test_the_demonstration(tacit, tmp_path):
    done = tacit("demo", "--folder", tmp_path)
    assert done.code == 0, done.err
    for digit in range(10):
        assert f"predicted {digit}" in done.out
    assert "Who learned what" in done.out
    assert "mnist_test.npz holds 10 test images only" in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"mnist.tacit", "mnist_test.npz"}
