"""What the importer makes of an operator computes the same, before anything is rounded."""

import numpy as np
import onnxruntime
import pytest
from neighbours import NEIGHBOURS
from networks import Network
from operators import OPERATORS, spectrum
from recurrences import RECURRENT
from source_run import evaluate
from stacks import STACKS
from tacit.importers.onnx import expose, import_onnx
from tacit.importers.rewrite.magnitude import ERROR

CASES = {**OPERATORS, **RECURRENT, **STACKS, **NEIGHBOURS}


def run(model: bytes, name: str, x: np.ndarray) -> np.ndarray:
    """The output in floats."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {name: x})[0])


@pytest.mark.parametrize("case", CASES)
def test_rewritten_models_compute_the_same(case, tmp_path):
    path = CASES[case]().save(tmp_path)
    source = import_onnx(path)
    model, signature = expose(path, {seen.tensor for seen in source.observed().values()})
    count = 3 if signature.batched else 1
    x = np.random.default_rng(0).uniform(-1, 1, (count, *source.input_shape)).astype(np.float32)
    expected = run(path.read_bytes(), signature.input_name, x)
    np.testing.assert_allclose(run(model.SerializeToString(), signature.input_name, x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("case", "function"),
    [
        ("silu in two steps", "Silu"),
        ("silu of another slope", "Silu"),
        ("mish in three steps", "Mish"),
        ("hard swish by a hard sigmoid", "HardSwish"),
        ("hard swish by a clip", "HardSwish"),
        ("hard swish by a clip, divided last", "HardSwish"),
    ],
)
def test_a_gate_of_the_input_itself_is_one_table(case, function, tmp_path):
    source = import_onnx(OPERATORS[case]().save(tmp_path))
    functions = [node.operation.get("function") for node in source.nodes]
    assert [name for name in functions if name] == [function]
    assert "Multiply" not in [node.operation["op"] for node in source.nodes]


def test_a_gate_of_something_else_stays_a_product(tmp_path):
    network = Network(("N", 4, 6, 6), opset=18).add("Relu")
    gate = network.add("Sigmoid").last
    source = import_onnx(network.add("Mul", inputs=["x", gate]).save(tmp_path))
    assert "Multiply" in [node.operation["op"] for node in source.nodes]


def test_combinations_of_magnitudes_are_public(tmp_path):
    operations = [node.operation for node in import_onnx(spectrum().save(tmp_path)).nodes]
    assert [len(op["factors"]) for op in operations if op["op"] == "Combinations"] == [2]
    # The one convolution is the transform itself.
    assert len([op for op in operations if op["op"] == "Conv"]) == 1


def test_magnitudes_are_within_a_hundredth(tmp_path):
    path = spectrum().save(tmp_path)
    rewritten, signature = expose(path, {seen.tensor for seen in import_onnx(path).observed().values()})
    x = np.random.default_rng(0).uniform(-1, 1, (200, 1, 12)).astype(np.float32)
    ratio = run(rewritten.SerializeToString(), signature.input_name, x) / run(
        path.read_bytes(), signature.input_name, x
    )
    assert np.abs(ratio - 1).max() < ERROR + 1e-4
    assert np.abs(ratio - 1).max() > 0.9 * ERROR
    assert 0.0096 < ERROR < 0.0098


@pytest.mark.parametrize("case", STACKS)
def test_the_source_graph_computes_the_same(case, tmp_path):
    path = STACKS[case]().save(tmp_path)
    source = import_onnx(path)
    rewritten, signature = expose(path, [])
    x = np.random.default_rng(0).uniform(-1, 1, (1, *source.input_shape)).astype(np.float32)
    expected = run(rewritten.SerializeToString(), signature.input_name, x)
    found = evaluate(source, x[0])[source.output]
    np.testing.assert_allclose(found.ravel(), expected.ravel(), rtol=1e-4, atol=1e-5)
