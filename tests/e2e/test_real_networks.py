"""Pretrained CIFAR-10 networks on real pictures: decoded as published, integers that agree with the float model."""

import hashlib

import numpy as np
import prepare_data
import pytest
from conftest import DATA

TEST_SET = "177777c33ba79825320efa646ad04a94bdc3c80e4ebe3bd21724f8cdfd4b9d56"
NETWORKS = {"resnet20_cifar10": "cifar10", "mlperf_tiny_resnet8_cifar10": "raw"}
COUNT = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """`cifar10.npz`, the first images of the test set, and `calibration.npz`."""
    if not (DATA / "cifar10").exists() or not (DATA / "models").exists():
        pytest.skip(f"{DATA} has no CIFAR-10 or no models: pretrained networks are not checked")
    folder = tmp_path_factory.mktemp("cifar10")
    test, calibration = prepare_data.cifar10(DATA)
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
