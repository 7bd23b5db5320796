"""Models as they are in Python, with stand-ins for the frameworks that this environment lacks."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import tacit
from networks import Network
from tacit.errors import MisuseError

X = np.random.default_rng(0).uniform(-1, 1, (32, 12)).astype(np.float32)


def perceptron() -> Network:
    return Network(("N", 12)).gemm(12, 8).add("Relu").gemm(8, 3)


class Tensor(np.ndarray):
    """A stand-in for a tensor of PyTorch."""

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return np.asarray(self)

    def to(self, _device):
        return self


class Module:
    """A stand-in for a module of PyTorch."""

    def __init__(self):
        self.training = True
        self.part = SimpleNamespace(training=False)

    def modules(self):
        return [self, self.part]

    def parameters(self):
        return iter([SimpleNamespace(device="cpu")])

    def eval(self):
        for part in self.modules():
            part.training = False

    def forward(self, x):
        if x.shape[1:] != (12,):
            raise ValueError("wrong shape\nand much more")

    __call__ = forward


class Perceptron(Module):
    """Somebody's own module."""


class Estimator:
    """A stand-in for an estimator of scikit-learn."""

    n_features_in_ = 12

    def predict(self, _):
        """What estimators have."""


Module.__module__, Tensor.__module__ = "torch.nn.modules.module", "torch"
Estimator.__module__ = "sklearn.linear_model"


def install_torch(monkeypatch, export):
    """Let `import torch` give a stand-in with this exporter."""
    stand_in = SimpleNamespace(from_numpy=lambda x: x.view(Tensor), onnx=SimpleNamespace(export=export))
    monkeypatch.setitem(sys.modules, "torch", stand_in)


def near(model: tacit.Model, network: Network, folder: Path) -> bool:
    """Whether a compiled model is that of `network`."""
    expected = tacit.compile(network.save(folder), X, options=tacit.Options(rounding="exact"))
    return bool(np.allclose(model.simulate(X) * model.output_scale, expected.simulate(X) * expected.output_scale))


def test_importing_tacit_loads_no_framework():
    code = "import sys, tacit; assert not {'onnx', 'onnxruntime', 'torch', 'sklearn'} & set(sys.modules); tacit.compile"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(Path(tacit.__file__).parents[1])})


def test_a_path_and_a_model_of_onnx(tmp_path):
    path = perceptron().save(tmp_path)
    model = tacit.compile(str(path), X, output=tmp_path / "own.tacit")
    assert model.path == tmp_path / "own.tacit"
    assert model.input_shape == (12,)
    other = tacit.compile(onnx.load(path), X)
    assert other.path.name == "model.tacit"
    assert near(other, perceptron(), tmp_path)


@pytest.mark.parametrize("dynamo", [True, False])
def test_a_module_is_exported_in_evaluation_mode(tmp_path, monkeypatch, dynamo):
    asked = []

    def export(module, example, path, **settings):
        asked.append((module.training, example[0].shape, settings))
        onnx.save(perceptron().proto(), path)

    if dynamo:
        install_torch(monkeypatch, lambda *a, dynamo, **s: export(*a, **s, dynamo=dynamo))
    else:
        install_torch(monkeypatch, export)
    module = Perceptron()
    model = tacit.compile(module, X.view(Tensor))
    assert model.path.name == "Perceptron.tacit"
    assert near(model, perceptron(), tmp_path)
    assert [part.training for part in module.modules()] == [True, False]
    assert asked[0][:2] == (False, (1, 12))
    assert asked[0][2]["dynamic_axes"] == {"input": {0: "N"}}


def test_a_second_exporter_is_tried(monkeypatch):
    def export(_module, _example, path, *, dynamo, **_settings):
        if not dynamo:
            raise RuntimeError("cannot trace")
        onnx.save(perceptron().proto(), path)

    install_torch(monkeypatch, export)
    assert tacit.compile(Perceptron(), X).output_shape == (3,)


def test_what_modules_cannot_do_is_said(monkeypatch):
    def export(*_args, dynamo, **_settings):
        raise RuntimeError(f"cannot trace\n{dynamo}")

    install_torch(monkeypatch, export)
    with pytest.raises(
        MisuseError, match=r"a module of PyTorch says no shape; give examples: tacit.compile\(module, x"
    ):
        tacit.compile(Perceptron())
    with pytest.raises(MisuseError, match=r"Perceptron fails on an input of shape \[1, 3\] \(wrong shape\); give"):
        tacit.compile(Perceptron(), X[:, :3])
    with pytest.raises(MisuseError, match=r"cannot export Perceptron \(cannot trace\); rewrite"):
        tacit.compile(Perceptron(), X)


def test_estimators_go_through_skl2onnx(tmp_path, monkeypatch):
    shapes = []

    def to_onnx(_estimator, example, target_opset):
        shapes.append((example.shape, target_opset))
        return perceptron().proto()

    monkeypatch.setitem(sys.modules, "skl2onnx", SimpleNamespace(to_onnx=to_onnx))
    assert near(tacit.compile(Estimator(), X), perceptron(), tmp_path)
    with pytest.warns(UserWarning, match="no example inputs"):
        tacit.compile(Estimator())
    tacit.compile(Estimator(), input_range=(-1, 1))
    assert shapes == [((1, 12), 17)] * 3


def test_what_estimators_lack_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)  # so that importing it fails
    with pytest.raises(MisuseError, match="need skl2onnx; install it: pip install skl2onnx"):
        tacit.compile(Estimator(), X)
    monkeypatch.delattr(Estimator, "n_features_in_")
    with pytest.raises(MisuseError, match="says no number of features: fit it"):
        tacit.compile(Estimator())
    monkeypatch.setitem(sys.modules, "skl2onnx", SimpleNamespace(to_onnx=lambda *_, **__: 1 / 0))
    with pytest.raises(MisuseError, match=r"cannot convert Estimator \(division by zero\); fit it"):
        tacit.compile(Estimator(), X)


OTHERS = {
    "a number": (3, X, "builtins.int is no model that is compiled from Python; give a module of PyTorch"),
    "several inputs": (Perceptron(), (X, X), "the example is a collection; give one array"),
    "words": (Perceptron(), ["a"], "the example is no array of numbers"),
    "no batch": (Perceptron(), X[0], r"the example has shape \[12\]; give one or more inputs, the batch first"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_objects_are_refused(case):
    model, example, words = OTHERS[case]
    with pytest.raises(MisuseError, match=words):
        tacit.compile(model, example)


def test_other_frameworks_are_named():
    dataset = type("Dataset", (), {"__module__": "lightgbm.basic"})()
    with pytest.raises(MisuseError, match=r"lightgbm\.basic\.Dataset is no model .*; give a Booster"):
        tacit.compile(dataset, X)
    with pytest.raises(MisuseError, match="Booster is not fitted"):
        tacit.compile(type("Booster", (), {"__module__": "lightgbm.basic"})(), X)


def test_with_pytorch_itself(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed here")
    module = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    model = tacit.compile(module, X, output=tmp_path / "own.tacit")
    expected = module(torch.from_numpy(X)).detach().numpy()
    assert np.abs(model.simulate(X) * model.output_scale - expected).mean() < 0.02 * np.abs(expected).max()


def test_with_scikit_learn_itself(tmp_path):
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed here")
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed here")
    estimator = linear.Ridge().fit(X, X[:, 0] - 2 * X[:, 1])
    model = tacit.compile(estimator, X, output=tmp_path / "own.tacit")
    expected = estimator.predict(X)[:, None]
    assert np.abs(model.simulate(X) * model.output_scale - expected).mean() < 0.02 * np.abs(expected).max()
