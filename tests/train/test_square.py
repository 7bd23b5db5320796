"""Finetuning of networks of squares, and LoLa's network for CIFAR-10."""

import lzma

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

torch = pytest.importorskip("torch")

from tacit.compiler import Options, compile_model  # noqa: E402
from tacit.data.examples import Examples  # noqa: E402
from tacit.measure.evaluation import simulated  # noqa: E402
from tacit.model import Model  # noqa: E402
from tacit_lab.train import lola_cifar, square  # noqa: E402

COUNT = 600


def relu_network(path):
    """A convolution, a ReLU, a maximum of windows, a matrix product."""
    rng = np.random.default_rng(3)
    arrays = {
        "kernel": rng.normal(0, 0.5, (4, 1, 3, 3)),
        "kernel_bias": rng.normal(0, 0.1, 4),
        "matrix": rng.normal(0, 0.2, (16, 2)),
        "bias": np.zeros(2),
    }
    nodes = [
        helper.make_node("Conv", ["input", "kernel", "kernel_bias"], ["conv"], "conv", pads=[1] * 4),
        helper.make_node("Relu", ["conv"], ["relu"], "relu"),
        helper.make_node("MaxPool", ["relu"], ["pool"], "pool", kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["pool"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "matrix", "bias"], ["logits"], "dense"),
    ]
    given = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 1, 8, 8])
    made = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 2])
    constants = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "tiny", [given], [made], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def bright_or_dark():
    """Images whose class is whether their upper half is the brighter one."""
    rng = np.random.default_rng(4)
    x = rng.normal(0, 1, (COUNT, 1, 8, 8)).astype(np.float32)
    y = rng.integers(0, 2, COUNT)
    x[y == 1, :, :4] += 1
    x[y == 0, :, 4:] += 1
    return x, y.astype(np.int64)


def test_a_network_with_relus_becomes_one_of_squares_that_learns(tmp_path):
    x, y = bright_or_dark()
    model = square.finetune(relu_network(tmp_path / "relu.onnx"), x, y, 8, 1e-2)
    path = tmp_path / "square.onnx"
    onnx.save(square.to_onnx(model.eval()), path)
    operators = {node.op_type for node in onnx.load(path).graph.node}
    assert "AveragePool" in operators and not operators & {"Relu", "MaxPool"}
    with torch.no_grad():
        ours = model(torch.from_numpy(x)).numpy()
    theirs = InferenceSession(str(path)).run(None, {"input": x})[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    assert (ours.argmax(axis=1) == y).mean() > 0.9
    compiled = tmp_path / "square.tacit"
    compile_model(path, compiled, x[:100], None, Options(suite="lola", activation_bits=5, weight_bits=6))
    assert simulated(Model(compiled), Examples(x, y))["top1"] > 0.85


def test_training_for_cifar10_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(lola_cifar, "HELD_OUT", 32)
    monkeypatch.setattr(lola_cifar, "BATCH", 16)
    rng = np.random.default_rng(5)
    images = rng.integers(0, 256, (96, 3, 32, 32)).astype(np.uint8)
    labels = rng.integers(0, 10, 96)
    whole = lola_cifar.train(images, labels, 2, tmp_path / "whole")

    save = lola_cifar.Training.save

    def killed(training):
        save(training)
        raise KeyboardInterrupt

    monkeypatch.setattr(lola_cifar.Training, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        lola_cifar.train(images, labels, 2, tmp_path / "parts")
    monkeypatch.setattr(lola_cifar.Training, "save", save)
    parts = lola_cifar.train(images, labels, 2, tmp_path / "parts")
    for one, other in zip(whole.state_dict().values(), parts.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other)


def test_batch_norms_are_folded_and_weights_are_coarse():
    network = lola_cifar.Network().eval()
    for norm in network.norms:
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
    x = np.random.default_rng(6).uniform(-1, 1, (4, 3, 32, 32)).astype(np.float32)
    packed = lola_cifar.to_onnx(network).SerializeToString()
    assert len(lzma.compress(packed)) < len(packed) / 2
    theirs = InferenceSession(packed).run(None, {"input": x})[0]
    with torch.no_grad():
        ours = network(torch.from_numpy(x)).numpy()
    assert np.abs(ours - theirs).max() < 0.02 * np.abs(ours).max() + 0.02
