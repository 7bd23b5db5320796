"""Networks that are trained with few bits: what is written is what was trained, and it is better than rounding."""

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime import InferenceSession

torch = pytest.importorskip("torch")

from tacit.cli import app  # noqa: E402
from tacit.compiler import Options, compile_model  # noqa: E402
from tacit.data.examples import Examples  # noqa: E402
from tacit.errors import MisuseError  # noqa: E402
from tacit.importers.onnx import import_onnx  # noqa: E402
from tacit.measure.evaluation import simulated  # noqa: E402
from tacit.model import Model  # noqa: E402
from tacit_lab.train import few_bits  # noqa: E402
from train.test_square import bright_or_dark, relu_network  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

BITS = (2, 2)


def sensible_network(path):
    """The network of `relu_network`, which compares the upper half with the lower half, and random numbers beside."""
    model = onnx.load(relu_network(path))
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    kernel, matrix = (numpy_helper.to_array(constants[name]).copy() for name in ("kernel", "matrix"))
    kernel[0, 0] = np.full((3, 3), 0.3)
    matrix[:4] += np.array([[-1, 1], [-1, 1], [1, -1], [1, -1]])
    for name, value in (("kernel", kernel), ("matrix", matrix)):
        constants[name].CopyFrom(numpy_helper.from_array(value, name))
    onnx.save(model, path)
    return path


def top1(source, folder, x, y):
    """How often the integers of the compiled network are right, with few bits."""
    options = Options(weight_bits=BITS[0], activation_bits=BITS[1], rounding="exact")
    compile_model(source, folder / "few.tacit", x[:200], options=options)
    return simulated(Model(folder / "few.tacit"), Examples(x, y))["top1"]


def test_what_is_written_is_what_was_trained(tmp_path):
    x, y = bright_or_dark()
    source = sensible_network(tmp_path / "relu.onnx")
    model = few_bits.learn(source, x, y, BITS, few_bits.Training(epochs=30, rate=5e-3))
    path = tmp_path / "few.onnx"
    onnx.save(few_bits.as_onnx(model), path)
    for name in model.names:
        weight = model.kernel(name).detach().numpy()
        assert weight.ndim < 2 or all(len(np.unique(row)) <= 2 ** BITS[0] - 1 for row in weight)
    # Rounding of activations is not in the file: with it left out both give the same.
    model.bits = (BITS[0], 16)
    with torch.no_grad():
        trained = model(torch.from_numpy(x)).numpy()
    (written,) = InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"]).run(None, {"input": x})
    np.testing.assert_allclose(trained, written, atol=2e-3)
    assert top1(path, tmp_path, x, y) > max(0.9, top1(source, tmp_path, x, y))


def test_rounding_has_its_points_and_gradients_pass():
    x = torch.tensor([-3.0, -0.4, 0.3, 0.9, 7.0], requires_grad=True)
    near = few_bits.rounded(x, torch.tensor(0.5), -2, 2)
    assert near.tolist() == [-1.0, -0.5, 0.5, 1.0, 1.0]
    near.sum().backward()
    assert x.grad.tolist() == [1.0] * 5


def test_steps_know_how_their_bound_should_move():
    bound = torch.tensor(3.0, requires_grad=True)
    x = torch.tensor([0.4, 1.4, 9.0], requires_grad=True)
    near = few_bits.stepped(x, bound, 3)
    assert near.tolist() == [0.0, 1.0, 3.0]
    near.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 0.0]
    # Below the bound what rounding adds, above it all of the bound, in steps of a third of it.
    assert bound.grad.item() == pytest.approx((-0.4 - 0.4 + 3) / 3)


def test_bounds_are_learned(tmp_path):
    x, _ = bright_or_dark()
    model = few_bits.FewBits(import_onnx(relu_network(tmp_path / "relu.onnx")), BITS)
    model.see(torch.from_numpy(x))
    bounds = {name: value for name, value in model.named_parameters() if name.startswith("b")}
    assert bounds
    model(torch.from_numpy(2 * x)).square().sum().backward()
    assert all(bound.item() > 0.1 and bound.grad.abs().item() > 0 for bound in bounds.values())


def test_the_command_says_how_to_compile(tmp_path):
    x, y = bright_or_dark()
    np.savez(tmp_path / "train.npz", x=x, y=y)
    source, output = sensible_network(tmp_path / "relu.onnx"), tmp_path / "few.onnx"
    words = ["train", "bits", source, "--data", tmp_path / "train.npz", "-o", output, "--epochs", 1, "--images"]
    done = CliRunner().invoke(app, [*map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert (content["weight_bits"], content["activation_bits"], content["inputs"]) == (4, 4, len(y))
    assert 0.8 < content["top1"] <= 1
    assert output.is_file()
    assert not list(tmp_path.glob("*.checkpoint"))


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path, monkeypatch):
    x, y = bright_or_dark()
    source, kept = sensible_network(tmp_path / "relu.onnx"), tmp_path / "kept"
    monkeypatch.setattr(few_bits, "KEPT_EVERY", 2)
    monkeypatch.setattr(few_bits, "moved", lambda x, random: x + torch.rand((), generator=random) / 10)
    how = few_bits.Training(epochs=2, images=True)
    whole = few_bits.learn(source, x, y, BITS, how).state_dict()
    inner, calls = few_bits.distance, []

    def stopped(*given):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return inner(*given)

    how = how._replace(checkpoint=kept)
    monkeypatch.setattr(few_bits, "distance", stopped)
    with pytest.raises(KeyboardInterrupt):
        few_bits.learn(source, x, y, BITS, how)
    assert torch.load(kept, weights_only=True)["done"] == 2
    again = few_bits.learn(source, x, y, BITS, how).state_dict()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    with pytest.raises(MisuseError, match="another training"):
        few_bits.learn(source, x, y, (3, 2), how)
    with pytest.raises(MisuseError, match="another training"):
        few_bits.learn(source, x, y, BITS, how._replace(rate=1e-3))


def test_pools_are_those_of_the_source(tmp_path):
    source = import_onnx(relu_network(tmp_path / "relu.onnx"))
    pool = next(node for node in source.nodes if node.operation["op"] == "MaxPool")
    pool.operation["padding"] = [1, 1, 1, 1]
    x = torch.full((1, 4, 6, 6), -1.0)
    model = few_bits.FewBits(source, None)
    assert model.step(0, pool, [x]).max().item() == -1.0, "no zero of the padding is a maximum"
    pool.operation.update(op="AveragePool", count_include_pad=False)
    with pytest.raises(MisuseError, match="leaves padding out of its means"):
        few_bits.FewBits(source, None)


def test_other_operators_are_refused(tmp_path):
    source = import_onnx(relu_network(tmp_path / "relu.onnx"))
    source.nodes[1].operation["op"] = "Tanh"
    with pytest.raises(MisuseError, match="is a Tanh, which is not trained with few bits"):
        few_bits.FewBits(source, BITS)
