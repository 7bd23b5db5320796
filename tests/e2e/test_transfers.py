"""Digits under suite ufo: batches, stores, sources of transfers, and what clients learn."""

import numpy as np
import pytest
from conftest import ASSETS
from tacit import Client
from test_serving import serving

DIGITS = ASSETS / "mnist_digits.npz"


@pytest.mark.parametrize(
    "options",
    [
        ("--batch", 4),
        ("--offline", 2),
        ("--batch", 4, "--offline", 2),
        ("--ot", "softspoken8", "--threads", 2),
        ("--network", "2ms,1000"),
    ],
)
def test_every_way_of_running_gives_the_integers_of_the_interpreter(tacit, compiled, options):
    model = compiled("exact", "ufo")
    report = tacit("evaluate", model, DIGITS, "--mode", "private", *options, "--json").json
    assert (report["inputs"], report["output"]) == (10, list(range(10)))
    assert (report["max_error"], report["top1"]) == (0, 1.0)


@pytest.mark.parametrize("reveal", ["label", "probability"])
def test_less_than_all_logits(tacit, compiled, one_digit, reveal):
    options = (compiled("exact", "ufo"), "--reveal", reveal)
    run = tacit("run", options[0], one_digit, *options[1:], "--json").json
    plan = tacit("plan", *options, "--json").json
    assert (run["output"], run["agreement"]) == ([7], 1.0)
    facts = [{name: (phase["bytes"], phase["rounds"]) for name, phase in r["phases"].items()} for r in (run, plan)]
    assert facts[0] == facts[1]


def test_base_transfers_with_ml_kem_cost_what_the_plan_says(tacit, compiled, one_digit):
    model = compiled("exact", "ufo")
    both = [tacit("run", model, one_digit, *options, "--json").json for options in ((), ("--post-quantum",))]
    plan = tacit("plan", model, "--post-quantum", "--json").json
    assert [(report["output"], report["agreement"]) for report in both] == [([7], 1.0)] * 2
    assert (both[1]["post_quantum"], "post_quantum" in both[0]) == (True, False)
    assert (both[1]["bytes"], both[1]["rounds"]) == (plan["bytes"], plan["rounds"])
    up, down = (both[1]["bytes"][way] - both[0]["bytes"][way] for way in ("client_to_server", "server_to_client"))
    offer = len('"post_quantum":true,')
    assert (up, down) == (436_234, 436_234 + offer)
    assert both[0]["rounds"] == both[1]["rounds"]


def test_prepared_runs_send_masked_shares_only(tacit, compiled):
    phases = tacit("plan", compiled("exact", "ufo"), "--json").json["phases"]
    online, offline = (sum(phases[name]["bytes"].values()) for name in ("online", "offline"))
    assert online < offline / 8, (online, offline)
    assert phases["offline"]["rounds"] <= 4


def test_a_session_prepares_while_its_client_waits(compiled):
    with np.load(DIGITS) as content:
        digits = content["x"].astype(np.float32)
    with serving(compiled("exact", "ufo"), "--offline", "2") as (_, line):
        client = Client(line["listening"], pin=line["pin"])
        with client.session(inputs=3) as session:
            outputs = [int(session.predict(digit).outputs.argmax()) for digit in digits[4:7]]
    assert outputs == [4, 5, 6]
