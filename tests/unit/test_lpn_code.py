"""What Ferret's code is worth to an attacker: the counts against enumeration, closed forms, trial, and the text."""

import heapq
import random
from itertools import product
from math import exp, inf, log, log2

import lpn_code
import numpy as np
import pytest
from lpn_code import Code, confined, distance, fewest, random_distance, sets, shipped, table
from security_bits import ROOT

OLDER = (1_802_240, 131_072, 880)
"""A set of earlier versions."""
TEN = Code(10, ())
"""The code of earlier versions, and that of the paper."""


def samples_of(relations, taps, parity=False):
    """Samples that some relations of a block touch, each of them or an odd number of times."""
    found = set()
    for relation in relations:
        own = {relation - tap for tap in (0, *taps) if tap <= relation}
        found = found ^ own if parity else found | own
    return found


@pytest.mark.parametrize("parity", [False, True])
def test_sets_of_a_block_are_counted(parity):
    """The bound against all sets of relations of a small block, at each pair of weights."""
    taps, block = (1, 3), 10
    bound = table(taps, parity)
    total = np.zeros(len(bound.relation))
    for chosen in product((0, 1), repeat=block):
        relations = [at for at, one in enumerate(chosen) if one]
        touched = len(samples_of(relations, taps, parity))
        total += np.exp(len(relations) * bound.relation - touched * bound.sample)
    slack = bound.start + block * bound.growth - np.log(total)
    assert slack.min() > -1e-9
    assert np.median(slack) < 0.2


def test_without_taps_the_closed_form_is_met():
    """Relations are samples then: columns that hold as many are expected from some share on, and take that many."""
    n, k, t = OLDER

    def exists(share):
        inside, rows = share**10, share * k / n
        gap = rows * log2(rows / inside) + (1 - rows) * log2((1 - rows) / (1 - inside))
        return -share * log2(share) - (1 - share) * log2(1 - share) - n / k * gap > 0

    shares = [0.5 + 0.01 * i for i in range(40)]
    found = [fewest(n, k, t, share, TEN) for share in shares]
    least = next(share for share in shares if exists(share))
    assert 0.6 < least < 0.65
    for share, samples in zip(shares, found, strict=True):
        if share < least - 0.02:
            assert samples == inf
        elif share >= least:
            assert share * k <= samples < 1.03 * share * k


def test_dropping_columns_takes_more_samples():
    """By trial no columns take fewer samples than all: the one with the fewest relations is dropped again and again.

    Of those that are left as many relations as columns are taken from the blocks that have most of them.
    """
    code, rng = shipped(), random.Random(1)
    k, blocks, block = 1000, 21, 1024
    rows = [[rng.randrange(k) for _ in range(code.weight)] for _ in range(blocks * block)]
    holders = [[] for _ in range(k)]
    for at, row in enumerate(rows):
        for column in set(row):
            holders[column].append(at)
    counts = [len(one) for one in holders]
    columns, left = set(range(k)), [True] * len(rows)
    queue = [(count, column) for column, count in enumerate(counts)]
    heapq.heapify(queue)
    taken = []
    while sum(left) >= len(columns):
        relations = [[at % block for at in range(b * block, (b + 1) * block) if left[at]] for b in range(blocks)]
        wanted, samples = len(columns), 0
        for one in sorted(relations, key=len, reverse=True):
            samples += len(samples_of(one[:wanted], code.taps))
            wanted -= min(wanted, len(one))
        taken.append((len(columns), samples))
        for _ in range(k // 20):
            count, column = heapq.heappop(queue)
            while column not in columns or count != counts[column]:
                count, column = heapq.heappop(queue)
            columns.discard(column)
            for at in holders[column]:
                if left[at]:
                    left[at] = False
                    for other in set(rows[at]):
                        counts[other] -= 1
                        heapq.heappush(queue, (counts[other], other))
    assert taken[0] == (k, k)
    assert taken[-1][0] < 0.5 * k
    assert min(samples for _, samples in taken[1:]) > k
    assert all(samples > min(one for _, one in confined(blocks * block, k, blocks)) for _, samples in taken)


def test_chances_to_cancel_are_bounded():
    """Against the exact chance that random positions out of few cancel."""
    for count, k in ((2, 10), (6, 10), (20, 6)):
        exact = sum(log_choose(k, odd) * (1 - 2 * odd / k) ** count for odd in range(k + 1)) / 2**k
        assert log(exact) - 1e-9 < lpn_code.cancelling(count, k) < log(exact) + 2


def log_choose(n, k):
    """The binomial coefficient itself."""
    return round(exp(lpn_code.ways(n, k)))


def test_no_linear_test_is_better_than_against_a_random_code():
    for one in sets():
        ours, best, ten = distance(*one), random_distance(one[0], one[1]), distance(*one, TEN)
        assert 0.995 * best < ours <= best
        assert ten < 0.9 * best


def test_bounds_are_in_the_text():
    pages = (ROOT / "docs/protocols/ferret.md").read_text()
    every = list(sets())
    assert len(every) == 5
    least = (min(samples for _, samples in confined(*one)) / one[1] for one in every)
    ours = (distance(*one) / one[1] for one in every)
    ten = (distance(*one, TEN) / one[1] for one in every)
    for name, row in (("samples for few columns", least), ("dual distance", ours), ("ten ones", ten)):
        assert f"| {name} | {' | '.join(f'{value:.3f} k' for value in row)} |\n" in pages
