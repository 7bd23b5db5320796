"""What the importer makes of an operator computes the same, before anything is rounded."""

import numpy as np
import onnxruntime
import pytest
from operators import OPERATORS
from tacit.importers.onnx import expose, import_onnx


def run(model: bytes, name: str, x: np.ndarray) -> np.ndarray:
    """The output in floats."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {name: x})[0])


@pytest.mark.parametrize("case", OPERATORS)
def test_rewritten_models_compute_the_same(case, tmp_path):
    path = OPERATORS[case]().save(tmp_path)
    source = import_onnx(path)
    model, signature = expose(path, {seen.tensor for seen in source.observed().values()})
    count = 3 if signature.batched else 1
    x = np.random.default_rng(0).uniform(-1, 1, (count, *source.input_shape)).astype(np.float32)
    expected = run(path.read_bytes(), signature.input_name, x)
    np.testing.assert_allclose(run(model.SerializeToString(), signature.input_name, x), expected, rtol=1e-4, atol=1e-5)
