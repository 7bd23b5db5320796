"""Two opinions on Ferret's parities: as published, as the authors' programs print, alike, and above the floor."""

from itertools import product

import lpn_estimate
import lpn_second_opinion
import pytest
from lpn_second_opinion import Algebraic, Instance, opinion, sets
from security_bits import ROOT

SMALL = Instance(1024, 652, 57)
MIDDLE = Instance(4096, 1589, 98)
FERRET = Instance(609_728, 36_288, 1269)
WOLVERINE = Instance(10_805_248, 589_760, 1319)
OLDER = Instance(1_802_240, 131_072, 880)
"""A set of earlier versions."""

PROGRAMS = {
    (SMALL, "Gauss"): 106.57,
    (MIDDLE, "Gauss"): 96.54,
    (FERRET, "Gauss"): 150.91,
    (WOLVERINE, "Gauss"): 160.25,
    (OLDER, "Gauss"): 142.84,
    (SMALL, "ISD"): 92.35,
    (MIDDLE, "ISD"): 83.03,
    (FERRET, "ISD"): 142.23,
    (WOLVERINE, "ISD"): 153.10,
    (OLDER, "ISD"): 134.81,
    (MIDDLE, "BJMM"): 80.72,
    (FERRET, "BJMM"): 138.35,
    (OLDER, "BJMM"): 132.99,
    (SMALL, "AGB"): 101.48,
    (MIDDLE, "AGB"): 101.59,
}
"""What LPN-Estimator prints, the program of the authors of ePrint 2022/712 (github.com/RabbitCabbage/LPN-Estimator)."""

REGULAR = {SMALL: (94, 77, 76), MIDDLE: (96, 78, 78), FERRET: (164, 140, None), WOLVERINE: (176, 157, None)}
"""Table of ePrint 2023/1568: by permutation, enumeration and representations, the last where those win."""

PAIRS = ("Gauss", "ISD", "regular ISD", "AGB", "AGB 2.0", "hybrid", "sparse Gauss", "sparse ISD", "sparse regular ISD")
"""Attacks that both opinions estimate."""


@pytest.mark.parametrize(("instance", "attack"), PROGRAMS)
def test_programs_of_authors_are_followed(instance, attack):
    n, k, t = instance
    small = (n - t, k - t, t)
    found = {
        "Gauss": lambda: lpn_second_opinion.gauss(*small),
        "ISD": lambda: lpn_second_opinion.stern(*small),
        "BJMM": lambda: lpn_second_opinion.representations(*small),
        "AGB": lambda: Algebraic(instance).one(),
    }[attack]()
    assert abs(found - PROGRAMS[instance, attack]) < 0.1


@pytest.mark.parametrize("instance", REGULAR)
def test_regular_decoding_is_as_published(instance):
    n, k, t = instance
    length = n // t * t
    dimension = length - (n - k) - t
    permutation, enumeration, representations = REGULAR[instance]
    assert abs(lpn_second_opinion.permutation(length, dimension, t) - permutation) < 1
    assert abs(lpn_second_opinion.enumeration(length, dimension, t) - enumeration) < 1
    if representations is not None:
        assert abs(lpn_second_opinion.regular_representations(length, dimension, t) - representations) < 1.5


@pytest.mark.parametrize(("instance", "bits"), [((3956, 1449, 172), 132.60), ((16_224, 3322, 338), 133.15)])
def test_the_hybrid_is_as_published(instance, bits):
    """Tables 5 and 6 of ePrint 2025/1284, which are for large fields."""
    assert abs(lpn_second_opinion.hybrid(Instance(*instance), binary=False) - bits) < 0.01


def test_the_optimum_of_independent_guesses_is_found():
    """AGB 2.0 against all of its guesses, on an instance that has few."""
    instance = Instance(120, 60, 10)
    algebraic = Algebraic(instance)
    least = float("inf")
    for degree in Algebraic.DEGREES:
        guesses = list(product(range(1, 11), range(12)))
        solved = [(f, mu) for f, mu in guesses if f * mu <= 60 and algebraic.left(f, mu, degree) < 1]
        for (f, mu), (g, nu) in product(solved, guesses):
            if g <= f and nu <= mu:
                columns, left = algebraic.monomials(g, nu, degree), max(algebraic.left(g, nu, degree), 1)
                rank = max(columns - left, 2)
                wide = lpn_second_opinion.log2(columns * rank * rank / lpn_second_opinion.log2(rank))
                first = min(algebraic.matrix(g, nu, degree), wide) + algebraic.tries(g, nu)
                second = 2.8 * lpn_second_opinion.log2(min(left, rank)) + lpn_second_opinion.log2(5.64)
                least = min(least, lpn_second_opinion.plus(first, second + algebraic.tries(f, mu)))
    assert least <= algebraic.two() < least + 0.5


def test_both_opinions_are_above_the_floor_and_in_the_text():
    pages = (ROOT / "docs/protocols/ferret.md").read_text()
    table = [(lpn_estimate.estimate(*one), opinion(one)) for one in sets()]
    assert len(table) == 5
    for first, second in table:
        assert min(*first.values(), *second.values()) >= lpn_estimate.FLOOR == lpn_second_opinion.FLOOR
        assert all(abs(first[name] - second[name]) < 2.5 for name in PAIRS)
    for name in dict.fromkeys([*table[0][0], *table[0][1]]):
        cells = (" / ".join(f"{one[name]:.0f}" if name in one else "-" for one in both) for both in table)
        assert f"| {name} | {' | '.join(cells)} |\n" in pages


def test_a_weak_set_fails(monkeypatch, capsys):
    monkeypatch.setattr(lpn_second_opinion, "sets", lambda: [OLDER])
    assert lpn_second_opinion.main() == 1
    output = capsys.readouterr()
    assert "BJMM 133.0" in output.out
    assert "134 wanted" in output.err
    monkeypatch.setattr(lpn_second_opinion, "sets", list)
    assert lpn_second_opinion.main() == 1
