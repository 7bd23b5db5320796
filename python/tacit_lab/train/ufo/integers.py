"""The integers that a weight can be: sums of the importances of its bits (UFO, section V-B).

`weight = offset + sum(bit[b] * importance[b])`. Two's complement has importances 1, 2, .., -2^(n-1). UFO doubles the
most significant one for layers with outliers, which leaves a gap between small weights and outliers; the offset that
puts it beyond the small weights costs no transfer. Where every output channel has a scale of its own, which is free
here, this rounds worse than two's complement. What helps layers with outliers at the same bytes are importances that
are near each other: their sums lie dense around the middle and sparse at the ends (`DENSE`).

Needs no PyTorch.
"""

from dataclasses import dataclass

DENSE = {2: ((2, 3), -3), 3: ((2, 3, 4), -5), 4: ((2, 4, 7, 8), -10)}
"""By the bits of a weight: importances and offset of least error on the float network that, like two's complement,
can be divided by two 0 + 1 + .. + n-1 times together, so that they cost the same."""
INPUT_SIDE = 127
"""Largest value of the network's input, of 8 signed bits."""
HIDDEN_BITS = 6
"""Bits of what a convolution reads."""
RESIDUAL_BITS = 8
"""Bits of what blocks add up."""
DROP = RESIDUAL_BITS - HIDDEN_BITS


@dataclass(frozen=True)
class Grid:
    """Importances of the bits, and what is added to their sum."""

    importance: tuple[int, ...]
    offset: int = 0

    @property
    def bits(self) -> int:
        """Bits of a weight: transfers."""
        return len(self.importance)

    def levels(self) -> list[int]:
        """All values, in order."""
        found = {self.offset}
        for importance in self.importance:
            found |= {value + importance for value in found}
        return sorted(found)


def plain(bits: int) -> Grid:
    """Two's complement."""
    return Grid((*(1 << b for b in range(bits - 1)), -(1 << (bits - 1))))


def doubled(bits: int) -> Grid:
    """The most significant bit twice as important, and an offset that centres the small weights."""
    return Grid((*(1 << b for b in range(bits - 1)), 1 << bits), -(1 << (bits - 2)) if bits > 1 else 0)


def reweighted(bits: int) -> list[Grid]:
    """What layers with outliers may have instead of two's complement."""
    return [doubled(bits), *([Grid(*DENSE[bits])] if bits in DENSE else [])]


def largest(bits: int) -> int:
    """The largest unsigned integer of so many bits."""
    return (1 << bits) - 1
