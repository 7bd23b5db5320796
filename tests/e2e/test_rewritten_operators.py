"""Operators that are rewritten, through the whole compiler: integers near what onnxruntime computes."""

import numpy as np
import onnxruntime
import pytest
from neighbours import NEIGHBOURS
from operators import OPERATORS, spectrum
from recurrences import RECURRENT, classifier
from stacks import STACKS
from tacit.compiler import Options, compile_model
from tacit.importers.onnx import import_onnx
from tacit.model import Model
from tacit.session.pair import Pair

EXAMPLES = 48
CASES = {**OPERATORS, **RECURRENT, **STACKS, **NEIGHBOURS, "spectrum": spectrum}


@pytest.mark.parametrize("case", CASES)
def test_integers_are_near_the_operator(case, tmp_path):
    path = CASES[case]().save(tmp_path)
    shape = (EXAMPLES, *import_onnx(path).input_shape)
    x = np.random.default_rng(2).uniform(-1, 1, shape).astype(np.float32)
    compile_model(path, tmp_path / "x.tacit", x, options=Options(rounding="exact"))
    model = Model(tmp_path / "x.tacit")
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    expected = np.concatenate([session.run(None, {given.name: x[k : k + 1]})[0] for k in range(EXAMPLES)])
    difference = np.abs(model.simulate(x) * model.output_scale - expected.reshape(EXAMPLES, -1))
    spread = np.abs(expected).max()
    assert difference.mean() < 0.02 * spread
    assert difference.max() < 0.08 * spread


def test_a_recurrent_network_runs_as_the_interpreter_says(tmp_path):
    path = classifier().save(tmp_path)
    x = np.random.default_rng(2).uniform(-1, 1, (EXAMPLES, 3, 4)).astype(np.float32)
    compile_model(path, tmp_path / "x.tacit", x, options=Options(rounding="exact"))
    assert Pair(Model(tmp_path / "x.tacit")).run(x[:2], None).report["max_error"] == 0
