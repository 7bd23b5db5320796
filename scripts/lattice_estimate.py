"""Bits of security of the lattices, per attack.

`python3 scripts/lattice_estimate.py` reads every parameter set out of crates/he and crates/mpc
(scripts/lattice_sets.py), prints a table and exits with 1 if a set has fewer than 128 bits against
any gated attack. docs/reference/lattices.md says what each column is and how far to trust
it. Standard library only; all costs are logarithms (base 2) of gates. Sources:

- ADPS16: Alkim, Ducas, Poeppelmann, Schwabe, "NewHope" (USENIX Security 2016)
- AGPS20: Albrecht, Gheorghiu, Postlethwaite, Schanck (ASIACRYPT 2020, ePrint 2019/1161)
- MATZOV: "Report on the Security of LWE" (2022, doi 10.5281/zenodo.6412487)
"""

import sys
from collections.abc import Callable
from functools import cache
from math import ceil, e, erf, exp, floor, inf, lgamma, log, log2, pi, sqrt
from typing import NamedTuple

import lattice_sets

FLOOR = 128
"""Bits that every set must have."""
SIEVE = (0.29613500308205365, 20.387885985467914)
"""Slope and offset of the gates of one sieve (list decoding, AGPS20 with MATZOV's correction)."""
PROGRESSIVE = 1 / (1 - 2 ** -SIEVE[0])
"""What the sieves of smaller dimensions, one after another, cost in units of the last."""
VECTORS = 0.2075
"""Logarithm of the short vectors that a sieve leaves, per dimension: log2 sqrt(4/3)."""
MULTIPLY, ADD = 32**2, 5 * 32
"""Gates of a multiplication and an addition (MATZOV, section 7)."""
LEAST_BLOCK, MOST_BLOCK = 50, 1500
"""Block sizes that are searched; 1500 takes 2^440."""


class Problem(NamedTuple):
    """LWE with as many samples as an attacker wants: every ciphertext under a secret gives n of them."""

    degree: int
    """n, the secret's length."""
    modulus_bits: float
    """log2 q."""
    secret: float
    """Deviation of the secret."""
    error: float
    """Deviation of the errors."""
    guess: float
    """Logarithm of the guesses for a coefficient of the secret."""

    @property
    def scale(self) -> float:
        """Logarithm of what the secret's part is multiplied by, so that all coefficients of the target are alike."""
        return log2(self.error / self.secret)


def ternary(degree: int, modulus_bits: float, error: float) -> Problem:
    """Secrets uniform in -1, 0, 1: all guesses are equally likely."""
    return Problem(degree, modulus_bits, sqrt(2 / 3), error, log2(3))


def add(*logs: float) -> float:
    """Logarithm of a sum of numbers given by their logarithms."""
    most = max(logs)
    return most if most == inf else most + log2(sum(2 ** (value - most) for value in logs))


@cache
def root(block: int) -> float:
    """Logarithm of the root Hermite factor of BKZ (Chen's formula)."""
    return log2(block / (2 * pi * e) * (pi * block) ** (1 / block)) / (2 * (block - 1))


def sieve(dimension: float) -> float:
    """One sieve and those before it that it grows from."""
    return SIEVE[0] * dimension + SIEVE[1] + log2(PROGRESSIVE)


def sieved(block: int) -> float:
    """Dimension to sieve in for a block: the others come for free (Ducas, EUROCRYPT 2018)."""
    return block - block * log(4 / 3) / log(block / (2 * pi * e))


def reduction(block: int, dimension: int) -> float:
    """Progressive BKZ: a sieve for every block but the last ones, and LLL before (AGPS20, MATZOV)."""
    calls = PROGRESSIVE * max(dimension - block, 1)
    return add(log2(calls) + sieve(sieved(block)), 3 * log2(dimension))


def smallest(low: int, high: int, enough: Callable[[int], bool]) -> int:
    """The smallest integer that is enough, or `high`: whatever is above one that is enough is too."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def least(low: int, high: int, cost: Callable[[int], float]) -> tuple[float, int]:
    """The least cost of integers from low to high, of a function that falls and then rises, and where it is."""
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if place not in known:
            known[place] = cost(place)
        return known[place]

    while high - low > 2:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right - 1) if at(left) < at(right) else (left + 1, high)
    return min((at(place), place) for place in range(low, high + 1))


def volume(problem: Problem, dimension: int) -> float:
    """Logarithm of the volume of the scaled lattice of (error, secret), without a row for the target."""
    rows = problem.degree
    return (dimension - rows) * problem.modulus_bits + rows * problem.scale


def widest(problem: Problem, block: int) -> int:
    """The dimension in which a block size reaches furthest."""
    wanted = problem.degree * (problem.modulus_bits - problem.scale) / root(block)
    return max(ceil(sqrt(max(wanted, 0))), problem.degree + 1)


def reveals(problem: Problem, block: int, dimension: int) -> bool:
    """Whether BKZ finds the target: its projection on the last block is shorter than what BKZ has there.

    ADPS16, section 6.3; embedding as Bai and Galbraith (ACISP 2014), the target's own row as long as an error.
    """
    projected = log2(problem.error) + log2(block) / 2
    rows = volume(problem, dimension - 1) + log2(problem.error)
    return projected <= (2 * block - dimension - 1) * root(block) + rows / dimension


def embedding(problem: Problem) -> tuple[int, int]:
    """Block size and dimension of the primal attack by embedding."""
    block = smallest(LEAST_BLOCK, MOST_BLOCK, lambda b: reveals(problem, b, widest(problem, b)))
    most = widest(problem, block)
    return block, smallest(max(problem.degree + 1, block + 1), most, lambda d: reveals(problem, block, d))


def usvp(problem: Problem) -> float:
    """Primal attack: BKZ on the embedding, with no step after it."""
    return reduction(*embedding(problem))


def ball(dimension: int) -> float:
    """Logarithm of the volume of the unit ball."""
    return (dimension / 2 * log(pi) - lgamma(dimension / 2 + 1)) / log(2)


def last_dimension(problem: Problem, block: int, dimension: int) -> int:
    """Dimension of the last sieve: the target's projection is the shortest vector there."""
    whole, slope = volume(problem, dimension), root(block)

    def shortest(last: int) -> bool:
        part = last / dimension * whole - (dimension - last) * last * slope
        expected = (part + log2(problem.error) - ball(last + 1)) / (last + 1)
        return expected >= log2(problem.error) + log2(last + 1) / 2

    return smallest(2, dimension, shortest)


def bdd_at(problem: Problem, block: int, dimension: int) -> float:
    """BKZ, then one sieve of larger dimension."""
    last = last_dimension(problem, block, dimension) + 1
    return add(reduction(block, dimension), reduction(last, last)) if last < dimension else inf


def bdd(problem: Problem) -> float:
    """Primal attack as bounded distance decoding (Liu, Nguyen, CT-RSA 2013)."""
    most = embedding(problem)[0] + 1
    bits, block = least(LEAST_BLOCK, most, lambda b: bdd_at(problem, b, widest(problem, b)))
    wide = widest(problem, block)
    return min(bits, least(problem.degree + 1, wide, lambda d: bdd_at(problem, block, d))[0])


def without(problem: Problem, guessed: int) -> Problem:
    """The problem when so many coefficients of the secret are guessed."""
    return problem._replace(degree=problem.degree - guessed)


def guessing(problem: Problem) -> float:
    """Primal hybrid: coefficients are guessed, and each guess is tested by a sieve.

    Albrecht, Curtis, Wunderer, SAC 2019. All guesses of a uniform secret are equally likely, so guessing zeros and
    starting again (drop and solve) reduces as often as this tests.
    """

    def best(guessed: int) -> float:
        rest = without(problem, guessed)

        def at(block: int) -> float:
            dimension = widest(rest, block)
            last = last_dimension(rest, block, dimension) + 1
            tests = guessed * problem.guess + reduction(last, last)
            return add(reduction(block, dimension), tests) if last < dimension else inf

        return least(LEAST_BLOCK, embedding(rest)[0] + 1, at)[0]

    return least(0, 64, best)[0]


def lifts(problem: Problem, block: int, dimension: int) -> float:
    """Logarithm of the probability that nearest planes find the target and that the halves of a guess meet.

    Son, Cheon, WAHC 2019, lemma 4.2, with Gram-Schmidt vectors by the geometric series.
    """
    last = volume(problem, dimension) / dimension - (dimension - 1) * root(block) - log2(problem.error)
    total = 0.0
    for place in range(dimension):
        ratio = 2 ** (last + 2 * place * root(block)) / sqrt(2)
        if ratio > 12:
            break
        meets = erf(ratio) - (1 - exp(-ratio * ratio)) / (ratio * sqrt(pi))
        both = erf(ratio / 2) * meets
        if both <= 2**-1000:
            return -inf
        total += log2(both)
    return total


def meeting(problem: Problem) -> float:
    """Primal hybrid with nearest planes and a meeting in the middle (Howgrave-Graham, CRYPTO 2007)."""

    def best(step: int) -> float:
        rest = without(problem, 8 * step)

        def at(block: int) -> float:
            dimension = widest(rest, block)
            tests = 4 * step * problem.guess + 2 * log2(dimension)
            return add(reduction(block, dimension), tests) - lifts(rest, block, dimension)

        return least(LEAST_BLOCK, MOST_BLOCK, at)[0]

    return least(0, problem.degree // 32, best)[0]


def sampled(block: int, dimension: int, vectors: float) -> tuple[float, int]:
    """Cost of so many short vectors (a logarithm), and the dimension of the sieve that gives them.

    It is the largest that costs no more than BKZ before it (Guo, Johansson, ASIACRYPT 2021; MATZOV, section 4).
    """
    balance = sieved(block) + log2(max(dimension - block, 1) * PROGRESSIVE) / SIEVE[0]
    size = min(dimension, floor(balance))
    each = add(reduction(block, dimension), sieve(size))
    return each + max(0.0, vectors - VECTORS * size), size


def shortened(problem: Problem, block: int, samples: int, size: int) -> float:
    """Logarithm of the deviation, in units of q, of an error times a short dual vector from a sieve."""
    dimension = samples + problem.degree
    sides = samples * log2(problem.error) + problem.degree * (log2(problem.secret) + problem.modulus_bits)
    length = (log2(4 / 3) + log2(size / (2 * pi * e))) / 2 + (dimension - size) * root(block)
    return sides / dimension + length - problem.modulus_bits


def samples_for(problem: Problem, block: int) -> int:
    """Samples that make dual vectors times (error, secret) shortest."""
    both = problem.modulus_bits - problem.scale
    return max(ceil(sqrt(problem.degree * both / root(block))) - problem.degree, 1)


def distinguishing(deviation: float) -> float:
    """Logarithm of 1/advantage^2 of one sample whose error has this deviation, a logarithm in units of q."""
    return inf if deviation > 12 else 4 * (pi * 2**deviation) ** 2 / log(2)


def dual(problem: Problem) -> float:
    """Dual attack without guesses: short vectors distinguish samples from uniform with probability 0.99.

    Micciancio, Regev, "Lattice-based cryptography" (2009).
    """

    def at(block: int) -> float:
        samples = samples_for(problem, block)
        size = sampled(block, samples + problem.degree, 0)[1]
        vectors = distinguishing(shortened(problem, block, samples, size)) + log2(2 * log(50))
        return add(sampled(block, samples + problem.degree, vectors)[0], vectors)

    return least(LEAST_BLOCK, MOST_BLOCK, at)[0]


def dual_hybrid_at(problem: Problem, block: int, guessed: int, transformed: int, modulus: int) -> float:
    """The dual hybrid attack for given parameters (MATZOV, theorem 7.6).

    `guessed` coefficients are enumerated, `transformed` ones tried by a Fourier transform modulo `modulus`, the
    others are made short.
    """
    rest = without(problem, guessed + transformed)
    samples = samples_for(rest, block)
    size = sampled(block, samples + rest.degree, 0)[1]
    tested = guessed * problem.guess * log(2) + transformed * log(modulus) + log(2)
    rounding = transformed / 3 * (problem.secret * pi / modulus) ** 2 / log(2)
    vectors = distinguishing(shortened(rest, block, samples, size)) + rounding + log2(tested)
    transform = log2(MULTIPLY * max(transformed, 1)) + (transformed + 1) * log2(modulus)
    each = add(transform, log2(4 * ADD) + vectors)
    return add(sampled(block, samples + rest.degree, vectors)[0], guessed * problem.guess + each)


def dual_hybrid(problem: Problem) -> float:
    """The dual attack with guesses and a Fourier transform (Guo, Johansson, ASIACRYPT 2021; MATZOV)."""

    def best(modulus: int, guessed: int, transformed: int) -> float:
        def at(block: int) -> float:
            return dual_hybrid_at(problem, block, guessed, transformed, modulus)

        return least(LEAST_BLOCK, MOST_BLOCK, at)[0]

    def over_transformed(modulus: int, guessed: int) -> float:
        return least(0, 200, lambda transformed: best(modulus, guessed, transformed))[0]

    def over_guessed(modulus: int) -> float:
        return least(0, 60, lambda guessed: over_transformed(modulus, guessed))[0]

    return min(over_guessed(modulus) for modulus in (2, 3, 4, 5))


def customary(problem: Problem) -> float:
    """Primal attack in the model of the table of 2018: 8d sieves of 2^(0.292 block + 16.4), LLL aside."""
    block, dimension = embedding(problem)
    return 0.292 * block + 16.4 + log2(8 * dimension)


def core(problem: Problem) -> float:
    """Primal attack at the price of one sieve without its factor (ADPS16, Core-SVP): below what anyone can do."""
    return 0.292 * embedding(problem)[0]


GATED = {
    "uSVP": usvp,
    "BDD": bdd,
    "guessing": guessing,
    "meeting": meeting,
    "dual": dual,
    "dual hybrid": dual_hybrid,
}
"""Attacks in the gated model."""
SHOWN = {"uSVP of 2018": customary, "Core-SVP": core}
"""Models that are shown beside them: above and far below."""


@cache
def estimate(degree: int, modulus_bits: float) -> dict[str, float]:
    """Bits per gated attack of the project's ternary secrets and errors."""
    problem = ternary(degree, modulus_bits, lattice_sets.deviation())
    return {name: attack(problem) for name, attack in GATED.items()}


def shown(degree: int, modulus_bits: float) -> dict[str, float]:
    """Bits in the models that are not gated."""
    problem = ternary(degree, modulus_bits, lattice_sets.deviation())
    return {name: attack(problem) for name, attack in SHOWN.items()}


def main() -> int:
    """Print the table; 1 if a set is too weak."""
    weakest = inf
    for one in lattice_sets.sets():
        bits = estimate(one.degree, one.bits)
        weakest = min(weakest, *bits.values())
        columns = "  ".join(f"{name} {value:.1f}" for name, value in bits.items())
        others = ", ".join(f"{name} {value:.1f}" for name, value in shown(one.degree, one.bits).items())
        print(f"N = {one.degree}, {one.bits} bits, {one.use}: {columns}  ({others})")
    if weakest < FLOOR:
        print(f"error: {weakest:.2f} bits, {FLOOR} wanted", file=sys.stderr)
    return int(weakest < FLOOR)


if __name__ == "__main__":
    sys.exit(main())
