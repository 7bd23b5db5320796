"""The numbers on the privacy of responses: by the sources, above their floor, and the same on the page."""

import random
import sys
from cmath import exp
from math import pi, sqrt

import circuit_privacy
import pytest
from circuit_privacy import FLOOR, PAGE, after, claims, deviations, largest, main, page, rings


def test_the_page_is_what_the_sources_say(monkeypatch):
    assert page(PAGE.read_text()) == PAGE.read_text()
    monkeypatch.setattr(sys, "argv", ["circuit_privacy.py", "--check"])
    assert main() == 0


def test_what_the_page_says_in_words():
    assert deviations() == (3.2, 4095.19)
    small, large = (claims(ring) for ring in rings())
    assert (round(small.own), round(large.own)) == (167, 236)
    assert round(small.distance, 3) == 0.016
    assert round(small.information, 1) == 2.5
    assert round(small.renyi, 1) == 4.9
    assert round(small.worst, 2) == 1.05
    assert min(small.bits, large.bits) >= FLOOR
    assert after(small.bits, 2**12) == small.bits - 12


def test_deviations_are_those_of_the_sources_sums():
    """`e_p*u + s*e1` has 2N products of a deviation of 3.2 with a ternary number."""
    for ring in rings():
        assert claims(ring).own == pytest.approx(3.2 * sqrt(4 * ring.degree / 3))


def test_the_bound_on_embeddings_holds_and_is_near():
    """At the roots of X^64 + 1, for random ternary polynomials; by the largest of all roots."""
    degree, times, draw = 64, 300, random.Random(3)
    above = 0
    for _ in range(times):
        coefficients = [draw.choice((-1, 0, 1)) for _ in range(degree)]
        powers = [
            abs(sum(c * exp(1j * pi * i * (2 * k + 1) / degree) for i, c in enumerate(coefficients))) ** 2
            for k in range(degree // 2)
        ]
        above += max(powers) / (degree * 2 / 3) > largest(degree, 2.0)
    assert above < times * exp(-2.0).real
    # A bound that no polynomial of degree 64 can reach would say nothing.
    assert largest(degree, 2.0) < degree / (2 / 3)


def test_a_page_that_is_out_of_date_and_a_weak_response_fail(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["circuit_privacy.py", "--check"])
    monkeypatch.setattr(circuit_privacy, "deviations", lambda: (3.2, 100.0))
    assert main() == 1
    error = capsys.readouterr().err
    assert "128 wanted" in error
    assert "out of date" in error
