"""Models that serve here: the small network of the fault tests, and a real one."""

import numpy as np
import pytest
import real_networks
from conftest import ASSETS, DATA
from faults.conftest import Job, job
from tacit.data.preprocess import parse

__all__ = ["Job", "job"]
PICTURES = 8


@pytest.fixture(scope="session")
def digits():
    """A handwritten digit of each class."""
    with np.load(ASSETS / "mnist_digits.npz") as archive:
        return archive["x"]


@pytest.fixture(scope="session")
def resnet20(tmp_path_factory, tacit):
    """ResNet-20 as `real_networks` compiles it, and some inputs."""
    if not (DATA / "cifar10").exists() or not (DATA / "models").exists():
        pytest.skip(f"{DATA} has no CIFAR-10 or no models: ResNet-20 serves nobody")
    folder = tmp_path_factory.mktemp("resnet20")
    test, calibration = real_networks.images("cifar10", DATA)
    np.savez(folder / "calibration.npz", x=calibration.x[:8], y=calibration.y[:8])
    model = folder / "resnet20.tacit"
    done = tacit(
        "compile", DATA / "models" / "resnet20_cifar10.onnx", "-o", model,
        "--calibrate", folder / "calibration.npz", "--preprocess", "cifar10", "--rounding", "exact",
    )  # fmt: skip
    assert done.code == 0, done.err
    pictures = test.x[:PICTURES].transpose(0, 2, 3, 1)
    return model, np.asarray(parse("cifar10").inputs(pictures), np.float32)
