"""Exports with something wrong in them: what compiles is right, and everything else is refused with advice.

TACIT_MUTATIONS says how many are tried.
"""

import os
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from mutations import mutated
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.model import Model

MUTATIONS = int(os.environ.get("TACIT_MUTATIONS", "60"))
EXAMPLES = 6
ADVICE = ("; ", ": ")
NEAR = 0.12
NEAR_FLOAT = 0.01


def reference(path, x):
    """What onnxruntime computes, one example at a time; None where it cannot."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
        (given,) = session.get_inputs()
        kind = {"tensor(float16)": np.float16, "tensor(double)": np.float64, "tensor(int64)": np.int64}
        x = x.astype(kind.get(given.type, np.float32))
        return np.concatenate([session.run(None, {given.name: x[k : k + 1]})[0] for k in range(len(x))])
    except Exception:  # noqa: BLE001 (onnxruntime's own exceptions share no base class)
        return None


def outcome(path, model):
    """Compile; gives the refusal, or what it computes in floats and in integers with the inputs."""
    try:
        # A softmax at the end would be left to the client.
        result = model.graph.output[0].name if any("Softmax" in node.op_type for node in model.graph.node) else None
        options = Options(rounding="exact", activation_bits=10, result=result)
        source = import_onnx(path, selection=options.selection)
        x = np.random.default_rng(1).uniform(-1, 1, (EXAMPLES, *source.input_shape)).astype(np.float32)
        compile_model(path, path.parent / "x.tacit", x, options=options)
        compiled = Model(path.parent / "x.tacit")
        return x, FloatModel(path, selection=options.selection)(x), compiled.simulate(x) * compiled.output_scale
    except (MisuseError, UnsupportedError) as error:
        return error


@pytest.mark.parametrize("group", range(6))
def test_what_compiles_is_right_and_the_rest_is_refused(group, tmp_path):
    for seed in range(group, MUTATIONS, 6):
        about, model = mutated(seed)
        path = tmp_path / f"m{seed}.onnx"
        onnx.save(model, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = outcome(path, model)
        if isinstance(found, Exception):
            assert any(mark in str(found) for mark in ADVICE), f"seed {seed} ({about}): no advice in {found}"
            continue
        x, floats, integers = found
        expected = reference(path, x)
        if expected is None:
            continue
        expected = expected.reshape(len(x), -1).astype(np.float64)
        spread = max(np.abs(expected).max(), 1e-3)
        # Inputs of quantised models are cut by their range and not in floats.
        exact = about.startswith("q") or np.abs(floats - expected).max() <= NEAR_FLOAT * spread
        assert exact, f"seed {seed} ({about}): floats are wrong"
        assert np.abs(integers - expected).max() <= NEAR * spread, f"seed {seed} ({about}): integers are wrong"
