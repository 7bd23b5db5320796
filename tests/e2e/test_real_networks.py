"""Pretrained networks on real pictures: decoded as published, compiled, simulated, run privately."""

import hashlib

import numpy as np
import pytest
import real_networks
from conftest import DATA
from tacit.model import Model
from tacit.session.pair import Pair

TEST_SET = "177777c33ba79825320efa646ad04a94bdc3c80e4ebe3bd21724f8cdfd4b9d56"
NETWORKS = {"resnet20_cifar10": "cifar10", "mlperf_tiny_resnet8_cifar10": "raw"}
COUNT = 100
CALIBRATION = 8
SIMULATED = 2
SMALL = {"cifar10", "cifar100", "mnist"}
PRETRAINED = [name for name, network in real_networks.NETWORKS.items() if network.trained]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`cifar10.npz`, the first images of the test set, and `calibration.npz`."""
    if not (DATA / "cifar10").exists() or not (DATA / "models").exists():
        pytest.skip(f"{DATA} has no CIFAR-10 or no models: pretrained networks are not checked")
    folder = tmp_path_factory.mktemp("cifar10")
    test, calibration = real_networks.images("cifar10", DATA)
    assert hashlib.sha256(test.x.tobytes()).hexdigest() == TEST_SET
    np.savez(folder / "cifar10.npz", x=test.x[:COUNT], y=test.y[:COUNT])
    np.savez(folder / "calibration.npz", x=calibration.x, y=calibration.y)
    return folder


@pytest.mark.parametrize("name", NETWORKS)
def test_integers_agree_with_the_float_model(tacit, folder, name):
    source, compiled = DATA / "models" / f"{name}.onnx", folder / f"{name}.tacit"
    options = ("--calibrate", folder / "calibration.npz", "--preprocess", NETWORKS[name])
    options += ("--labels", DATA / "cifar10" / "classes.txt")
    done = tacit("compile", source, "-o", compiled, *options)
    assert done.code == 0, done.err
    content = tacit("evaluate", compiled, folder / "cifar10.npz", "--model", source, "--json", seconds=300).json
    assert content["float_top1"] >= 0.84
    assert content["agreement"] >= 0.96


@pytest.mark.parametrize(("name", "pixels"), [("resnet20_cifar10", "cifar10"), ("delphi_minionn_cifar10_relu", "unit")])
def test_weights_of_few_bits_keep_most_of_the_accuracy(tacit, folder, name, pixels):
    source, compiled = DATA / "models" / f"{name}.onnx", folder / f"{name}-ufo.tacit"
    options = ("--calibrate", folder / "calibration.npz", "--preprocess", pixels, "--suite", "ufo")
    done = tacit("compile", source, "-o", compiled, *options, seconds=300)
    assert done.code == 0, done.err
    content = tacit("evaluate", compiled, folder / "cifar10.npz", "--model", source, "--json", seconds=300).json
    assert content["top1"] >= content["float_top1"] - 0.06


@pytest.mark.parametrize("name", PRETRAINED)
def test_every_pretrained_network_runs(tacit, tmp_path, name):
    """Few images calibrate: this is about operators and widths."""
    network = real_networks.NETWORKS[name]
    if not (DATA / "models").exists():
        pytest.skip(f"{DATA} has no models: {name} is not checked")
    (tmp_path / "pixels.json").write_text(network.preprocessing.to_json())
    test, calibration = real_networks.images(network.data, DATA)
    every = max(1, len(calibration.x) // CALIBRATION)
    np.savez(tmp_path / "calibration.npz", x=calibration.x[::every])
    options = ("--calibrate", tmp_path / "calibration.npz", "--preprocess", tmp_path / "pixels.json")
    options += ("--rounding", "exact", *network.options)
    done = tacit("compile", DATA / "models" / network.file, "-o", tmp_path / "x.tacit", *options)
    assert done.code == 0, done.err
    model = Model(tmp_path / "x.tacit")
    x = network.preprocessing.inputs(test.x[:SIMULATED].transpose(0, 2, 3, 1))
    outputs = model.simulate(x)
    assert (outputs.max(axis=1) > outputs.min(axis=1)).all()
    if network.data in SMALL:
        assert Pair(model).run(x[:1], None).report["max_error"] == 0


@pytest.mark.parametrize("suite", ["gazelle", "gala"])
def test_packed_slots_carry_a_residual_network(tacit, folder, suite):
    source, compiled = DATA / "models" / "mlperf_tiny_resnet8_cifar10.onnx", folder / f"resnet8-{suite}.tacit"
    options = ("--calibrate", folder / "calibration.npz", "--preprocess", "raw", "--suite", suite)
    done = tacit("compile", source, "-o", compiled, *options)
    assert done.code == 0, done.err
    report = tacit("evaluate", compiled, folder / "cifar10.npz", "--mode", "private", "--limit", 1, "--json").json
    assert (report["suite"], report["inputs"], report["max_error"]) == (suite, 1, 0)
    assert report["agreement"] == 1.0
