"""What the noise of an RLWE response can tell its client about the server's fresh randomness, in numbers.

`python scripts/circuit_privacy.py` rewrites the table of docs/protocols/circuit-privacy.md; with `--check` it only
compares, and exit code 1 says that the page is out of date or that a claim is below its floor. Deviations, degrees and
moduli are read out of the sources. The formulas are derived on the page. Standard library only.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from functools import cache
from math import erf, log, log2, sqrt
from pathlib import Path
from typing import NamedTuple

import lattice_estimate

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/protocols/circuit-privacy.md"
SAMPLES = ROOT / "crates/he/src/rlwe/sample.rs"
PARAMETERS = ROOT / "crates/he/src/rlwe/params.rs"
MARKS = ("<!-- written by scripts/circuit_privacy.py -->", "<!-- end -->")
"""What stands around the table."""

TERNARY = 2 / 3
"""The variance of a ternary coefficient."""
KEY_FAILURE = 64
"""Bounds on a client's key hold but for a probability of 2^-64."""
FLOOR = 128
"""Least bits of a single response."""


class Ring(NamedTuple):
    """A degree, the bits of its largest modulus, and the bits of security by scripts/lattice_estimate.py."""

    degree: int
    modulus_bits: int
    security: float


class Claims(NamedTuple):
    """What follows for the responses of one degree."""

    own: float
    """Deviation of `e_p*u + s*e1`."""
    distance: float
    """Statistical distance that a shift of e0 by one such deviation makes in a coefficient."""
    typical: float
    """Factor by which the hint divides deviations in its worst direction, for most keys."""
    worst: float
    """The same for all keys but one in 2^64."""
    information: float
    """Bits that a whole response's noise tells about u and e1, were it opened."""
    renyi: float
    """Logarithm of the Renyi divergence of order 2."""
    bits: float
    """Security of a response: that of RLWE with deviations divided by `worst`."""


def deviations() -> tuple[float, float]:
    """Of the narrow and of the wide errors."""
    text = SAMPLES.read_text()
    found = [re.search(rf"const {name}: f64 = ([\d.]+);", text) for name in ("NARROW", "WIDE")]
    narrow, wide = (float(match[1]) if match else 0.0 for match in found)
    if not narrow or not wide:
        raise SystemExit(f"error: {SAMPLES} has no deviations; name the new ones in scripts/circuit_privacy.py")
    return narrow, wide


def rings() -> Iterator[Ring]:
    """The parameter table, with the least security of every gated attack."""
    table = re.search(r"pub const TABLE: .* = \[(.*)\];", PARAMETERS.read_text())
    if table is None:
        raise SystemExit(f"error: {PARAMETERS} has no table; see scripts/circuit_privacy.py")
    for degree, bits in re.findall(r"\((\d+), (\d+)\)", table[1]):
        yield Ring(int(degree), int(bits), least(int(degree), int(bits)))


@cache
def least(degree: int, modulus_bits: float) -> float:
    """Bits against the best gated attack."""
    return min(lattice_estimate.estimate(degree, modulus_bits).values())


def largest(degree: int, failure: float) -> float:
    """Bound on |e(z)|^2 / (N v) at all roots z of X^N + 1, e having coefficients subgaussian of proxy v.

    |e(z)|^2 is a form of rank 2 whose eigenvalues are N v / 2 (Hsu, Kakade, Zhang 2012), and there are N / 2 pairs of
    roots. It fails with probability exp(-failure).
    """
    t = failure + log(degree / 2)
    return 1 + sqrt(2 * t) + t


def claims(ring: Ring) -> Claims:
    """The numbers of one degree."""
    narrow, wide = deviations()
    degree, modulus_bits, _ = ring
    # Variances of the coefficients of e_p*u and of s*e1 are the same.
    own = 2 * degree * narrow**2 * TERNARY
    ratio = own / wide**2

    def factor(failure: float) -> float:
        return sqrt(1 + ratio * largest(degree, failure))

    worst = factor(KEY_FAILURE * log(2) + log(2))
    return Claims(
        own=sqrt(own),
        distance=erf(sqrt(ratio) / 2 / sqrt(2)),
        typical=sqrt(1 + ratio * log(degree / 2)),
        worst=worst,
        information=degree / 2 * log2(1 + ratio),
        renyi=degree * ratio / log(2),
        # Secret and errors that are shorter by a factor: at most what a modulus longer by its square gives.
        bits=least(degree, modulus_bits + 2 * log2(worst)),
    )


def after(bits: float, responses: int) -> float:
    """Bits that are left of a response's after a hybrid over so many."""
    return bits - log2(responses)


def table() -> str:
    """The numbers in Markdown."""
    narrow, wide = deviations()
    all_rings = list(rings())
    found = [claims(ring) for ring in all_rings]
    rows: list[tuple[str, list[str]]] = [
        (f"deviation of `e_p*u + s*e1`, against {wide:.0f} of e0", [f"{one.own:.0f}" for one in found]),
        ("statistical distance by which a coefficient of e0 alone hides it", [f"{one.distance:.3f}" for one in found]),
        (
            "bits that a response's noise would tell of (u, e1), if it were opened",
            [f"{one.information:.1f}" for one in found],
        ),
        ("order-2 Renyi divergence, bits a response (search only)", [f"{one.renyi:.1f}" for one in found]),
        (
            "deviations of u and e1 in the hint's worst direction, divided by, usually",
            [f"{one.typical:.3f}" for one in found],
        ),
        ("the same for all keys but one in 2^64", [f"{one.worst:.3f}" for one in found]),
        (f"e1's deviation of {narrow} is left at", [f"{narrow / one.worst:.2f}" for one in found]),
        ("RLWE by itself, bits", [f"{ring.security:.1f}" for ring in all_rings]),
        ("a response, bits", [f"{one.bits:.1f}" for one in found]),
        ("an inference of 2^12 responses, bits", [f"{after(one.bits, 2**12):.1f}" for one in found]),
        ("a session of 2^10 such inferences, bits", [f"{after(one.bits, 2**22):.1f}" for one in found]),
    ]
    heads = [f"N = {ring.degree}, K = {ring.modulus_bits}" for ring in all_rings]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    lines.extend(f"| {name} | {' | '.join(values)} |" for name, values in rows)
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with the table in its place."""
    first, last = (text.index(mark) for mark in MARKS)
    return f"{text[: first + len(MARKS[0])]}\n\n{table()}\n\n{text[last:]}"


def main() -> int:
    """Write or compare the page."""
    parser = argparse.ArgumentParser(description="Writes the table of docs/protocols/circuit-privacy.md.")
    parser.add_argument("--check", action="store_true", help="Only compare.")
    check = parser.parse_args().check
    weak = [ring for ring in rings() if claims(ring).bits < FLOOR]
    for ring in weak:
        print(f"error: {ring}: {claims(ring).bits:.1f} bits, {FLOOR} wanted", file=sys.stderr)
    text = PAGE.read_text()
    wanted = page(text)
    if check and text != wanted:
        print(f"error: {PAGE} is out of date; run scripts/circuit_privacy.py", file=sys.stderr)
    elif not check:
        PAGE.write_text(wanted)
    return int(bool(weak) or (check and text != wanted))


if __name__ == "__main__":
    sys.exit(main())
