"""What the code of the silent transfers is worth to an attacker: two first-moment bounds.

A row of the code (crates/ot/src/cot/ferret/lpn.rs) is six ones at random, plus the rows of the code at some fixed
distances before it in its block. The six ones alone are a *relation*: it adds up the sample and those before it, five
in all, and so takes five samples without noise. `python3 scripts/lpn_code.py` prints for each parameter set

- the fewest samples that hold as many relations as there are columns to them, for the best choice of columns that is
  expected to exist at all. They take the place of the k samples that a dense code needs (domain reduction: Chen, Shu,
  Zhou, COLT 2025; for sparse LWE Jain, Lin, Saha, CRYPTO 2024);
- the least weight of a word of the dual code that is expected to exist, which bounds every linear test (Boyle et al.,
  CRYPTO 2022, section 3). Beside it that of a random code and of ten ones a row without more.

Both count sets of relations by how many there are and by how many samples they touch, with a transfer matrix over the
positions of a block whose states are the choices at the last positions. A bound on its growth follows from any positive
vector (Collatz and Wielandt), so that rounding and unfinished iterations make attacks cheaper, never dearer.
docs/protocols/ferret.md says what follows from it.
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from math import exp, inf, lgamma, log, log1p
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PARAMETERS = Path(__file__).parent.parent / "crates/ot/src/cot/ferret/params.rs"
SHARES = (0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)
"""Shares of the columns that are tried."""
STEPS = 400
"""Iterations for a vector that bounds the growth."""

Reals = NDArray[np.float64]


class Code(NamedTuple):
    """Ones in a row at random, and the distances of the rows that are added to it."""

    weight: int
    taps: tuple[int, ...]


class Table(NamedTuple):
    """For pairs of logarithms: of what a relation weighs, and of what a sample weighs that is touched (its negative).

    Sets of relations of a block of 2^d positions, each weighed so, add up to less than exp(start + 2^d * growth).
    """

    relation: Reals
    sample: Reals
    growth: Reals
    start: Reals


def shipped() -> Code:
    """The code of the sources."""
    text = PARAMETERS.read_text()
    weight = re.search(r"WEIGHT: usize = (\d+);", text)
    taps = re.search(r"TAPS: \[usize; \d+\] = \[([\d, ]+)\];", text)
    if weight is None or taps is None:
        raise ValueError(f"{PARAMETERS} has no WEIGHT or no TAPS")
    return Code(int(weight[1]), tuple(int(tap) for tap in taps[1].split(",")))


def touched(choices: NDArray[np.int64], taps: tuple[int, ...], parity: bool) -> NDArray[np.bool_]:
    """Whether the oldest of the positions is touched: bit i of `choices` is the relation i positions after the newest.

    With `parity` whether it is an odd number of times, as in a word of the dual code.
    """
    oldest = max(taps, default=0)
    found = np.zeros_like(choices)
    for tap in (0, *taps):
        bit = (choices >> (oldest - tap)) & 1
        found = found ^ bit if parity else found | bit
    return found.astype(bool)


def pairs(taps: tuple[int, ...]) -> tuple[Reals, Reals]:
    """The pairs that are tried: relations far apart where samples weigh much, runs of relations where they do not."""
    chosen: list[tuple[float, float]] = []
    for sample in np.geomspace(0.1, 8, 22):
        apart = np.linspace(-14, (len(taps) + 1) * sample - 1, 40) if sample < 3.1 else []
        chosen += [(relation, sample) for relation in (*apart, *np.linspace(sample - 1.2, sample + 0.3, 20))]
    relation, sample = np.array(chosen).T
    return relation, sample


@cache
def table(taps: tuple[int, ...], parity: bool = False, steps: int = STEPS) -> Table:
    """The transfer matrix of these taps at all pairs."""
    relation, sample = pairs(taps)
    oldest = max(taps, default=0)
    states = np.arange(1 << oldest)
    without = (states << 1) & ((1 << oldest) - 1)
    chosen = without | (oldest > 0)
    # What the positions at the end of a block weigh that later relations would have decided on.
    ending = np.zeros(len(states))
    for behind in range(1, oldest + 1):
        ending += touched((states << behind) & ((2 << oldest) - 1), taps, parity)
    end = np.exp(-np.outer(ending, sample))
    weights = np.exp(relation)
    plain = np.where(touched(states << 1, taps, parity)[:, None], np.exp(-sample), 1.0)
    taken = np.where(touched((states << 1) | 1, taps, parity)[:, None], np.exp(-sample), 1.0) * weights
    vector = end
    for _ in range(steps):
        vector = plain * vector[without] + taken * vector[chosen]
        vector /= vector.max(axis=0)
    rise = (plain * vector[without] + taken * vector[chosen]) / vector
    growth = np.log(rise.max(axis=0))
    first = vector
    for _ in range(oldest):
        first = first[without] + weights * first[chosen]
    start = np.log(first[0]) - oldest * growth - np.log((vector / end).min(axis=0))
    settled = growth - np.log(rise.min(axis=0)) < 0.01
    return Table(*(column[settled] for column in (relation, sample, growth, start)))


def ways(n: float, k: float) -> float:
    """Natural logarithm of a binomial coefficient."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def fewest(n: int, k: int, t: int, share: float, code: Code) -> float:
    """Samples that hold share*k relations in share*k columns, for the best columns expected to exist; inf for none.

    The expected number of such columns and relations that touch fewer samples is below one.
    """
    inside, pairs = share * k, table(code.taps)
    chosen = ways(k, inside) + inside * code.weight * log(share)
    if chosen + ways(n, inside) < 0:
        return inf
    bounds = -(chosen + t * pairs.start + n * pairs.growth - inside * pairs.relation) / pairs.sample
    return max(inside, float(bounds.max()))


def confined(n: int, k: int, t: int, code: Code | None = None) -> list[tuple[int, int]]:
    """Columns, and the samples that as many relations in them take at least, for each of SHARES that can be."""
    code = code or shipped()
    found = ((round(share * k), fewest(n, k, t, share, code)) for share in SHARES)
    return [(columns, int(samples)) for columns, samples in found if samples < inf]


def cancelling(count: int, k: int) -> float:
    """Logarithm of a bound on the chance that `count` random positions out of k cancel."""

    def bound(z: float) -> float:
        value = exp(z)
        return k * (value + log1p(exp(-2 * value)) - log(2)) + lgamma(count + 1) - count * (z + log(k))

    low, high = -16.0, 8.0
    for _ in range(60):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if bound(one) < bound(two) else (one, high)
    return min(bound(low), 0.0)


def random_distance(n: int, k: int) -> int:
    """The weight below which no word of the dual of a random code is expected (Gilbert and Varshamov)."""
    low, high = 1, n // 2
    while high - low > 1:
        weight = (low + high) // 2
        low, high = (low, weight) if ways(n, weight) > k * log(2) else (weight, high)
    return low


def distance(n: int, k: int, t: int, code: Code | None = None) -> int:
    """The weight below which no word of the dual code is expected, but for codes of a few rows alike.

    A word is a set of relations that cancel. It is counted by its relations, up to 6*k, by its weight in any case.
    """
    code = code or shipped()
    relations = sorted({round(x) for x in np.geomspace(20, 6 * k, 160)})
    cancel = [cancelling(code.weight * count, k) for count in relations]
    pairs = table(code.taps, parity=True) if code.taps else None

    def expected(weight: int) -> float:
        most = -inf
        for count, chance in zip(relations, cancel, strict=True):
            sets = ways(n, count) if pairs or count <= weight else -inf
            if pairs:
                each = t * pairs.start + n * pairs.growth - count * pairs.relation + weight * pairs.sample
                sets = min(sets, float(each.min()))
            most = max(most, min(sets, ways(n, weight)) + chance)
        return most

    low, high = 1, random_distance(n, k) + 1
    while high - low > max(1, low // 1000):
        weight = (low + high) // 2
        low, high = (low, weight) if expected(weight) > 0 else (weight, high)
    return low


def sets() -> Iterator[tuple[int, int, int]]:
    """Samples, secret and blocks of the parameter sets of the sources."""
    for found in re.findall(r"Set \{ trees: ([\d_]+), secret: ([\d_]+), depth: (\d+) \}", PARAMETERS.read_text()):
        trees, secret, depth = (int(one.replace("_", "")) for one in found)
        yield trees << depth, secret, trees


def main() -> int:
    """Print the bounds; 1 if no set was found."""
    found = list(sets())
    for n, k, t in found:
        columns, samples = min(confined(n, k, t), key=lambda one: one[1])
        ours, best, ten = distance(n, k, t), random_distance(n, k), distance(n, k, t, Code(10, ()))
        print(
            f"k = {k}: relations in {columns / k:.2f} k columns take {samples / k:.3f} k samples or more; dual distance"
            f" {ours / k:.3f} k, of a random code {best / k:.3f} k, of ten ones {ten / k:.3f} k"
        )
    return int(not found)


if __name__ == "__main__":
    sys.exit(main())
