"""The shipped network on the 10,000 MNIST test images, in float and in the interpreter."""

import pytest
from conftest import ASSETS, MNIST

TARGET = 0.989


@pytest.fixture(scope="module")
def test_set(tacit, tmp_path_factory):
    """`mnist_test.npz` made from the full data set."""
    if not MNIST.exists():
        pytest.skip(f"{MNIST} is absent: accuracy on the 10,000 test images is not checked")
    folder = tmp_path_factory.mktemp("mnist")
    done = tacit("demo", "--folder", folder, "--mnist", MNIST, "--only-build")
    assert done.code == 0, done.err
    assert "10000 test images" in done.err
    return folder / "mnist_test.npz"


def test_float(tacit, compiled, test_set):
    arguments = ("--mode", "plain", "--model", ASSETS / "mnist.onnx", "--json")
    content = tacit("evaluate", compiled("exact"), test_set, *arguments).json
    assert content["inputs"] == 10_000
    assert content["top1"] >= TARGET


@pytest.mark.parametrize("rounding", ["exact", "stochastic"])
def test_interpreter(tacit, compiled, test_set, rounding):
    content = tacit("evaluate", compiled(rounding), test_set, "--mode", "simulate", "--json", seconds=600).json
    assert content["inputs"] == 10_000
    assert content["top1"] >= TARGET


def test_private_labels(tacit, compiled, test_set):
    arguments = ("--mode", "private", "--limit", 100, "--json")
    exact = tacit("evaluate", compiled("exact"), test_set, *arguments, seconds=300).json
    assert (exact["max_error"], exact["equal_outputs"]) == (0, 100)
    stochastic = tacit("evaluate", compiled("stochastic"), test_set, *arguments, seconds=300).json
    assert stochastic["agreement"] >= 0.99
