"""Bytes of the products by transfers: per weight bit of importance 2^k an element of l - k bits (UFO, section III)."""

import math
from dataclasses import dataclass

from tacit_lab.train.ufo.integers import HIDDEN_BITS, INPUT_SIDE, Grid

READ = 1 << HIDDEN_BITS
"""Largest value that a convolution reads: requantising rounds up to it."""
GAIN = 4
"""How much larger a tile is at most after `B^T d B`, by Lemma 1 for F(2x2, 3x3)."""


@dataclass(frozen=True)
class Product:
    """Shape of a convolution's product: places x (rows x inner) x columns; `largest` is that of what it reads."""

    places: int
    rows: int
    inner: int
    columns: int
    largest: int
    outputs: int

    def accumulator(self, grid: Grid) -> int:
        """Bits of signed sums at the worst case of any weights of the grid."""
        most = max(abs(level) for level in grid.levels())
        return 1 + math.ceil(math.log2(self.inner * self.largest * most + 1))

    def bits(self, grid: Grid) -> int:
        """Bits transferred for the weights' bits."""
        width = self.accumulator(grid)
        sent = sum(width - trailing(importance) for importance in grid.importance)
        return self.places * self.rows * self.inner * self.columns * sent

    def bytes(self, grid: Grid) -> int:
        """The bits in bytes, rounded up."""
        return -(-self.bits(grid) // 8)


def trailing(importance: int) -> int:
    """How many times two divides it."""
    return (importance & -importance).bit_length() - 1


def products(blocks: int = 3) -> list[Product]:
    """The products of the convolutions of a CIFAR ResNet of 6 n + 2 layers, in order."""
    found = [Product(1, 16, 27, 1024, INPUT_SIDE, 16 * 1024)]
    before = 16
    for width, side in ((16, 32), (32, 16), (64, 8)):
        for _ in range(blocks):
            found.append(winograd(width, side) if before == width else strided(before, width, side))
            found.append(winograd(width, side))
            before = width
    return found


def winograd(channels: int, side: int) -> Product:
    """3x3 from and to so many channels, on tiles of 2x2 outputs."""
    return Product(16, channels, channels, side * side // 4, GAIN * READ, channels * side * side)


def strided(inputs: int, outputs: int, side: int) -> Product:
    """3x3 with a stride of two, to a square of this side."""
    return Product(1, outputs, 9 * inputs, side * side, READ, outputs * side * side)
