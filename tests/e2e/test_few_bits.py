"""Networks that were trained with few bits, under suite ufo."""

import few_bits
import numpy as np
import pytest
from tacit.compiler import Options, compile_model
from tacit.model import Model

SWITCHES = ("fusion", "residual", "sign")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The directory of a small network."""
    return few_bits.network(tmp_path_factory.mktemp("trained") / "small")


@pytest.fixture(scope="module")
def compiled(trained, tmp_path_factory):
    """The network compiled with exact rounding, without some passes."""
    folder = tmp_path_factory.mktemp("compiled")

    def build(*disabled):
        path = folder / f"{'-'.join(('all', *disabled))}.tacit"
        if not path.exists():
            compile_model(trained, path, options=Options("ufo", rounding="exact", disabled=disabled))
        return path

    return build


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "x.npz"
    np.savez(path, x=few_bits.inputs(3))
    return path


def total(plan):
    return sum(plan["bytes"].values())


def test_integers_follow_the_arrays(compiled):
    x = few_bits.inputs(4)
    model = Model(compiled())
    logits = model.simulate(x) * model.output_scale
    assert logits.shape == (4, 3)
    assert np.abs(logits - logits[0]).max() > 0.5
    assert model.description["labels"] == ["a", "b", "c"]


def test_private_runs_equal_the_interpreter(tacit, compiled, data):
    run = tacit("run", compiled(), data, "--json").json
    assert (run["suite"], run["max_error"], run["equal_outputs"]) == ("ufo", 0, 3)


def test_a_private_run_costs_what_is_planned(tacit, compiled, tmp_path):
    np.save(tmp_path / "x.npy", few_bits.inputs(1)[0])
    run = tacit("run", compiled(), tmp_path / "x.npy", "--threads", 1, "--json").json
    plan = tacit("plan", compiled(), "--json").json
    for phase, cost in plan["phases"].items():
        measured = run["phases"][phase]
        assert (phase, measured["bytes"], measured["rounds"]) == (phase, cost["bytes"], cost["rounds"])


def test_the_plan_names_what_runs(tacit, compiled):
    layers = {layer["name"]: layer for layer in tacit("plan", compiled(), "--json").json["layers"]}
    assert "Winograd F(2x2, 3x3), 3-bit weights by OT" in layers["inner.products"]["protocol"]
    assert "3-bit weights by OT" in layers["outer.products"]["protocol"]
    assert "8-bit weights by OT" in layers["inner"]["protocol"]
    assert "few" in layers


@pytest.mark.parametrize("switch", SWITCHES)
def test_graphs_without_a_pass_compute_the_same_and_cost_more(tacit, compiled, switch):
    x = few_bits.inputs(4)
    assert np.array_equal(Model(compiled(switch)).simulate(x), Model(compiled()).simulate(x))
    with_it, without = (tacit("plan", compiled(*names), "--json").json for names in ((), (switch,)))
    assert total(without) > total(with_it)


def test_a_run_without_any_pass_is_exact(tacit, compiled, data):
    run = tacit("run", compiled(*SWITCHES), data, "--json").json
    assert (run["max_error"], run["equal_outputs"]) == (0, 3)


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("--suite", "auto"), "compile for suite ufo"),
        (("--suite", "ufo", "--disable-pass", "winograd"), "do without --disable-pass winograd"),
        (("--suite", "ufo", "--disable-pass", "reweighting"), "do without --disable-pass reweighting"),
        (("--suite", "auto", "--disable-pass", "fusion"), "--disable-pass is for suite ufo"),
    ],
)
def test_what_training_fixed_stays(tacit, trained, tmp_path, arguments, advice):
    done = tacit("compile", trained, "-o", tmp_path / "x.tacit", *arguments)
    assert done.code != 0
    assert advice in " ".join(done.err.split())
