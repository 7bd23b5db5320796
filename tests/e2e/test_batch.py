"""Several inputs in one run: they share rounds and ciphertexts, and each gets the result it gets alone."""

import json

import numpy as np
import pytest
from conftest import ASSETS
from tacit import Client, MisuseError
from test_serving import serving

DIGITS = ASSETS / "mnist_digits.npz"


@pytest.fixture(scope="module")
def digits():
    """Ten digits, one of each."""
    with np.load(DIGITS) as content:
        return content["x"].astype(np.float32)


def facts(report):
    """Bytes and rounds of each phase."""
    return {phase: (cost["bytes"], cost["rounds"]) for phase, cost in report["phases"].items()}


def traffic(report):
    """Bytes of the online phase, both ways."""
    return sum(report["phases"]["online"]["bytes"].values())


@pytest.mark.parametrize("rounding", ["exact", "stochastic"])
@pytest.mark.parametrize("reveal", ["output", "label"])
def test_four_digits_share_rounds_and_ciphertexts(tacit, compiled, digits, tmp_path, rounding, reveal):
    four = tmp_path / "four.npy"
    np.save(four, digits[3:7])
    options = (compiled(rounding), "--reveal", reveal)
    one = tacit("plan", *options, "--json").json
    plan = tacit("plan", *options, "--batch", 4, "--json").json
    run = tacit("run", options[0], four, *options[1:], "--batch", 4, "--json").json
    assert (run["inputs"], run["output"], run["agreement"]) == (4, [3, 4, 5, 6], 1.0)
    assert run["batch"] == plan["batch"] == 4
    assert "batch" not in one
    assert facts(run) == facts(plan)
    assert run["phases"]["online"]["rounds"] == one["phases"]["online"]["rounds"]
    assert traffic(run) < 0.85 * 4 * traffic(one), (traffic(run), traffic(one))


@pytest.mark.parametrize("store", [0, 2])
def test_the_last_run_may_lack_inputs(tacit, compiled, store):
    report = tacit(
        *("evaluate", compiled("exact"), DIGITS, "--mode", "private"),
        *("--batch", 4, "--offline", store, "--json"),
    ).json
    assert (report["inputs"], report["output"]) == (10, list(range(10)))
    assert (report["max_error"], report["top1"]) == (0, 1.0)


def test_a_bench_fills_its_batch(tacit, compiled):
    content = tacit("bench", "model", compiled("exact"), "--batch", 3, "--repeat", 1, "--json").json
    assert (content["inputs"], content["batch"], content["max_error"]) == (3, 3, 0)


def test_clients_and_open_sessions_follow_the_servers_batch(compiled, digits):
    with serving(compiled("exact"), "--batch", "3") as (process, line):
        client = Client(line["listening"], pin=line["pin"])
        whole = client.predict(digits[:5])
        reports = [json.loads(process.stdout.readline())]
        with client.session(inputs=2) as session:
            with pytest.raises(MisuseError, match="at a time"):
                session.predict(digits[:4])
            some = [session.predict(digits[7:9]), session.predict(digits[2])]
        reports.append(json.loads(process.stdout.readline()))
    assert whole.classes.tolist() == list(range(5))
    assert [prediction.classes.tolist() for prediction in some] == [[7, 8], [2]]
    assert (whole.report["inputs"], session.report["inputs"]) == (5, 3)
    assert [(report["inputs"], report["end"]) for report in reports] == [(5, "finished"), (6, "finished")]


@pytest.mark.parametrize("batch", [0, 16385])
def test_batches_out_of_range_are_wrong_usage(tacit, compiled, batch):
    assert tacit("plan", compiled("exact"), "--batch", batch, "--json").code == 2


def test_only_lola_has_batches_of_thousands(tacit, compiled):
    refused = tacit("plan", compiled("exact"), "--batch", 65, "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (1, "misuse")
    assert "at most 64" in refused.err


def test_a_budget_below_a_batch_is_refused(tacit, compiled):
    listen = ("--listen", "127.0.0.1:0", "--batch", 8, "--max-inputs", 7)
    refused = tacit("serve", compiled("exact"), *listen, "--json")
    assert "less than a batch of 8" in refused.json["error"]["message"], refused
