"""The workloads of HomomorphicEncryption.org: stages of a session, and the networks that stand for theirs."""

import json

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from tacit_lab.heorg import digits, faces, sentences
from tacit_lab.heorg.contract import (
    COMPUTED,
    GIB,
    INPUT_BYTES,
    KEY_BYTES,
    KEYS,
    MODEL,
    RESULT_BYTES,
    Workload,
    measurement,
    quality,
    size,
    write,
)
from tacit_lab.reproduce import heorg


def report():
    def phase(there, back, seconds):
        return {"bytes": {"client_to_server": there, "server_to_client": back}, "rounds": 2, "seconds": seconds}

    phases = {"setup": phase(1000, 500, 0.25), "offline": phase(3, 40, 0.5), "online": phase(200, 5000, 1.25)}
    return {"phases": phases, "seconds": 2.125, "rounds": 6, "max_error": 0, "peak_memory_bytes": {}, "cpu_seconds": {}}


def test_stages_hold_all_of_a_session():
    found = measurement(report(), 3.0)
    assert found.stages == {KEYS: 0.25, MODEL: 3.0, COMPUTED: 1.875}
    # Making the model file needs no client, on either side.
    assert found.seconds == 2.125
    assert found.sizes == {KEY_BYTES: 1500, INPUT_BYTES: 203, RESULT_BYTES: 5040}
    said = quality(97, 100)
    content = found.content(Workload("mlp", "mnist", "small", said))
    assert (content["model_name"], content["dataset_name"], content["Server Reported"]) == ("mlp", "mnist", {})
    assert content["Quality"] == {
        "Encrypted model quality": {"correct_predictions": 97, "total_samples": 100, "accuracy": 0.97}
    }
    assert content["Timing"] == {KEYS: "0.2500s", MODEL: "3.0000s", COMPUTED: "1.8750s", "Total": "5.1250s"}
    assert content["Bandwidth"] == {KEY_BYTES: "1.5K", INPUT_BYTES: "203B", RESULT_BYTES: "4.9K"}
    assert [size(each) for each in (1.4 * GIB, 5.2 * 2**20, 367_411)] == ["1.4G", "5.2M", "358.8K"]


def test_files_are_laid_out_as_their_harness_does(tmp_path):
    given = measurement(report(), 3.0)
    run = heorg.besides("1 digit", Workload("mlp", "mnist"), given, report())
    assert write([{"name": "no run of theirs"}, run], tmp_path) == [tmp_path / "measurements/single/results-1.json"]
    written = json.loads((tmp_path / "measurements/single/results-1.json").read_text())
    assert written == given.content(Workload("mlp", "mnist"))
    # One input has no accuracy.
    assert "Quality" not in written


def test_rows_stand_beside_the_stages_of_the_reference():
    lines = heorg.rows(heorg.MNIST[1], measurement(report(), 3.0), right=0.97)
    assert [(line["ours"], line["unit"]) for line in lines] == [
        (2.125, "s"),
        (1.875, "s"),
        (0.0015, "MB"),
        (0.0002, "MB"),
        (0.005, "MB"),
        (97.0, "%"),
    ]
    assert lines[0]["paper"] == pytest.approx(0.9661 + 0.02213 + 3.0613 + 645.6 + 2.5396)


def test_gradients_of_the_network_of_digits():
    rng = np.random.default_rng(1)
    parts = digits.start(rng)
    x, y = rng.normal(size=(8, 784)).astype(np.float32), rng.integers(0, 10, 8)

    def loss(given):
        logits = digits.forward(given, x)[-1].astype(np.float64)
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(8), y]))

    slopes = digits.gradients(parts, x, y)
    assert [slope.shape for slope in slopes] == [part.shape for part in parts]
    for at, slope in enumerate(slopes):
        direction = rng.normal(size=slope.shape).astype(np.float32)
        ends = [
            [*parts[:at], part, *parts[at + 1 :]]
            for part in (parts[at] + 1e-3 * direction, parts[at] - 1e-3 * direction)
        ]
        assert float((slope * direction).sum()) == pytest.approx(
            (loss(ends[0]) - loss(ends[1])) / 2e-3, rel=0.02, abs=2e-3
        )


def test_the_network_of_digits_as_onnx(tmp_path):
    parts = digits.start(np.random.default_rng(2))
    digits.save(parts, tmp_path / "mlp.onnx")
    x = np.random.default_rng(3).normal(size=(4, 784)).astype(np.float32)
    (found,) = ReferenceEvaluator(onnx.load(tmp_path / "mlp.onnx")).run(None, {"x": x})
    assert np.allclose(found, digits.forward(parts, x)[-1], atol=1e-5)


def test_networks_with_random_weights_have_their_shapes():
    model = onnx.shape_inference.infer_shapes(faces.network(), strict_mode=True)
    shape = [each.dim_value for each in model.graph.output[0].type.tensor_type.shape.dim]
    assert shape[1] == faces.EMBEDDING
    weights = sum(np.prod(each.dims) for each in model.graph.initializer)
    assert 0.9e6 < weights < 1.3e6  # MobileFaceNet has 0.99 million
    assert faces.score(np.array([[3.0, 4.0], [6.0, 8.0]])) == pytest.approx(1)
    small = sentences.Shape(32, 4, 64)
    onnx.checker.check_model(sentences.network(small, 2, 8, labels=2))
    model = onnx.shape_inference.infer_shapes(sentences.network(small, 2, 8, labels=2))
    assert [each.dim_value for each in model.graph.output[0].type.tensor_type.shape.dim][1:] == [2]
