"""Bits of security of the parameter sets of the silent transfers, per attack.

`python3 scripts/lpn_estimate.py` reads the sets out of crates/ot/src/cot/ferret/params.rs, prints
a table and exits with 1 if a set has fewer than FLOOR bits against any attack of the customary
models. docs/protocols/ferret.md says what each column is and how far to trust it. All
formulas are for n samples of a secret of k bits with regular noise: t blocks of n/t samples,
one noisy position each. scripts/lpn_second_opinion.py estimates anew, scripts/lpn_code.py says what the code is worth.
"""

import sys
from collections.abc import Iterable
from math import ceil, inf, lgamma, log, log2, sqrt

import lpn_code

FLOOR = 134


def choose(n: float, k: float) -> float:
    """Logarithm of the binomial coefficient."""
    return (lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)) / log(2) if 0 <= k <= n else -inf


def add(*logs: float) -> float:
    """Logarithm of a sum of numbers given by their logarithms."""
    most = max(logs)
    return most + log2(sum(2 ** (value - most) for value in logs))


def reduced(n: int, k: int, t: int) -> tuple[int, int, int]:
    """The instance after the t parities known from regularity (each block adds up to one)."""
    return n - t, k - t, t


def gauss(n: int, k: int, t: int, columns: int | None = None) -> float:
    """Pooled Gauss: guess k samples without noise, invert with exponent 2.8, in so many columns if not in k."""
    return 2.8 * log2(columns or k) + choose(n, t) - choose(n - k, t)


def statistical(n: int, k: int, t: int) -> float:
    """Statistical decoding with parity checks from Gaussian elimination (ePrint 2022/712)."""
    return log2(k + 1) + 2 * t * log2((n - t + 1) / (n - k - t))


def statistical2(n: int, k: int, t: int) -> float:
    """Statistical decoding 2.0: as many secret bits enumerated as pooled Gauss costs (same source)."""
    return statistical(n, k - int(gauss(n, k, t)), t)


def window(n: int, k: int, t: int, each: float, elimination: float) -> float:
    """Stern and Dumer: p errors in the information set and a window of w samples.

    `each` is the cost of handling a vector, `elimination` that of one Gaussian elimination.
    """
    best = inf
    for p in range(0, 22, 2):
        for w in range(0, 160, 2):
            half = choose((k + w) // 2, p // 2)
            chance = 2 * half + choose(n - k - w, t - p) - choose(n, t)
            best = min(best, add(elimination, each + 1 + half, each + 1 + 2 * half - w) - chance)
    return best


def information_set(n: int, k: int, t: int) -> float:
    """The same, every vector and elimination step n bits long, as is customary (ePrint 2022/712)."""
    steps = log2((n - k) * n / log2(n - k))
    return window(n, k, t, log2(n), log2(n) + steps)


def lean(n: int, k: int, t: int, columns: int | None = None) -> float:
    """The same, one unit per vector and k^2.8 per elimination: below what anyone could do."""
    return window(n, k, t, 0, 2.8 * log2(columns or k))


def regular_information_set(n: int, k: int, t: int) -> float:
    """Enumeration with the p errors in different blocks (Esser, Santini, ePrint 2023/1568)."""
    size, best = n / t, inf
    for p in range(0, 30, 2):
        for w in range(0, 160, 2):
            share = (k - t + w) / t
            half = choose(t // 2, p // 2) + p / 2 * log2(share)
            places = choose(t // 2, p // 2) + choose((t + 1) // 2, p // 2)
            chance = places + p * log2(share / size) + (t - p) * log2(1 - share / size)
            work = max(2 * log2(n - k + t), 1 + half, 2 * half - w)
            best = min(best, log2(n) + work - chance)
    return best


def products(factors: Iterable[tuple[float, float]]) -> list[float]:
    """Coefficients up to degree 4 of the product of (1 + a*z)^m over the factors (a, m)."""
    series = [1.0, 0, 0, 0, 0]
    for a, m in factors:
        power = [1.0]
        for i in range(4):
            power.append(power[-1] * a * (m - i) / (i + 1))
        series = [sum(series[j] * power[i - j] for j in range(i + 1)) for i in range(5)]
    return series


def algebraic(n: int, k: int, t: int) -> tuple[float, float]:
    """The algebraic attack (Briaud, Oygarden, EUROCRYPT 2023), and AGB 2.0 (ePrint 2025/1476).

    `guessed` positions in each of `blocks` blocks are taken as noiseless; the system is solved
    at the lowest degree, 2 to 4, whose Hilbert series lets it. AGB 2.0 eliminates once for a
    weaker guess and refines it; here only with the same blocks and fewer positions.
    """
    size = n // t
    one = two = inf
    guesses = sorted({round(1.03**i) for i in range(400) if 1.03**i < size - 1} | {0})
    for blocks in {round(t * i / 60) for i in range(61)}:
        solving = {}
        for guessed in reversed(guesses):
            if blocks * guessed > k:
                continue
            unknown = [(size - guessed - 1, blocks), (size - 1, t - blocks)]
            monomials = products(unknown)
            left = products([*unknown, (1, -(n - k - 1))])
            tries = -blocks * log2(1 - guessed / size)
            for degree in (2, 3, 4):
                remaining = sum(left[1 : degree + 1])
                matrix = log2(3 * (k + 1 - blocks * guessed)) + 2 * log2(sum(monomials[1 : degree + 1]) + 1)
                if remaining < 1:
                    solving[degree] = tries
                    one = min(one, matrix + tries)
                if degree in solving:
                    refined = log2(5.64) + 2.8 * log2(max(remaining, 1)) + solving[degree]
                    two = min(two, add(matrix + tries, refined))
    return one, two


def hybrid(n: int, k: int, t: int) -> float:
    """Guess `u` noiseless positions in every block, linearise the quadratic rest (ePrint 2025/1284).

    `free` blocks may be left unguessed and enumerated in the end.
    """
    size, best = n // t, inf
    for u in range(min(size - 2, ceil(k / t) + 1)):
        for free in range(0, 12):
            tries = -(t - free) * log2(1 - u / size)
            unknown = k - t - (t - free) * u
            dense = max(n - k - (n - k) // (size - 1) * (size - u - 2), 1)
            first = log2(dense) + log2(n - k) + log2(dense + max(unknown, 0))
            if unknown <= 0:
                best = min(best, tries + first)
                continue
            equations = (t - free) * (size - u - 1) * (size - u - 2) / 2
            rest, fixed = unknown - (size - 1) * free, (size - 1) * free
            if 0 < rest <= sqrt(2 * equations) - 2:
                second = 4 * log2(rest) + 2 * log2(unknown) - 3 - log2(max(2 * log2(rest) - 1, 1))
                last = log2(
                    2.5 * rest * rest * fixed + 1.25 * rest * fixed * fixed + (2.5 * rest) ** 3 / log2(2.5 * rest + 2)
                )
                best = min(best, tries + add(first, second, last + free * log2(size)))
    return best


def estimate(n: int, k: int, t: int) -> dict[str, float]:
    """Bits per attack. "sparse" ones work in few columns of the code, with the samples that this takes for k."""
    small, sparse = reduced(n, k, t), lpn_code.confined(n, k, t)
    samples = min(samples for _, samples in sparse)
    one, two = algebraic(n, k, t)
    return {
        "Gauss": gauss(*small),
        "SD": statistical(*small),
        "SD 2.0": statistical2(*small),
        "ISD": information_set(*small),
        "lean ISD": lean(*small),
        "regular ISD": regular_information_set(n, k, t),
        "AGB": one,
        "AGB 2.0": two,
        "hybrid": hybrid(n, k, t),
        "sparse Gauss": min(gauss(n, samples, t, columns) for columns, samples in sparse),
        "sparse ISD": information_set(n, samples, t),
        "sparse lean ISD": min(lean(n, samples, t, columns) for columns, samples in sparse),
        "sparse regular ISD": regular_information_set(n, samples + t, t),
    }


def main() -> int:
    """Print the table; 1 if a set is too weak or none was found."""
    weakest = inf
    for n, k, t in lpn_code.sets():
        bits = estimate(n, k, t)
        weakest = min(weakest, *bits.values())
        columns = "  ".join(f"{name} {value:.1f}" for name, value in bits.items())
        print(f"n = {n}, k = {k}, t = {t}: {columns}")
    if weakest < FLOOR:
        print(f"error: {weakest:.1f} bits, {FLOOR} wanted", file=sys.stderr)
    return int(not FLOOR <= weakest < inf)


if __name__ == "__main__":
    sys.exit(main())
