"""What compile says of results that are far from the float model's."""

import numpy as np
from networks import Network
from tacit.compiler import Options, compile_model


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
    assert "2 calibration inputs" in note and "--activation-bits" in note


def test_nothing_is_looked_at_without_inputs(tmp_path):
    summary = compile_model(path_of(tmp_path), tmp_path / "x.tacit")
    assert "relative_error" not in summary
