"""The scripts that prepare data and build networks."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import prepare_data
import pytest
import random_resnets
from onnx import numpy_helper
from PIL import Image

SCRIPTS = Path(prepare_data.__file__).parent
PARAMETERS = {"resnet18": 11_689_512, "resnet50": 25_557_032}
NORMALISED = {"resnet18": 4_800, "resnet50": 26_560}


@pytest.mark.parametrize("name", ["prepare_data.py", "random_resnets.py"])
def test_help(name):
    done = subprocess.run([sys.executable, SCRIPTS / name, "--help"], capture_output=True, text=True, check=True)
    assert "usage" in done.stdout
    assert subprocess.run([sys.executable, SCRIPTS / name, "x"], capture_output=True, check=False).returncode == 2


@pytest.mark.parametrize("name", PARAMETERS)
def test_resnets_are_as_large_as_the_originals(name):
    """Batch normalisation has two parameters a channel, of which folding leaves one: the bias."""
    model = random_resnets.build(name)
    count = sum(numpy_helper.to_array(tensor).size for tensor in model.graph.initializer)
    assert count == PARAMETERS[name] - NORMALISED[name]


def delta(pixels):
    """The reversible filter of the CIFAR files."""
    coded = pixels.copy()
    coded[:, 2] -= coded[:, 1]
    coded[:, 0] -= coded[:, 1]
    coded[:, :, :, 1:] -= coded[:, :, :, :-1].copy()
    coded[:, :, 1:] -= coded[:, :, :-1].copy()
    return coded


def test_cifar_files_are_decoded(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (500, 3, 32, 32), np.uint8)
    (tmp_path / "cifar100").mkdir()
    np.savez(tmp_path / "cifar100" / "cifar100_test2k.npz", delta=delta(pixels), y=np.arange(500, dtype=np.uint8) % 100)
    test, calibration = prepare_data.cifar100(tmp_path)
    np.testing.assert_array_equal(np.concatenate([test.x, calibration.x]), pixels)
    assert (len(test.y), len(calibration.y)) == (300, 200)


def test_mnist_calibrates_on_training_images_of_all_classes(tmp_path):
    (tmp_path / "mnist").mkdir()
    parts = {part: np.full((400, 28, 28), value, np.uint8) for part, value in (("x_train", 1), ("x_test", 2))}
    labels = dict.fromkeys(("y_train", "y_test"), np.arange(400) % 10)
    np.savez(tmp_path / "mnist" / "mnist.npz", **parts, **labels)
    test, calibration = prepare_data.mnist(tmp_path)
    assert (test.x.shape, test.x.max()) == ((400, 1, 28, 28), 2)
    assert (calibration.x.max(), np.bincount(calibration.y).tolist()) == (1, [30] * 10)


@pytest.mark.parametrize("side", [224, 227])
def test_photographs(tmp_path, side):
    folder = tmp_path / "imagenet"
    for part, name in (("images", "a.jpg"), ("free_images", "b.jpg")):
        (folder / part).mkdir(parents=True)
        Image.new("RGB", (224, 224), (10, 200, 30)).save(folder / part / name)
    (folder / "labels.tsv").write_text("file\tclass_index\na.jpg\t7\n")
    (folder / "free_labels.tsv").write_text("file\taccepted_class_indices\nb.jpg\t281,282\n")
    test, calibration = prepare_data.imagenet(tmp_path, side)
    assert (test.x.shape, test.y.tolist()) == ((1, 3, side, side), [7])
    assert calibration.x.shape == (prepare_data.CROPS, 3, side, side)
    assert set(calibration.y.tolist()) == {281}
    assert abs(int(test.x[0, 1].mean()) - 200) < 5
