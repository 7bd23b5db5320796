"""Quantised files, through the whole compiler: integers near what onnxruntime computes of the file."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper
from quantised_forms import FORMS, Quantised, qdq
from tacit.compiler import Options, compile_model
from tacit.compiler.quantize import calibrate
from tacit.errors import UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.model import Model

EXAMPLES = 24
# Products of integers: where their weight and its zero point stand among the inputs.
PRODUCTS = {
    "QLinearConv": (3, 5),
    "QLinearMatMul": (3, 5),
    "QGemm": (3, 5),
    "ConvInteger": (1, 3),
    "MatMulInteger": (1, 3),
    "DynamicQuantizeMatMul": (1, 3),
    "MatMulIntegerToFloat": (1, 5),
}


def exact_products(path):
    """Gives the file of the same function with weights that onnxruntime multiplies exactly on every processor.

    Without VNNI instructions onnxruntime sums products of uint8 and int8 in pairs of 16 bits and cuts what is too
    large for them. Products of two uint8 are exact, so such weights and their zero points are moved up by 128.
    """
    model = onnx.load(path)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    signed = {tensor.name for tensor in model.graph.initializer if tensor.data_type == TensorProto.INT8}
    for node in model.graph.node:
        if node.op_type not in PRODUCTS or (node.op_type.startswith("Q") and node.input[2] in signed):
            continue
        for name in (node.input[k] for k in PRODUCTS[node.op_type]):
            if name in signed:
                moved = (numpy_helper.to_array(constants[name]).astype(np.int16) + 128).astype(np.uint8)
                constants[name].CopyFrom(numpy_helper.from_array(moved, name))
                signed.discard(name)
    return model.SerializeToString()


def outputs(path, x):
    """What onnxruntime computes, one example at a time and as the file says it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(exact_products(path), options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    kind = np.uint8 if "uint8" in given.type else np.float32
    rows = [session.run(None, {given.name: x[k : k + 1].astype(kind)})[0] for k in range(len(x))]
    return np.concatenate(rows).astype(np.float64)


def assert_near(path, folder, x):
    """The compiled model computes what the file says."""
    compile_model(path, folder / "x.tacit", x, options=Options(rounding="exact"))
    model, expected = Model(folder / "x.tacit"), outputs(path, x)
    difference = np.abs(model.simulate(x) * model.output_scale - expected.reshape(len(x), -1))
    spread = np.abs(expected).max()
    assert difference.mean() < 0.02 * spread
    assert difference.max() < 0.08 * spread


@pytest.mark.parametrize("case", FORMS)
def test_integers_are_near_the_quantised_model(case, tmp_path):
    network = FORMS[case]()
    x = np.random.default_rng(2).uniform(-1, 1, (EXAMPLES, *network.shape[1:])).astype(np.float32)
    assert_near(network.save(tmp_path), tmp_path, x)


def test_the_bounds_of_a_quantised_file_reach_calibration(tmp_path):
    path = qdq("uint8")().save(tmp_path)
    source = import_onnx(path)
    assert source.notes == ("read 2 quantised layers as float; their scales bound the activations",)
    assert {node.operation["op"] for node in source.nodes} >= {"Conv", "Relu", "MaxPool"}
    stated = {name: (round(low, 2), round(high, 2)) for name, (low, high) in source.bounds.items()}
    assert {(-1.0, 1.0), (0.0, 2.0), (-2.0, 2.0)} == {(round(low), round(high)) for low, high in stated.values()}
    few = np.full((2, 3, 6, 6), 0.25, np.float32)
    assert calibrate(path, source, few).ranges["x"] == (0.25, 0.25)
    assert calibrate(path, source, 8 * few).ranges["x"][1] == pytest.approx(1.0, abs=0.01)
    guess = calibrate(path, source, None).ranges
    assert guess["x"] == pytest.approx((-1.0, 1.0), abs=0.01)


@pytest.mark.parametrize(("limit", "said"), [(0.1, True), (9.0, False)])
def test_it_says_where_the_quantised_model_cuts_and_this_one_does_not(limit, said, tmp_path):
    network = Quantised((1, 8), opset=13)
    network.gemm(8, 6, name="dense").around(network.form(-limit, limit))
    path, notes = network.save(tmp_path), []
    x = np.random.default_rng(2).uniform(-1, 1, (EXAMPLES, 8)).astype(np.float32)
    compile_model(path, tmp_path / "x.tacit", x, options=Options(say=notes.append))
    assert any("`dense.out` reaches" in note for note in notes) == said
    assert any("QDQKeepRemovableActivations" in note for note in notes) == said


def test_an_input_of_integers_is_read(tmp_path):
    network = Quantised((1, 3, 6, 6), opset=13)
    network.add("DequantizeLinear", network.number(1 / 64), network.number(100, np.uint8))
    network.add("Conv", network.dequantised(network.weight(4, 3, 3, 3)[0]))
    model = network.proto()
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    onnx.save(model, tmp_path / "integers.onnx")
    x = np.random.default_rng(2).integers(0, 256, (EXAMPLES, 3, 6, 6)).astype(np.float32)
    assert_near(tmp_path / "integers.onnx", tmp_path, x)
    assert import_onnx(tmp_path / "integers.onnx").bounds == {"x": (0.0, 255.0)}


def test_a_result_of_integers_is_given_as_numbers(tmp_path):
    network = Quantised((1, 8), opset=13)
    network.add("QuantizeLinear", *network.form(-1, 1))
    model = network.proto()
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8
    onnx.save(model, tmp_path / "integers.onnx")
    (note,) = import_onnx(tmp_path / "integers.onnx").notes
    assert "is given as numbers and not as the integers" in note


def computed_scale():
    network = Quantised((1, 8), opset=13)
    network.add("ReduceMax", axes=[1], keepdims=0, name="most")
    return network.add("QuantizeLinear", inputs=["x", "most.out"], name="bad")


def other_arithmetic():
    network = Quantised((1, 8), opset=14)
    network.add("QuantizeLinear", *network.form(-1, 1, "int8")).add("Relu", name="bad")
    return network.add("DequantizeLinear", *network.form(-1, 1, "int8"))


def unscaled_sum():
    network = Quantised((1, 8), opset=13)
    (weight, _, zero), _ = network.weight(8, 6)
    network.add("DynamicQuantizeLinear", outputs=["s", "z"]).add("MatMulInteger", weight, "z", zero)
    return network.add("Cast", to=TensorProto.FLOAT).add("Relu", name="bad")


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (computed_scale, "computed scale"),
        (other_arithmetic, "computes with quantised integers"),
        (unscaled_sum, "before they are scaled"),
    ],
)
def test_what_is_no_rounded_number_is_refused(build, words, tmp_path):
    with pytest.raises(UnsupportedError, match=words) as found:
        import_onnx(build().save(tmp_path))
    assert found.value.node == "bad"
    assert "; " in str(found.value)
