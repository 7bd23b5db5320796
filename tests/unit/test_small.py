"""GELUs of values near zero, which are looked up in a table."""

import numpy as np
import onnxruntime
import pytest
from networks import Network
from pieces import one
from tacit.compiler import Options, compile_model
from tacit.compiler.small import tabulated
from tacit.importers.onnx import import_onnx
from tacit.model import Model


@pytest.mark.parametrize(
    ("highest", "bits", "kind"),
    [(0.1, 8, "Table"), (1.4, 8, "Table"), (1.45, 8, "Gelu"), (1.5, 9, "Table"), (1.9, 12, "Gelu"), (None, 8, "Gelu")],
)
def test_the_range_decides_on_the_table(highest, bits, kind, tmp_path):
    source = import_onnx(one("Gelu", opset=20)().save(tmp_path))
    ranges = {} if highest is None else {source.input_name: (-highest, 0.5)}
    assert [node.operation["op"] for node in tabulated(source, ranges, bits).nodes] == [kind]


@pytest.mark.parametrize("bits", [6, 8, 10, 12])
@pytest.mark.parametrize("highest", [0.01, 0.5, 1.0, 1.4, 1.59, 1.61, 1.99, 2.01])
def test_gelus_of_all_ranges_compile(highest, bits, tmp_path):
    path = Network(("N", 16), opset=20).add("Gelu").save(tmp_path)
    x = np.random.default_rng(0).uniform(-highest, highest, (64, 16)).astype(np.float32)
    compile_model(path, tmp_path / "x.tacit", x, options=Options(activation_bits=bits))
    model = Model(tmp_path / "x.tacit")
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {session.get_inputs()[0].name: x})
    assert np.abs(model.real(model.simulate(x)) - expected).max() < 0.05 * np.abs(expected).max()
