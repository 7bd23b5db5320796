"""What the importer makes of an operator computes the same, before anything is rounded."""

import numpy as np
import onnxruntime
import pytest
from operators import OPERATORS
from source_run import evaluate
from stacks import STACKS
from tacit.importers.onnx import expose, import_onnx

MODELS = OPERATORS | STACKS


def run(model: bytes, name: str, x: np.ndarray) -> np.ndarray:
    """The output in floats."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {name: x})[0])


@pytest.mark.parametrize("case", MODELS)
def test_rewritten_models_compute_the_same(case, tmp_path):
    path = MODELS[case]().save(tmp_path)
    source = import_onnx(path)
    rewritten, signature = expose(path, {seen.tensor for seen in source.observed().values()})
    count = 3 if signature.batched else 1
    x = np.random.default_rng(0).uniform(-1, 1, (count, *source.input_shape)).astype(np.float32)
    expected = run(path.read_bytes(), signature.input_name, x)
    np.testing.assert_allclose(run(rewritten, signature.input_name, x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", STACKS)
def test_the_source_graph_computes_the_same(case, tmp_path):
    path = STACKS[case]().save(tmp_path)
    source = import_onnx(path)
    rewritten, signature = expose(path, [])
    x = np.random.default_rng(0).uniform(-1, 1, (1, *source.input_shape)).astype(np.float32)
    expected = run(rewritten, signature.input_name, x)
    found = evaluate(source, x[0])[source.output]
    np.testing.assert_allclose(found.ravel(), expected.ravel(), rtol=1e-4, atol=1e-5)
