"""Plans for a link: chosen protocols, predicted seconds, calibration, comparison of suites."""

import json
from pathlib import Path

import numpy as np
import pytest
from tacit.measure import calibration

LINKS = ("loopback", "lan", "wan")
REFERENCE = Path(__file__).parents[2] / "crates" / "pricing" / "src" / "reference.json"

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """No rates of this machine: what is planned does not depend on it."""
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("link", LINKS)
def test_a_run_costs_what_was_planned_for_its_link(link, tacit, compiled, one_digit):
    model = compiled()
    planned = tacit("plan", model, "--network", link, "--json").json
    run = tacit("run", model, one_digit, "--network", link, "--json").json
    for field in ("bytes", "rounds"):
        assert run[field] == planned[field] == run["predicted"][field]
        for phase in ("setup", "offline", "online"):
            assert run["phases"][phase][field] == planned["phases"][phase][field]
    assert run["plan"].get("choices", {}).keys() <= {str(step) for step in range(len(planned["layers"]))}
    assert run["agreement"] == 1.0


def test_on_slow_links_rounds_are_saved_and_seconds_told(tacit, compiled):
    model = compiled()
    plain = tacit("plan", model, "--network", "wan", "--protocols", "plain", "--json").json
    planned = tacit("plan", model, "--network", "wan", "--json").json
    assert planned["rounds"] < plain["rounds"]
    assert planned["seconds"] < plain["seconds"]
    assert planned["choices"]
    assert not plain["choices"]
    seconds = sum(phase["seconds"] for phase in planned["phases"].values())
    assert planned["seconds"] == pytest.approx(seconds)
    assert seconds == pytest.approx(sum(layer["seconds"] for layer in planned["layers"]))
    assert planned["network_seconds"] < planned["seconds"]
    assert all(layer["memory_bytes"] >= 0 for layer in planned["layers"] if layer["phase"] == "online")


def test_a_layer_is_explained(tacit, compiled):
    told = tacit("plan", compiled(), "--network", "wan", "--explain", "relu1", "--json").json
    ways = told["alternatives"]
    assert told["layer"]["name"] == "relu1"
    assert [way["chosen"] for way in ways].count(True) == 1
    assert ways[0]["chosen"]
    assert ways[0]["slower"] == pytest.approx(0, abs=1e-9)
    circuits = next(way for way in ways if way["choice"] == "circuits")
    assert circuits["rounds"] < min(way["rounds"] for way in ways if way is not circuits)
    assert circuits["bytes"] > ways[0]["bytes"] or ways[0] is circuits
    shown = tacit("plan", compiled(), "--network", "wan", "--explain", "relu1").out
    assert "chosen" in shown
    missing = tacit("plan", compiled(), "--network", "wan", "--explain", "relu9")
    assert missing.code == 1
    assert "relu1" in missing.err


def test_suites_are_compared_and_price_what_they_cost(tacit, compiled):
    rows = tacit("plan", compiled(), "--compare", "--json").json["suites"]
    by_suite = {row["suite"]: row for row in rows if row["protocols"] == "auto"}
    assert "reason" in by_suite["lola"]
    for suite in ("gala", "gazelle", "falcon-ntt"):
        compiled_for_it = compiled("exact", suite)
        alone = tacit("plan", compiled_for_it, "--json").json
        assert by_suite[suite]["report"]["rounds"] == alone["rounds"]
        assert by_suite[suite]["report"]["phases"]["online"]["bytes"] == alone["phases"]["online"]["bytes"]
    table = tacit("plan", compiled(), "--compare").out
    assert "falcon-ntt" in table
    assert "never rescaled" in table


@pytest.mark.parametrize("protocols", ["plain", "digits1", "digits6", "chain", "ripple", "masked", "circuits"])
def test_fixed_protocols_run(protocols, tacit, compiled, one_digit):
    model = compiled("exact")
    run = tacit("run", model, one_digit, "--protocols", protocols, "--json").json
    assert run["max_error"] == 0
    planned = tacit("plan", model, "--protocols", protocols, "--json").json
    assert (planned["bytes"], planned["rounds"]) == (run["bytes"], run["rounds"])


def test_unknown_protocols_are_refused(tacit, compiled):
    refused = tacit("plan", compiled(), "--protocols", "digits9")
    assert refused.code == 1
    assert "digits1 to digits8" in refused.err


def test_other_rates_make_other_plans(tacit, compiled, cache):
    """A machine on which garbling takes no time and tables take long has other plans than the reference."""
    model = compiled()
    before = tacit("plan", model, "--network", "wan", "--json").json
    file = calibration.path()
    assert file.parent == cache
    described = json.loads(REFERENCE.read_text())
    file.parent.mkdir(parents=True)
    cheap = {**described, "garbled": 0.0, "evaluated": 0.0, "entry": 1.0}
    file.write_text(json.dumps({"rates": cheap}))
    after = tacit("plan", model, "--network", "wan", "--json").json
    assert after["choices"] != before["choices"]
    assert "circuits" in after["choices"].values()
    file.write_text("{}")
    broken = tacit("plan", model, "--network", "wan")
    assert broken.code == 1
    assert "tacit calibrate" in broken.err


def test_calibration_is_kept_and_used(tacit, compiled):
    told = tacit("calibrate", "--runs", "1", "--json", seconds=600).json
    rates = told["rates"]
    assert all(np.isfinite(rate) and rate >= 0 for rate in rates.values())
    assert calibration.rates() == rates
    assert len(told["samples"]) > 50
    assert json.loads(calibration.path().read_text())["rates"] == rates
    assert tacit("plan", compiled(), "--json").json["seconds"] > 0
