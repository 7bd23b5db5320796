"""How quantised and fused files are read: what becomes of parts of them."""

import numpy as np
import onnx
import pytest
from fused_forms import EXTRA, numbered
from networks import Network
from onnx import TensorProto
from quantised_forms import Quantised, qdq
from tacit.errors import UnsupportedError
from tacit.importers.check import check
from tacit.importers.onnx import import_onnx


def operations(source):
    return [node.operation["op"] for node in source.nodes]


def test_a_relu_that_is_there_is_not_written_twice(tmp_path):
    network = Quantised((1, 8), opset=13)
    network.gemm(8, 6).add("Relu").around(network.form(0, 3))
    assert operations(import_onnx(network.save(tmp_path))).count("Relu") == 1
    network = Quantised((1, 8), opset=13)
    network.gemm(8, 6).around(network.form(0, 3)).add("Relu")
    assert operations(import_onnx(network.save(tmp_path))).count("Relu") == 1


def test_a_sum_that_is_never_below_zero_is_not_cut(tmp_path):
    network = Quantised((1, 8), opset=13)
    network.add("Tanh").add("Add", network.number(1.0)).around(network.form(0, 2))
    assert "Relu" not in operations(import_onnx(network.save(tmp_path)))


def test_a_formula_of_gelu_between_pairs_is_recognised(tmp_path):
    network = Quantised((1, 5, 8), opset=13)
    network.add("MatMul", network.number(network.normal(8, 8)), name="x0")
    network.add("Div", network.number(np.sqrt(2))).add("Erf").around(network.form(-1, 1))
    network.add("Add", network.number(1.0)).around(network.form(0, 2))
    network.add("Mul", "x0.out").around(network.form(-0.5, 4)).add("Mul", network.number(0.5))
    assert operations(import_onnx(network.save(tmp_path))) == ["View", "Conv", "Gelu", "View"]


def test_constants_between_pairs_are_rounded_as_the_file_says(tmp_path):
    network = Quantised((1, 4), opset=13)
    given = np.array([0.1, 0.26, -0.9, 2.0], np.float32)
    network.add("Identity", inputs=[network.number(given)], name="same")
    network.around([network.number(0.25), network.number(0, np.int8)])
    network.add("Add", inputs=["x", network.last])
    (stored,) = import_onnx(network.save(tmp_path)).weights.values()
    np.testing.assert_array_equal(stored, [0, 0.25, -1, 2])


def test_tensors_that_are_also_read_as_they_are_have_no_bounds(tmp_path):
    network = Quantised((1, 8), opset=13)
    network.gemm(8, 6, name="dense").around(network.form(-1, 1)).add("Add", "dense.out")
    assert "dense.out" not in import_onnx(network.save(tmp_path)).bounds


def test_a_table_of_integers_is_read(tmp_path):
    network = Quantised((1, 2, 6), opset=13)
    form = [network.number(0.5), network.number(3, np.uint8)]
    table = network.number(np.arange(20).reshape(5, 4), np.uint8)
    network.add("Cast", to=TensorProto.INT64, name="ids")
    network.add("Gather", inputs=["ids.out", network.number(0, np.int64)], axis=1)
    network.add("Gather", inputs=[table, network.last]).add("DequantizeLinear", *form)
    source = import_onnx(network.save(tmp_path))
    (stored,) = source.weights.values()
    np.testing.assert_array_equal(stored, (np.arange(20).reshape(5, 4) - 3) * 0.5)


def test_a_file_for_one_processor_is_refused_with_advice(tmp_path):
    model = Network((1, 3, 8, 8)).add("Conv", domain="com.example").proto()
    model.graph.node[0].domain = "com.microsoft.nchwc"
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft.nchwc", 1))
    onnx.save(model, tmp_path / "blocked.onnx")
    with pytest.raises(UnsupportedError, match="ORT_ENABLE_EXTENDED"):
        import_onnx(tmp_path / "blocked.onnx")


def test_check_reads_the_same_forms(tmp_path):
    assert not check(qdq("uint8")().save(tmp_path)).errors
    network = Network((1, 4, 6))
    network.add("Attention", numbered(network, network.normal(6, 18)), "", "", "x", domain=EXTRA, num_heads=1)
    (error,) = check(network.save(tmp_path)).errors
    assert "earlier tokens" in str(error)
