"""What `tacit evaluate` says of models that give no class scores."""

import numpy as np
import pytest
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.data.examples import load
from tacit.errors import MisuseError
from tacit.measure.evaluation import Reference, read, simulated
from tacit.model import Model
from tacit.report.terminal import quality_lines


def images(count=60):
    return np.random.default_rng(1).uniform(-1, 2, (count, 3, 8, 8)).astype(np.float32)


def model(folder, *, outputs):
    """An image to one number, or to a map of classes."""
    network = Network(("N", 3, 8, 8)).conv((4, 3, 3, 3), pads=[1] * 4).add("Relu")
    if outputs == 1:
        network.add("Flatten").gemm(256, 1)
    else:
        network.conv((outputs, 4, 1, 1))
    source = network.save(folder)
    compile_model(source, folder / "x.tacit", images(), options=Options())
    return source, Model(folder / "x.tacit")


def said(content):
    return "\n".join(quality_lines(content))


def test_estimates_have_errors_in_real_units(tmp_path):
    source, compiled = model(tmp_path, outputs=1)
    floats = FloatModel(source)(images())
    true = floats[:, 0].astype(np.float64) + np.resize([0.5, -0.5], len(floats))
    np.savez(tmp_path / "data.npz", x=images(), y=true)
    content = simulated(compiled, read(compiled, tmp_path / "data.npz"), Reference(source))
    outputs = compiled.simulate(images())[:, 0] * compiled.output_scale
    assert content["metric"] == "regression"
    assert content["rmse"] == pytest.approx(np.sqrt(((outputs - floats[:, 0]) ** 2).mean()), rel=1e-4)
    assert content["label_rmse"] == pytest.approx(np.sqrt(((outputs - true) ** 2).mean()))
    assert content["float_label_rmse"] == pytest.approx(0.5, rel=1e-4)
    assert content["verdict"] in ("faithful", "close")
    assert content["output"] == outputs.tolist()
    assert "agreement" not in content
    assert f"error to the float model: {content['rmse']:.4g}" in said(content)
    assert "root mean square error to the true values of the float model: 0.5000" in said(content)


def test_limits_leave_true_values_out_too(tmp_path):
    _, compiled = model(tmp_path, outputs=1)
    np.savez(tmp_path / "data.npz", x=images(), y=np.linspace(0, 1, 60)[:, None])
    examples = read(compiled, tmp_path / "data.npz", 7)
    assert examples.scores.tolist() == np.linspace(0, 1, 60)[:7].tolist()
    assert "label_r2" in simulated(compiled, examples)


def test_values_that_are_not_finite_are_refused(tmp_path):
    np.savez(tmp_path / "data.npz", x=images(2), y=np.array([1.0, np.nan]))
    with pytest.raises(MisuseError, match="NaN or infinity"):
        load(tmp_path / "data.npz")


def test_maps_are_compared_with_the_float_map(tmp_path):
    source, compiled = model(tmp_path, outputs=3)
    np.savez(tmp_path / "data.npz", x=images())
    content = simulated(compiled, read(compiled, tmp_path / "data.npz"), Reference(source))
    floats = FloatModel(source)(images()).reshape(60, 3, 64).argmax(axis=1)
    found = compiled.simulate(images()).reshape(60, 3, 64).argmax(axis=1)
    assert content["metric"] == "segmentation"
    assert content["pixel_accuracy"] == (found == floats).mean()
    assert 0.9 < content["mean_iou"] <= content["pixel_accuracy"]
    assert {"top1", "output", "agreement"} <= content.keys()
    assert f"next to the float model: {content['verdict']}" in said(content)


def test_a_metric_may_be_named(tmp_path):
    source, compiled = model(tmp_path, outputs=3)
    np.savez(tmp_path / "data.npz", x=images())
    content = simulated(compiled, read(compiled, tmp_path / "data.npz"), Reference(source, "embedding"))
    assert 0.99 < content["cosine_min"] <= content["cosine_mean"] == content["score"]


def test_nothing_is_compared_without_a_source(tmp_path):
    _, compiled = model(tmp_path, outputs=3)
    np.savez(tmp_path / "data.npz", x=images())
    content = simulated(compiled, read(compiled, tmp_path / "data.npz"))
    assert not {"metric", "score", "verdict"} & content.keys()
    assert "float model" not in said(content)
