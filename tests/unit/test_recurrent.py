"""Recurrent layers: what onnxruntime does not run, and what is refused."""

import numpy as np
import onnxruntime
import pytest
from networks import Network
from recurrences import classifier, layer
from tacit.errors import UnsupportedError
from tacit.importers.check import check
from tacit.importers.onnx import expose, import_onnx


def network(**attributes):
    """An LSTM, called `rec`, whose output is the result."""
    built = Network(("N", 4, 3), opset=14).add("Transpose", name="turned", perm=[1, 0, 2])
    layer(built, "LSTM", "turned.out", 3, "Y", **attributes)
    return built.add("Transpose", inputs=["rec.Y"], perm=[2, 0, 1, 3])


def of_layout(layout: int, directions: int) -> Network:
    """The same layer with the batch in front, and with time in front and transpositions around it."""
    built = Network(("N", 4, 3), opset=14)
    if layout:
        layer(built, "LSTM", "x", 3, "YHC", directions=directions, states=True, layout=1)
        for tensor in built.constants[-2:]:
            tensor.dims[:] = [1, directions, 3]
        names = ["rec.Y", "rec.H", "rec.C"]
    else:
        built.add("Transpose", name="turned", perm=[1, 0, 2])
        layer(built, "LSTM", "turned.out", 3, "YHC", directions=directions, states=True)
        names = []
        for role, order in (("Y", [2, 0, 1, 3]), ("H", [1, 0, 2]), ("C", [1, 0, 2])):
            built.add("Transpose", inputs=[f"rec.{role}"], perm=order)
            names.append(built.last)
    for index, name in enumerate(names):
        built.add("Flatten", inputs=[name], name=f"flat{index}")
    return built.add("Concat", inputs=["flat0.out", "flat1.out", "flat2.out"], axis=1)


def outputs(model: bytes, x: np.ndarray) -> np.ndarray:
    """The output in floats."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize("directions", [1, 2])
def test_the_batch_may_be_in_front(tmp_path, directions):
    path = of_layout(1, directions).save(tmp_path)
    rewritten, _ = expose(path, {seen.tensor for seen in import_onnx(path).observed().values()})
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4, 3)).astype(np.float32)
    expected = np.concatenate(
        [outputs(of_layout(0, directions).proto().SerializeToString(), x[k : k + 1]) for k in range(3)]
    )
    np.testing.assert_allclose(outputs(rewritten.SerializeToString(), x), expected, rtol=1e-4, atol=1e-5)


REFUSED = {
    "lengths": ({"lengths": [3]}, ["sequence_lens", "cut the input"]),
    "peepholes": ({"peepholes": True}, ["peepholes", "without them"]),
    "input and forgetting in one": ({"input_forget": 1}, ["input_forget=1", "gates of their own"]),
    "unknown function": ({"activations": ["Sigmoid", "Sine", "Tanh"]}, ["Sine", "Relu"]),
    "too few functions": ({"activations": ["Sigmoid"]}, ["1 activation functions", "3 for each"]),
    "function that jumps": ({"activations": ["Sigmoid", "ThresholdedRelu", "Tanh"]}, ["ThresholdedRelu", "jump"]),
    "nothing of a function": (
        {"activations": ["Affine", "Tanh", "Tanh"], "activation_alpha": [0.0]},
        ["alpha 0", "another activation"],
    ),
    "functions by direction": (
        {"directions": 2, "activations": ["Sigmoid", "Tanh", "Tanh", "Sigmoid", "Relu", "Tanh"]},
        ["backwards", "same in both"],
    ),
    "direction": ({"direction": "sideways"}, ["direction", "bidirectional"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_the_node_and_the_remedy(case, tmp_path):
    attributes, expected = REFUSED[case]
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(network(**attributes).save(tmp_path))
    words = str(caught.value)
    assert words.startswith("node `rec")
    for word in expected:
        assert word in words


def test_lengths_that_are_the_length_say_nothing(tmp_path):
    assert import_onnx(network(lengths=[4]).save(tmp_path)).nodes


def test_time_in_front_is_no_batch(tmp_path):
    path = layer(Network(("T", 1, 3), opset=14), "GRU", "x", 3, "Y", name="rec")
    path.last = "rec.Y"
    path = path.save(tmp_path)
    with pytest.raises(
        UnsupportedError, match=r"node `rec`: GRU reads the first axis of the input as time.*batch_first"
    ):
        import_onnx(path)
    assert "batch_first" in str(check(path).errors[0])


def test_long_sequences_are_refused(tmp_path):
    built = Network(("N", 900, 3), opset=14).add("Transpose", name="turned", perm=[1, 0, 2])
    layer(built, "RNN", "turned.out", 3, "H")
    with pytest.raises(UnsupportedError, match="of 900 steps, where 800 are possible; cut inputs"):
        import_onnx(built.add("Transpose", inputs=["rec.H"], perm=[1, 0, 2]).save(tmp_path))


def test_one_product_takes_all_gates_and_one_table_gives_them(tmp_path):
    source = import_onnx(classifier().save(tmp_path))
    kinds = [node.operation.get("function", node.operation["op"]) for node in source.nodes]
    assert [kinds.count(kind) for kind in ("Conv", "Gemm", "Sigmoid", "Tanh")] == [1, 3, 3, 3]
