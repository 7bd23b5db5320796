"""Linear layers that would grow too wide are compiled with a clip in between."""

import numpy as np
import onnxruntime
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.importers.onnx import import_onnx
from tacit.model import Model


def test_a_chain_of_linear_layers_compiles(tmp_path):
    network = Network(("N", 16, 4, 4))
    for _ in range(7):
        network.conv((16, 16, 3, 3), pads=[1, 1, 1, 1])
    path = network.save(tmp_path)
    x = np.random.default_rng(0).uniform(-1, 1, (24, *import_onnx(path).input_shape)).astype(np.float32)
    said: list[str] = []
    compile_model(path, tmp_path / "x.tacit", x, options=Options(rounding="exact", say=said.append))
    assert any("linear layers" in line for line in said)
    model = Model(tmp_path / "x.tacit")
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {session.get_inputs()[0].name: x})[0].reshape(len(x), -1)
    difference = model.simulate(x) * model.output_scale - expected
    assert np.sqrt((difference**2).mean()) < 0.1 * expected.std()


def test_averages_are_narrowed_before_a_layer_that_has_no_room_for_their_sums(tmp_path):
    network = Network(("N", 64, 8, 8)).add("Relu").add("GlobalAveragePool").add("Flatten")
    path = network.gemm(64, 4).save(tmp_path)
    x = np.random.default_rng(0).uniform(-1, 1, (24, 64, 8, 8)).astype(np.float32)
    said: list[str] = []
    options = Options(activation_bits=12, weight_bits=12, say=said.append)
    summary = compile_model(path, tmp_path / "x.tacit", x, options=options)
    assert any("linear layers" in line for line in said)
    assert max(summary["relative_error"].values()) < 0.01
