"""A search for the cheapest widths that agree with the float model."""

import numpy as np
import pytest
from networks import Network
from tacit.compiler import Options
from tacit.compiler.target import BITS, Candidate, Search, compile_to_target
from tacit.errors import MisuseError, UnsupportedError
from tacit.model import Model


@pytest.fixture
def model(tmp_path):
    network = Network(("N", 3, 8, 8)).conv((4, 3, 3, 3)).add("Relu").add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    return network.add("Flatten").gemm(36, 5).save(tmp_path)


def images(count=120):
    return np.random.default_rng(1).uniform(-1, 2, (count, 3, 8, 8)).astype(np.float32)


def test_the_cheapest_that_reaches_it_is_written(model, tmp_path):
    said, output = [], tmp_path / "x.tacit"
    summary = compile_to_target(model, output, images(), None, Options(target_agreement=0.95, say=said.append))
    target = summary["target"]
    assert target["held_out"] == 40
    assert target["agreement"] >= target["asked"] == 0.95
    assert len(said) == len(target["candidates"]) <= 24
    reached = [one for one in target["candidates"] if one["agreement"] >= 0.95]
    assert target["bytes"] == min(one["bytes"] for one in reached) == sum(Model(output).plan()["bytes"].values())
    noted = Model(output).inspect()["options"]
    assert noted["target_agreement"] == 0.95
    assert [noted[name] for name in ("weight_bits", "activation_bits")] == [
        target["weight_bits"],
        target["activation_bits"],
    ]


def test_given_widths_stay(model, tmp_path):
    options = Options(target_agreement=0.9, weight_bits=9, clip="percentile:99.99")
    target = compile_to_target(model, tmp_path / "x.tacit", images(), None, options)["target"]
    assert {one["weight_bits"] for one in target["candidates"]} == {9}
    assert {one["clip"] for one in target["candidates"]} == {"percentile:99.99"}


def test_numbers_are_compared_by_their_error(tmp_path):
    path = Network(("N", 3, 8, 8)).conv((4, 3, 3, 3)).add("Relu").add("Flatten").gemm(144, 1).save(tmp_path)
    options = Options(target_agreement=0.97)
    target = compile_to_target(path, tmp_path / "x.tacit", images(), None, options)["target"]
    assert 0.97 <= target["agreement"] < 1


def test_what_cannot_be_searched_is_refused(model, tmp_path):
    for x, options, why in (
        (None, Options(target_agreement=0.9), "give some"),
        (images(30), Options(target_agreement=0.9), "at least 60"),
        (images(), Options(target_agreement=0.9, suite="ufo"), "choose widths yourself"),
    ):
        with pytest.raises(MisuseError, match=why):
            compile_to_target(model, tmp_path / "x.tacit", x, None, options)
        assert not (tmp_path / "x.tacit").exists()


class Imagined(Search):
    """A search whose candidates agree and cost what a formula says."""

    def measure(self, candidate):
        weights, activations = candidate.weight_bits, candidate.activation_bits
        if weights + activations > 21:
            return Candidate(weights, activations, candidate.clip, refused="too wide")
        agreement = 1 - 2.0**-weights - 2.0**-activations - (candidate.clip == "minmax") * 2.0**-10
        return Candidate(weights, activations, candidate.clip, agreement, 100 * activations + 10 * weights)


def search(target, tmp_path, **options):
    nothing = np.zeros((0, 1), np.float32)
    return Imagined(lambda _, __: {}, Options(**options), nothing, nothing, target, tmp_path)


@pytest.mark.parametrize("target", [0.96, 0.97, 0.98, 0.99, 0.992, 0.996])
def test_bisection_finds_what_an_exhaustive_search_finds(tmp_path, target):
    found, all_of_them = search(target, tmp_path), search(target, tmp_path)
    best = found.cheapest()
    candidates = [
        all_of_them.measured(weights, activations, clip)
        for weights in range(BITS[0], 11)
        for activations in range(BITS[0], BITS[1] + 1)
        for clip in ("minmax", "mse")
    ]
    reached = [one for one in candidates if all_of_them.reaches(one)]
    assert best.bytes == min(one.bytes for one in reached)
    assert len(found.tried) <= 24 < len(candidates)


def test_an_unreachable_target_names_the_best(tmp_path):
    with pytest.raises(MisuseError, match=r"reach an agreement of 0\.9999; best: weights 10 bits, activations 11 bits"):
        search(0.9999, tmp_path).cheapest()


def test_a_model_that_cannot_be_compiled_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="too wide"):
        search(0.9, tmp_path, weight_bits=12, activation_bits=12).cheapest()
