"""What compile does and says about results that are far from the float model's."""

import numpy as np
import pytest
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.compiler.wider import Wider
from tacit.errors import UnsupportedError
from tacit.model import Model


def path_of(tmp_path):
    return Network(("N", 6)).gemm(6, 8, "first").add("Relu").gemm(8, 3, "last").save(tmp_path)


def inputs(count):
    return np.random.default_rng(0).uniform(-1, 1, (count, 6)).astype(np.float32)


def test_results_near_the_floats_are_only_counted(tmp_path):
    said = []
    options = Options(say=said.append)
    summary = compile_model(path_of(tmp_path), tmp_path / "x.tacit", inputs(64), options=options)
    errors = summary["relative_error"]
    assert 0 < errors["exact"] < 0.05 and 0 < errors["stochastic"] < 0.05
    assert said == []


def test_results_far_from_the_floats_are_said(tmp_path):
    said = []
    options = Options(activation_bits=2, weight_bits=2, say=said.append)
    summary = compile_model(path_of(tmp_path), tmp_path / "x.tacit", inputs(64), options=options)
    assert max(summary["relative_error"].values()) > 0.5
    (note,) = said
    assert "4 calibration inputs" in note and "--activation-bits" in note


def test_nothing_is_looked_at_without_inputs(tmp_path):
    summary = compile_model(path_of(tmp_path), tmp_path / "x.tacit")
    assert "relative_error" not in summary


def beside_large_ones(tmp_path):
    """Small values that share their steps with large ones, and make the result."""
    network = Network(("N", 6))
    factors = np.repeat([100, 1], 6).astype(np.float32)
    network.add("Gemm", network.constant("first", np.tile(np.eye(6, dtype=np.float32), 2) * factors))
    network.add("Clip", network.constant("low", np.float32(0)), network.constant("high", np.float32(1000)))
    return network.add("Gemm", network.constant("last", network.normal(12, 3) * (factors[:, None] == 1))).save(tmp_path)


def test_more_bits_are_taken_where_8_are_too_few(tmp_path):
    said = []
    summary = compile_model(
        beside_large_ones(tmp_path), tmp_path / "x.tacit", inputs(64), options=Options(say=said.append)
    )
    assert max(summary["relative_error"].values()) < 0.1
    (note,) = said
    assert "took 10" in note and "--activation-bits 8" in note
    assert Model(tmp_path / "x.tacit").inspect()["options"]["activation_bits"] == 10
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("options", [Options(activation_bits=8), Options(weight_bits=8), Options(suite="gala")])
def test_widths_that_were_chosen_stay(tmp_path, options):
    summary = compile_model(beside_large_ones(tmp_path), tmp_path / "x.tacit", inputs(64), options=options)
    assert max(summary["relative_error"].values()) > 0.1


def test_more_bits_that_do_not_help_are_not_taken(tmp_path):
    said = []

    def compiled(path, bits):
        path.write_text(str(bits))
        return {"relative_error": {"exact": 0.3, "stochastic": 0.39}}

    first = {"relative_error": {"exact": 0.3, "stochastic": 0.4}}
    assert Wider(compiled, said.append).enough(tmp_path / "x.tacit", 8, first) is first
    assert said == [] and list(tmp_path.iterdir()) == []


def test_layers_without_room_for_12_bits_take_11(tmp_path):
    errors, tried = {10: 0.4, 11: 0.05}, []

    def compiled(path, bits):
        tried.append(bits)
        if bits not in errors:
            raise UnsupportedError("needs a width of 40")
        path.write_text(str(bits))
        return {"relative_error": {"exact": errors[bits], "stochastic": errors[bits]}}

    output = tmp_path / "x.tacit"
    Wider(compiled, [].append).enough(output, 8, {"relative_error": {"exact": 0.9, "stochastic": 0.9}})
    assert tried == [10, 12, 11] and output.read_text() == "11"
