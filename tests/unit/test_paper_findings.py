"""What docs/papers says about papers, where their own numbers show it."""

import re
from math import exp, log

import numpy as np
import pytest
from lattice_estimate import FLOOR, GATED, ternary
from tacit.compiler.compiler import Options, compile_model
from tacit.demo.digits import asset
from tacit.model import Model
from tacit_lab.reproduce import falcon, gala

BOTTLENECKS = ("resnet50", "resnet101", "resnet152")


def test_falcons_lattice_is_weaker_than_it_says():
    """Slots, modulus and deviation of section 6, which says 128 bits."""

    def bits(degree):
        return min(attack(ternary(degree, 60, 3.2)) for attack in GATED.values())

    assert bits(2048) < 120 < FLOOR < bits(4096)


@pytest.mark.parametrize(("digits", "classes"), [(2, 10), (3, 100), (4, 1000)])
def test_falcons_theorem_leaves_no_room_for_rounding(digits, classes):
    """With all other logits just below the threshold, dropping them errs by all that is allowed, and rounding adds."""
    threshold = log((10**digits - 1) * (classes - 1))
    spent = 1 - 1 / (1 + (classes - 1) * exp(-threshold))
    assert spent == pytest.approx(10**-digits, rel=1e-9)
    half = 0.5 * 10**-digits
    rounded = 1 - 1 / (1 + (classes - 1) * exp(-(threshold - half)))
    assert rounded > 10**-digits
    ours = log((2 * 10**digits - 1) * (classes - 1))
    assert 1 - 1 / (1 + (classes - 1) * exp(-(ours - half))) < 0.6 * 10**-digits


def test_a_number_of_falcons_table_4_has_slipped():
    for papers in falcon.TABLE_4.values():
        for field in falcon.Cost._fields:
            small, middle, large = (getattr(papers[classes], field) for classes in (10, 100, 1000))
            assert 5 < middle / small < 11
            grown = large / middle
            assert grown == pytest.approx(100) if field == "online_mb" else 8 < grown < 11, field


def test_reductions_of_gala_are_those_of_eight_channels():
    for name in BOTTLENECKS:
        paper = gala.REDUCTIONS[name]
        counted = gala.rotations(name, "gazelle") / gala.rotations(name, "gala")
        assert gala.published(name) == pytest.approx(paper, abs=0.5)
        assert counted < 0.8 * paper
    for name, paper in gala.REDUCTIONS.items():
        assert gala.rotations(name, "gazelle") < paper * gala.rotations(name, "gala")


def test_a_search_finds_a_cheaper_sequence_than_lolas(tmp_path):
    x = np.random.default_rng(0).uniform(0, 1, (8, 1, 28, 28)).astype(np.float32)
    options = Options(suite="lola", layer_bits=(5, 5))
    compile_model(asset("lola_small.onnx"), tmp_path / "small.tacit", x, None, options)
    words = "\n".join(Model(tmp_path / "small.tacit").plan()["parameters"])
    found = re.search(r"cheaper than LoLa's own: by estimate ([\d.]+) times", words)
    assert found is not None
    assert float(found[1]) > 1.2
