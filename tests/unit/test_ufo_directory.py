"""Directories of networks of few bits, and what their integers compute; no PyTorch."""

import json

import numpy as np
from tacit_lab.train.ufo import cost, directory, emulate


def convolution(name: str, kernel: int, winograd: bool, stride: int = 1) -> dict:
    return {
        "op": "QuantisedConv",
        "kernel": [kernel] * 2,
        "stride": [stride] * 2,
        "padding": [kernel // 2] * 4,
        "dilation": [1, 1],
        "groups": 1,
        "winograd": winograd,
        "weight": f"{name}_weight",
        "importance": [2, 3, 4],
        "offset": -5,
        "scale": f"{name}_scale",
        "bias": f"{name}_bias",
    }


def network(random: np.random.Generator) -> directory.Quantised:
    """A convolution, a ReLU of 8 bits, a block with a residual, a mean and a last layer."""
    model = directory.Quantised("tiny", "input", (2, 4, 4), labels=("a", "b", "c"))
    model.ranges["input"] = (-1.0, 1.27)
    for name, shape in (("stem", (4, 2, 3, 3)), ("body", (4, 4, 4, 4))):
        model.store(f"{name}_weight", random.integers(-5, 5, shape).astype(np.int8))
        model.store(f"{name}_scale", random.uniform(0.01, 0.05, 4).astype(np.float32))
        model.store(f"{name}_bias", random.uniform(-1, 1, 4).astype(np.float32))
    model.put(["input"], "stem", convolution("stem", 3, winograd=False))
    model.ranges["wide"] = (0.0, 2.55)
    model.put(["stem"], "wide", {"op": "Relu", "maximum": None, "bits": 8})
    model.put(["wide"], "narrow", {"op": "Requantize", "bits": 6})
    model.put(["narrow"], "body", convolution("body", 3, winograd=True))
    model.put(["body", "wide"], "sum", {"op": "Add"})
    model.ranges["after"] = (0.0, 5.1)
    model.put(["sum"], "after", {"op": "Relu", "maximum": None, "bits": 8})
    model.put(["after"], "pool", {"op": "AveragePool", "kernel": [4, 4]})
    model.put(["pool"], "flat", {"op": "Reshape", "shape": [4]})
    model.store("last_weight", random.normal(size=(3, 4)).astype(np.float32))
    model.store("last_bias", random.normal(size=3).astype(np.float32))
    model.put(["flat"], "logits", {"op": "Gemm", "weight": "last_weight", "bias": "last_bias"})
    return model


def test_directories_are_read_as_they_were_written(tmp_path):
    model = network(np.random.default_rng(1))
    model.write(tmp_path)
    content = json.loads((tmp_path / "quantised.json").read_text())
    assert (content["format"], content["version"]) == ("tacit-quantised", 1)
    assert content["source"]["output"] == "logits" and "preprocess" not in content
    read = directory.read(tmp_path)
    assert read.nodes == model.nodes and read.ranges == model.ranges and read.labels == model.labels
    assert read.arrays["body_weight"].dtype == np.int8
    for name, array in model.arrays.items():
        assert (read.arrays[name] == array).all()


def test_integers_follow_the_arithmetic():
    random = np.random.default_rng(2)
    model = network(random)
    x = random.integers(-127, 128, (3, 2, 4, 4)).astype(np.float32)
    found = emulate.tensors(model, x)
    wide, narrow, after = found["wide"].values, found["narrow"].values, found["after"].values
    assert (wide == wide.round()).all() and wide.min() >= 0 and wide.max() <= 255
    assert (narrow == (wide.astype(int) + 2) >> 2).all()
    sums = emulate.sums(narrow, model.arrays["body_weight"], model.nodes[3])
    real = sums * 0.04 * model.arrays["body_scale"].astype(float)[:, None, None]
    real += model.arrays["body_bias"].astype(float)[:, None, None] + wide * 0.01
    assert np.abs(after - np.floor(real / 0.02 + 0.5).clip(0, 255)).max() <= 1
    assert np.allclose(emulate.logits(model, x), found["logits"].values)


def test_places_and_strides_sum_as_by_hand():
    random = np.random.default_rng(3)
    x = random.integers(0, 65, (1, 3, 4, 6)).astype(float)
    g = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
    ordinary = random.integers(-4, 4, (2, 3, 3, 3)) * 4.0  # so that G w G^T is whole
    by_places = emulate.sums(x, g @ ordinary @ g.T, convolution("a", 3, winograd=True))
    assert np.allclose(by_places, by_hand(x, ordinary, 1))
    assert np.allclose(
        emulate.sums(x, ordinary, convolution("a", 3, winograd=False, stride=2)), by_hand(x, ordinary, 2)
    )


def by_hand(x, weight, stride):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, columns = range(0, x.shape[2], stride), range(0, x.shape[3], stride)
    return np.array(
        [
            [[[(padded[n, :, r : r + 3, c : c + 3] * w).sum() for c in columns] for r in rows] for w in weight]
            for n in range(len(x))
        ]
    )


def test_costs_fall_with_the_importance_of_bits():
    assert [cost.trailing(value) for value in (1, 2, -8, 12, 7)] == [0, 1, 3, 2, 0]
    total = sum(product.outputs for product in cost.products())
    assert total == 7 * 16384 + 6 * 8192 + 6 * 4096
