"""Parameter sets of the lattices, read out of the sources that use them. Standard library only.

Two tables say what the constructors of parameters refuse (`Params::new` of rlwe and of bfv): a set is in use
only if its modulus is at most the table's, so the tables' own rows are estimated too, as the weakest of their
degree. The candidates that protocols choose from are beside them.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
RLWE = "crates/he/src/rlwe/params.rs"
BFV = "crates/he/src/bfv/params.rs"
SLOTS = "crates/he/src/bfv/noise.rs"
LOLA = "crates/mpc/src/linear/lola/search.rs"
SAMPLES = "crates/he/src/rlwe/sample.rs"


class Set(NamedTuple):
    """Ring degree, bits of the largest modulus that anything under the secret has, and what uses them."""

    degree: int
    bits: int
    use: str
    source: str


def rows(source: str, name: str, row: str) -> list[tuple[str, ...]]:
    """All rows of an array of a Rust file, whose type says how many there are."""
    text = (ROOT / source).read_text()
    found = re.search(rf"const {name}: \[\(.*\); (\d+)\] =\s*\[(.*?)\];\n", text, re.DOTALL)
    every = re.findall(row, found[2]) if found else []
    if found is None or len(every) != int(found[1]) or not every:
        raise SystemExit(f"error: {source} has no {name} that scripts/lattice_sets.py can read")
    return [tuple(one) for one in every]


def deviation() -> float:
    """Deviation of the errors of every sample; secrets are uniform in -1, 0, 1."""
    found = re.search(r"const NARROW: f64 = ([\d.]+);", (ROOT / SAMPLES).read_text())
    if found is None:
        raise SystemExit(f"error: {SAMPLES} has no deviation that scripts/lattice_sets.py can read")
    return float(found[1])


def total(moduli: str) -> int:
    """Bits of the product of the primes of an array of Rust, `a, b` or `a; count`."""
    if ";" in moduli:
        bits, count = moduli.split(";")
        return int(bits) * int(count)
    return sum(int(bits) for bits in moduli.split(","))


def limits() -> Iterator[Set]:
    """The rows of both tables. A secret of RLWE serves the largest modulus of its degree."""
    for source, use in ((RLWE, "RLWE, q = 2^K"), (BFV, "limit of BFV")):
        for degree, bits in rows(source, "TABLE", r"\((\d+), (\d+)\)"):
            yield Set(int(degree), int(bits), use, source)


def candidates() -> Iterator[Set]:
    """What suites choose from; a special prime is a part of the modulus of keys."""
    for degree, moduli, special in rows(SLOTS, "CANDIDATES", r"\((\d+), &\[([^\]]+)\], (?:None|Some\((\d+)\))\)"):
        yield Set(int(degree), total(moduli) + int(special or 0), "BFV, slots", SLOTS)
    row = r"\((\d+), (\d+), (\d+), Switching::(?:Special\((\d+)\)|Digits\(\d+\))\)"
    for degree, count, each, special in rows(LOLA, "CANDIDATES", row):
        yield Set(int(degree), int(count) * int(each) + int(special or 0), "BFV, LoLa", LOLA)


def sets() -> list[Set]:
    """All of them, each degree and modulus once for each use."""
    return sorted({*limits(), *candidates()}, key=lambda one: (one.source != RLWE, one.degree, one.bits, one.use))
