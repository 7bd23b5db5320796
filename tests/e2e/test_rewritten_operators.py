"""Operators that are rewritten, through the whole compiler: integers near what onnxruntime computes."""

import numpy as np
import onnxruntime
import pytest
from operators import OPERATORS
from stacks import STACKS
from tacit.compile import Options, compile_model
from tacit.importers.onnx import import_onnx
from tacit.model import Model

EXAMPLES = 48
MODELS = OPERATORS | STACKS


@pytest.mark.parametrize("case", MODELS)
def test_integers_are_near_the_operator(case, tmp_path):
    path = MODELS[case]().save(tmp_path)
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
