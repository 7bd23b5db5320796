"""Bits of security of every symmetric and public-key primitive, each by a formula.

`python scripts/security_bits.py` rewrites docs/reference/security-bits.md; with `--check` it only compares, and exit
code 1 says that the page is out of date or that a primitive is below the floor. Constants are read out of the sources
that use them. The parity sets of Ferret are estimated by scripts/lpn_estimate.py and scripts/lpn_second_opinion.py, the
sets of the lattices by scripts/lattice_estimate.py.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from math import ceil, e, log2, pi, sqrt
from pathlib import Path
from typing import NamedTuple

import lattice_estimate
import lattice_sets
import lpn_code
import lpn_estimate
import lpn_second_opinion

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/reference/security-bits.md"
FLOOR = 123
"""What 128-bit keys leave once Delta has a fixed bit and a key serves sixteen hashes."""
KEY = 128
"""Bits of an AES key and of a label."""
DELTA = KEY - 1
"""Bits of Delta that are secret: the lowest is 1."""
MODULE = (768, 3329, 1.0, 768 + 256)
"""ML-KEM-768 (FIPS 203, table 2): unknowns, modulus, deviation of secrets and errors, equations of a ciphertext."""
RISTRETTO = 2**252 + 27742317777372353535851937790883648493
"""The order of the group."""
INTRODUCTION = """
Written by `scripts/security_bits.py` from the sources, and compared with them by a test. Numbers are logarithms of
steps, a step being an evaluation of the primitive. Ciphers are ideal, SHA-256 and BLAKE3 are random oracles, and the
parities are against the attacks that [Ferret](../protocols/ferret.md) names. A hash under one key that serves D inputs
gives a search for Delta D chances at a time (Guo, Katz, Wang, Weng, Yu, CRYPTO 2020, ePrint 2019/1168, section 3).
ML-KEM-768 is estimated as in the submission of Kyber to NIST (version 3.02): b is the smallest block size for which
the primal attack finds the secret, 0.292 b the bits of one call of a sieve; NIST's category 3. Other lattices are
against the attacks of the second table, and have at least 128 bits.
"""
LATTICES = """
One row for each ring degree N and modulus, the special prime of key switching included. Secrets are uniform in -1, 0,
1, errors have deviation 3.2. The attacks and their costs, why some columns are not gated, and how far to trust all
of them: [Lattices](lattices.md). The last two columns are not gated.
"""


class Primitive(NamedTuple):
    """One row: what it is, what an attacker searches for, how many bits that takes, and where it is in the sources."""

    name: str
    search: str
    formula: str
    bits: float
    source: str
    floor: float = FLOOR


def constant(source: str, name: str) -> int:
    """An integer constant of a Rust file."""
    found = re.search(rf"const {name}: \w+ = (\d+);", (ROOT / source).read_text())
    if found is None:
        raise SystemExit(f"error: {source} has no constant {name}; name the new one in scripts/security_bits.py")
    return int(found[1])


def primitives() -> Iterator[Primitive]:
    """All rows."""
    pads = constant("crates/ot/src/hash.rs", "PADS_PER_KEY")
    # A key of a gate hashes a label and the label xor Delta of each instance.
    gates = 2 * constant("crates/ot/src/simd/mod.rs", "EIGHT")
    rho = log2(sqrt(pi * RISTRETTO / 4))
    delta = "Delta, from H(x xor Delta) of known x; a guess is compared with all hashes of its key"
    yield Primitive(
        "base OTs", "a discrete logarithm, by Pollard's rho", "log2 sqrt(pi * l / 4)", rho, "crates/ot/src/base.rs"
    )
    targets = 2 * constant("crates/ot/src/base.rs", "COUNT")
    yield Primitive(
        "base OTs with ML-KEM-768",
        f"the secret of one of {targets} keys, by the primal attack",
        f"0.292 b - log2 {targets}",
        0.292 * block_size(*MODULE) - log2(targets),
        "crates/ot/src/base/lattice.rs",
    )
    yield Primitive(
        "SoftSpoken's trees and streams",
        "the leaf that is missing, an AES-128 key; start and hash differ for each tree and session",
        f"{KEY} - log2 1",
        KEY,
        "crates/ot/src/cot/softspoken.rs",
    )
    yield Primitive(
        "SoftSpoken's check",
        "corrections of different choice bits whose hash passes; a try takes a hash",
        f"{KEY} - log2 1",
        KEY,
        "crates/ot/src/cot/check.rs",
    )
    for place, bits in enumerate(parities()):
        name = f"Ferret's parities, set {place + 1}"
        formula = "the least of scripts/lpn_estimate.py and scripts/lpn_second_opinion.py"
        yield Primitive(name, "the secret of k bits or the noise", formula, bits, "crates/ot/src/cot/ferret/params.rs")
    # Tags are added up by sixteens, each level with weights that hide a difference once in 2^128.
    levels = ceil(max(depth for _, _, depth in sets()) / 4)
    yield Primitive(
        "Ferret's check",
        "blocks whose leaves differ at two positions and whose tags give the same sum; a try takes a hash",
        f"{KEY} - log2 {levels}",
        KEY - log2(levels),
        "crates/ot/src/cot/ferret/check.rs",
    )
    trees = "crates/ot/src/cot/ferret/ggm.rs"
    yield Primitive("Ferret's trees", delta, f"{DELTA} - log2 1", DELTA, trees)
    hashes = (
        ("pads of OTs, tables of up to 256", pads, "crates/ot/src/hash.rs"),
        ("base OTs kept for a later session", pads, "crates/ot/src/cot/kept.rs"),
        ("garbled circuits", gates, "crates/ot/src/gates.rs"),
    )
    for name, shared, source in hashes:
        yield Primitive(name, delta, f"{DELTA} - log2 {shared}", DELTA - log2(shared), source)
    yield Primitive(
        "rows of walks through trees",
        "the key or the label of a row that stays closed; salt and slot differ for each row",
        f"{KEY} - log2 1",
        KEY,
        "crates/mpc/src/trees/rows.rs",
    )
    formula = "the least of the gated columns of scripts/lattice_estimate.py"
    for one in lattice_sets.sets():
        name = f"{one.use}: N = {one.degree}, {one.bits} bits"
        bits = min(lattice_estimate.estimate(one.degree, one.bits).values())
        yield Primitive(name, "the ternary secret or the errors", formula, bits, one.source, lattice_estimate.FLOOR)


def block_size(unknowns: int, modulus: int, deviation: float, equations: int) -> int:
    """The smallest block size of BKZ with which the primal attack finds the secret of learning with errors."""
    for block in range(60, unknowns * 2):
        delta = log2((pi * block) ** (1 / block) * block / (2 * pi * e)) / (2 * (block - 1))
        for used in range(1, equations + 1):
            dimension = unknowns + used + 1
            room = (2 * block - dimension - 1) * delta + used / dimension * log2(modulus)
            if log2(deviation * sqrt(block)) <= room:
                return block
    raise SystemExit("error: no block size finds the secret")


@cache
def parities() -> list[float]:
    """Bits of each set of Ferret against the best attack, by the lower of two opinions."""
    both = [(lpn_estimate.estimate(*one), lpn_second_opinion.opinion(one)) for one in lpn_second_opinion.sets()]
    return [min(*first.values(), *second.values()) for first, second in both]


def sets() -> list[tuple[int, int, int]]:
    """Trees, length of the secret and depth of each set of Ferret."""
    return [(t, k, (n // t).bit_length() - 1) for n, k, t in lpn_code.sets()]


def attacks() -> Iterator[str]:
    """The table of lattices per attack."""
    names = (*lattice_estimate.GATED, *lattice_estimate.SHOWN)
    yield f"| N | bits | {' | '.join(names)} |"
    yield f"|{'---|' * (2 + len(names))}"
    for degree, bits in sorted({one[:2] for one in lattice_sets.sets()}):
        every = (*lattice_estimate.estimate(degree, bits).values(), *lattice_estimate.shown(degree, bits).values())
        yield f"| {degree} | {bits} | {' | '.join(f'{value:.1f}' for value in every)} |"


def page() -> str:
    """The page in Markdown."""
    rows = [
        f"| {one.name} | {one.search} | `{one.formula}` | {one.bits:.1f} | `{one.source}` |" for one in primitives()
    ]
    return "\n".join(
        (
            "# Bits per primitive",
            "",
            *textwrap.wrap(INTRODUCTION.strip(), 140),
            "",
            "| primitive | an attacker searches for | formula | bits | code |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "## Lattices, per attack",
            "",
            *textwrap.wrap(LATTICES.strip(), 140),
            "",
            *attacks(),
            "",
        )
    )


def main() -> int:
    """Write or compare the page."""
    parser = argparse.ArgumentParser(description="Writes docs/reference/security-bits.md.")
    parser.add_argument("--check", action="store_true", help="Only compare.")
    check = parser.parse_args().check
    weak = [one for one in primitives() if one.bits < one.floor]
    for one in weak:
        print(f"error: {one.name}: {one.bits:.1f} bits, {one.floor} wanted", file=sys.stderr)
    wanted = page()
    if not check:
        PAGE.write_text(wanted)
    elif not PAGE.exists() or PAGE.read_text() != wanted:
        print(f"error: {PAGE.relative_to(ROOT)} is out of date: python scripts/security_bits.py", file=sys.stderr)
        return 1
    return int(bool(weak))


if __name__ == "__main__":
    sys.exit(main())
