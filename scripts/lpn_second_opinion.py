"""A second opinion on the parameter sets of the silent transfers.

`python3 scripts/lpn_second_opinion.py` prints each set of crates/ot/src/cot/ferret/params.rs by the estimators that the
authors of the attacks published, written anew from their formulas and without the code of scripts/lpn_estimate.py:
other formulas where there are others (representations, AGB 2.0 with independent guesses, mixed guesses of the hybrid),
exact integers for Hilbert series, and a search for the optimum instead of a grid. Exit code 1 says that a set has
fewer than FLOOR bits. tests/unit/test_lpn_second_opinion.py compares with tables that were published and with what the
authors' programs print; docs/protocols/ferret.md has both opinions side by side.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from math import comb, inf, lgamma, log, log2
from typing import NamedTuple

import lpn_code

FLOOR = 134
OMEGA = 2.8
"""Exponent of matrix multiplication, as in all of the sources."""


class Instance(NamedTuple):
    """Parity with regular noise: `noise` blocks of samples, one noisy sample in each."""

    samples: int
    secret: int
    noise: int

    @property
    def block(self) -> int:
        """Samples in a block."""
        return self.samples // self.noise


def choose(n: float, k: float) -> float:
    """Logarithm of a binomial coefficient, -inf where there is nothing to choose."""
    return (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)) / log(2) if 0 <= k <= n else -inf


def plus(*logs: float) -> float:
    """Logarithm of the sum of the numbers with these logarithms."""
    most = max(logs)
    return most if most in (inf, -inf) else most + log2(sum(2 ** (one - most) for one in logs))


def lowest(cost: Callable[[int], float], low: int, high: int, grid: int = 24) -> float:
    """The least value on low..=high: on a grid, then halving its step around the best point."""
    step = max((high - low) // grid, 1)
    value, at = min(((cost(x), x) for x in (*range(low, high + 1, step), high)), default=(inf, low))
    while step > 1:
        step = (step + 1) // 2
        near = [x for x in (at - step, at + step) if low <= x <= high]
        value, at = min((value, at), *((cost(x), x) for x in near))
    return value


def gauss(n: int, k: int, t: int, columns: int | None = None) -> float:
    """Pooled Gauss (ePrint 2022/712): k samples without noise, guessed one after another, then an inversion.

    The inversion is that of a matrix of k columns, or of so many.
    """
    return OMEGA * log2(min(columns or k, n - k)) - sum(log2((n - k - i) / (n - i)) for i in range(t))


def elimination(n: int, k: int, window: int) -> float:
    """Steps of an iteration's elimination on vectors of n bits (ePrint 2022/712)."""
    return log2(n - k - window) + 2 * log2(n) - log2(log2(n - k - window))


def stern(n: int, k: int, t: int) -> float:
    """Stern and Dumer (SD-ISD of ePrint 2022/712)."""

    def cost(p: int, window: int) -> float:
        half = choose((k + window) / 2, p / 2)
        hit = choose(n - k - window, t - p) - choose(n, t) + 2 * half
        return plus(elimination(n, k, window), log2(n) + 1 + half, log2(n) + 1 + 2 * half - window) - hit

    return min(lowest(partial(cost, p), 0, 240) for p in range(0, 24, 2))


def representations(n: int, k: int, t: int) -> float:
    """Three levels of representations (BJMM of ePrint 2022/712, after Hamdaoui, Sendrier, ePrint 2013/162)."""

    def cost(p2: int, e2: int, e1: int, window: int) -> float:
        size, p1 = k + window, 2 * (p2 - e2)
        p = 2 * (p1 - e1)
        start, first, second, full = choose(size / 2, p2 / 2), choose(size, p2), choose(size, p1), choose(size, p)
        ways2 = choose(p2, e2) + choose(size - p2, p2 - e2) - first
        ways1 = choose(p1, e1) + choose(size - p1, p1 - e1)
        r2 = min(max(int(ways2 + 4 * start - second), 0), max(window - 1, 0))
        r1 = min(max(int(ways1 + second - full) - r2, 0), max(window - r2 - 1, 0))
        third = 2 * start - r2
        merged = 2 * third - r1
        kept = min(ways2 + merged, second - r1 - r2)
        last = 2 * kept - window + r1 + r2
        found = min(ways1 - second + last, full - window)
        hit = choose(n - k - window, t - p) - choose(n, t) + window + found
        lists = log2(n) + plus(3 + start, 2 + third, 1 + merged, 1 + last)
        return plus(elimination(n, k, window), lists) - min(hit, 0.0)

    splits = ((p2, e2, e1) for p2 in range(2, 9, 2) for e2 in range(p2) for e1 in range(2 * (p2 - e2)))
    return min(lowest(partial(cost, *split), 2, 202, 10) for split in splits)


def permutation(n: int, dimension: int, t: int) -> float:
    """As many positions of each block guessed; no lists, so that memory is the matrix (ePrint 2023/1568, A.1)."""
    return 2 * log2(n - dimension) + log2(n) - t * log2(1 - dimension / n)


def enumeration(n: int, dimension: int, t: int) -> float:
    """Two lists of p/2 errors in different blocks (ePrint 2023/1568, A.1)."""

    def cost(p: int, window: int) -> float:
        share = (dimension + window) / t
        if share * t >= n:
            return inf
        size = choose(round(t / 2), p / 2) + p / 2 * log2(share)
        places = choose(t // 2, p / 2) + choose((t + 1) // 2, p / 2)
        hit = places + p * log2(share * t / n) + (t - p) * log2(1 - share * t / n)
        return log2(n) + max(2 * log2(n - dimension), 1 + size, 2 * size - window) - hit

    return min(lowest(partial(cost, p), 0, 240) for p in range(0, 30, 2))


def regular_representations(n: int, dimension: int, t: int) -> float:
    """Two levels of representations of errors in different blocks (ePrint 2023/1568, A.1)."""

    def cost(p: int, extra: int, below: int, window: int) -> float:
        share = (dimension + window) / t
        if share * t >= n:
            return inf
        px = p // 2 + extra
        py = px // 2 + below
        ways_x = 2 * (choose(p / 2, p / 4) + choose(t // 2 - p / 2, extra / 2) + log2(share) * extra / 2)
        ways_y = 2 * (choose(px // 2, px // 4) + choose(t // 2 - px // 2, below // 2) + log2(share) * (below // 2))
        rx, ry = max(int(ways_x), 0), max(int(ways_y), 0)
        if ry > rx:
            return inf
        base = choose(round(t / 2), py // 2) + log2(share) * (py / 2)
        middle = 2 * base - ry
        top = 2 * choose(round(t / 2), px // 2) + log2(share) * px - rx
        lists = max(3 + base, 2 + middle, 1 + 2 * middle - (rx - ry), 1 + top, 2 * top - (window - rx))
        hit = choose(t // 2, p // 2) + choose((t + 1) // 2, p // 2)
        hit += p * log2(share * t / n) + (t - p) * log2(1 - share * t / n)
        return log2(n) + max(2 * log2(n - dimension), lists) - hit

    splits = ((p, extra, below) for p in range(8, 40, 8) for extra in range(0, 16, 4) for below in range(4))
    return min(lowest(partial(cost, *split), 10, 250, 16) for split in splits)


@cache
def series(blocks: tuple[tuple[int, int], ...], equations: int, order: int) -> tuple[int, ...]:
    """Coefficients up to `order` of the product of (1 + a*z)^m for `blocks` = (a, m), by (1 + z)^equations: exact."""
    out = [1, *[0] * order]
    for a, m in (*blocks, (1, -equations)):
        power = [a**i * comb(m, i) if m >= 0 else (-1) ** i * comb(i - m - 1, i) for i in range(order + 1)]
        out = [sum(out[j] * power[i - j] for j in range(i + 1)) for i in range(order + 1)]
    return tuple(out)


class Algebraic:
    """Briaud, Oygarden (EUROCRYPT 2023) and AGB 2.0 (ePrint 2025/1476) over GF(2).

    `mu` positions in each of `f` blocks are guessed to be without noise; the system of the remaining positions is
    solved at the least degree at which its Hilbert series says that it can be.
    """

    DEGREES = (2, 3, 4)

    def __init__(self, instance: Instance) -> None:
        self.n, self.k, self.t = instance
        self.block = instance.block
        self.least = {degree: [self.threshold(f, degree) for f in range(self.t + 1)] for degree in self.DEGREES}

    def monomials(self, f: int, mu: int, degree: int) -> int:
        """Columns of the Macaulay matrix."""
        return sum(series(((self.block - mu - 1, f), (self.block - 1, self.t - f)), 0, 4)[1 : degree + 1])

    def left(self, f: int, mu: int, degree: int) -> int:
        """What the Hilbert series leaves of them."""
        unknown = ((self.block - mu - 1, f), (self.block - 1, self.t - f))
        return sum(series(unknown, self.n - self.k - 1, 4)[1 : degree + 1])

    def threshold(self, f: int, degree: int) -> int | None:
        """The fewest positions in each of `f` blocks that leave a system of this degree: on a grid, then by bisection.

        What is left falls with the first positions, and rises again where too many blocks are empty.
        """
        most = min(self.block - 1, self.k // max(f, 1))
        grid = (most * i // 16 for i in range(17))
        high = next((mu for mu in grid if self.left(f, mu, degree) < 1), None)
        if high is None:
            return None
        low = max(high - most // 16 - 1, 0)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.left(f, middle, degree) < 1 else (middle + 1, high)
        return low

    def tries(self, f: int, mu: int) -> float:
        """Logarithm of the guesses until one holds."""
        return -f * log2(1 - mu / self.block)

    def guesses(self, degree: int) -> Iterator[tuple[int, int]]:
        """For each number of blocks the fewest positions."""
        return ((f, mu) for f, mu in enumerate(self.least[degree]) if mu is not None)

    def matrix(self, f: int, mu: int, degree: int) -> float:
        """Block Wiedemann on the Macaulay matrix."""
        return log2(3 * (self.k + 1 - f * mu)) + 2 * log2(self.monomials(f, mu, degree))

    def one(self) -> float:
        """AGB: one system for each guess."""
        every = ((f, mu, degree) for degree in self.DEGREES for f, mu in self.guesses(degree))
        return min((self.matrix(*at) + self.tries(at[0], at[1]) for at in every), default=inf)

    def two(self) -> float:
        """AGB 2.0: an elimination for each guess of (g, nu), refined to a guess of (f, mu), f >= g and mu >= nu."""
        return min(self.refined(degree) for degree in self.DEGREES)

    def refined(self, degree: int) -> float:
        """The same at one degree. For a given `g` the cost is searched along `nu`."""
        cheapest: list[tuple[float, int]] = [(inf, 0)] * (self.t + 2)
        for f, mu in self.guesses(degree):
            cheapest[f] = (self.tries(f, mu), mu)
        for f in reversed(range(self.t + 1)):
            cheapest[f] = min(cheapest[f], cheapest[f + 1])

        def cost(g: int, nu: int) -> float:
            columns, left = self.monomials(g, nu, degree), max(self.left(g, nu, degree), 1)
            rank = max(columns - left, 2)
            first = min(self.matrix(g, nu, degree), log2(columns) + 2 * log2(rank) - log2(log2(rank)))
            tries, mu = cheapest[g]
            if nu > mu:
                tries = self.tries(g, nu) if left == 1 else inf
            return plus(first + self.tries(g, nu), log2(5.64) + OMEGA * log2(min(left, rank)) + tries)

        def best(g: int) -> float:
            tries, mu = cheapest[g]
            most = min(self.block - 1, self.k // g)
            return inf if tries == inf else min(lowest(partial(cost, g), 0, mu), lowest(partial(cost, g), mu, most))

        return lowest(best, 1, self.t)


def hybrid(instance: Instance, binary: bool = True) -> float:
    """Guess `u` or u + 1 positions without noise in each block, then a quadratic system (ePrint 2025/1284, Theorem 1).

    `g` blocks are not guessed but enumerated in the end. Over GF(2) the sum of each block is known (`binary`), which
    takes one more unknown of each block, and the elimination may be that of four Russians on the rows that count.
    """
    n, k, t = instance
    block, known = instance.block, t if binary else 0
    each = block - 1 if binary else block
    checks = n - k - (n - k) // block * (each - 1)

    def cost(g: int, guesses: int) -> float:
        u, more = divmod(guesses, t - g)
        unknown = k - known - guesses
        fixed = g * each
        free = unknown - fixed
        if u + (more > 0) > each - 2 or free < 0:
            return inf
        r = each - u
        tries = -more * log2(1 - (u + 1) / block) - (t - g - more) * log2(1 - u / block)
        first = log2(n - k) + log2(checks) + log2(unknown + checks)
        if unknown == 0:
            return tries + first
        quadratic = more * comb(r - 1, 2) + (t - g - more) * comb(r, 2)
        extra = free + 2 * g + g * free + comb(g, 2)
        if 2 * quadratic - free * (free + 1) < 5 * extra:
            return inf
        columns = (unknown * unknown + 3 * unknown) / 2
        second, pivots = OMEGA * log2(columns), free * (free + 1) / 2 + 2.5 * extra
        if binary:
            second = min(second, 2 * log2(pivots) + log2(columns) - log2(log2(pivots)))
        rows = 2.5 * extra
        wide = free + 2 * fixed + fixed * free + fixed * (fixed - 1) / 2
        last = plus(OMEGA * log2(rows), log2(rows) + log2(wide))
        return tries + plus(first, second, g * log2(each) + last)

    def feasible(g: int) -> int:
        low, high = 0, k - known
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if cost(g, middle) < inf else (middle + 1, high)
        return low

    least = inf
    for g in range(min(12, t)):
        start = feasible(g)
        least = min(least, lowest(partial(cost, g), start, min(start + 2 * t, k - known)))
    return least


def opinion(instance: Instance) -> dict[str, float]:
    """Bits per attack. "sparse" ones work in few columns of the code (scripts/lpn_code.py), "without lists" in any."""
    n, k, t = instance
    small, sparse = (n - t, k - t, t), lpn_code.confined(n, k, t)
    few = min(samples for _, samples in sparse)
    algebraic = Algebraic(instance)
    return {
        "Gauss": gauss(*small),
        "ISD": stern(*small),
        "BJMM": representations(*small),
        "regular ISD": enumeration(n, k - t, t),
        "regular BJMM": regular_representations(n, k - t, t),
        "AGB": algebraic.one(),
        "AGB 2.0": algebraic.two(),
        "hybrid": hybrid(instance),
        "sparse Gauss": min(gauss(n, samples, t, columns) for columns, samples in sparse),
        "sparse ISD": stern(n, few, t),
        "sparse BJMM": representations(n, few, t),
        "sparse regular ISD": enumeration(n, few, t),
        "without lists": permutation(n, min(few, k - t), t),
    }


def sets() -> list[Instance]:
    """The parameter sets of the sources."""
    return [Instance(*one) for one in lpn_code.sets()]


def main() -> int:
    """Print the opinions; 1 if a set is too weak or none was found."""
    weakest = inf
    for instance in sets():
        bits = opinion(instance)
        weakest = min(weakest, *bits.values())
        columns = "  ".join(f"{name} {value:.1f}" for name, value in bits.items())
        print(f"n = {instance.samples}, k = {instance.secret}, t = {instance.noise}: {columns}")
    if weakest < FLOOR:
        print(f"error: {weakest:.1f} bits, {FLOOR} wanted", file=sys.stderr)
    return int(not FLOOR <= weakest < inf)


if __name__ == "__main__":
    sys.exit(main())
