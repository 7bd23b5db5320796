"""The networks of MLPerf Tiny: their definitions, and that all of them compile."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from tacit.compiler.compiler import compile_model
from tacit.model import Model
from tacit_lab.tiny.networks import TASKS

# Parameters of the reference models with their batch norms, and channels of these, which have four parameters each.
PUBLISHED = {
    "keywords": (24_908, 9 * 64),
    "persons": (221_794, 2736),
    "images": (78_666, 240),
    "anomalies": (269_992, 8 * 128 + 8),
}


@pytest.mark.parametrize("name", TASKS)
def test_networks_have_the_parameters_of_the_reference(name):
    model = TASKS[name].network()
    onnx.checker.check_model(model, full_check=True)
    total, channels = PUBLISHED[name]
    assert sum(int(np.prod(each.dims)) for each in model.graph.initializer) == total - 4 * channels


@pytest.mark.parametrize("name", TASKS)
def test_networks_compile_and_stay_near_floating_point(name, tmp_path):
    task = TASKS[name]
    model = task.network()
    onnx.save(model, tmp_path / "network.onnx")
    x = np.random.default_rng(1).random((12, *task.shape), dtype=np.float32)
    compile_model(tmp_path / "network.onnx", tmp_path / "network.tacit", x[4:])
    compiled = Model(tmp_path / "network.tacit")
    (wanted,) = ReferenceEvaluator(model).run(None, {"x": x[:4]})
    found = compiled.simulate(x[:4]) * compiled.output_scale
    assert np.sqrt(np.mean((found - wanted) ** 2)) < 0.05 * np.sqrt(np.mean(wanted**2))
