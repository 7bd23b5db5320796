"""More bits for models that 8 are too few for, where nobody said how many to take."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.compiler.doubt import largest
from tacit.errors import UnsupportedError

WIDTHS = ((10,), (12, 11))
"""Bits of activations and weights that are tried one after another, each with what is tried if layers have no room."""
NEAR = 0.1
"""The relative error of results on calibration inputs up to which bits suffice."""
WORTH = 0.8
"""More bits must bring the error to this part of what it was, or they are not taken."""
Summary = dict[str, Any]


@dataclass(frozen=True)
class Wider:
    """Compiles with more bits into a file, and says what it does."""

    compile: Callable[[Path, int], Summary]
    say: Callable[[str], None]

    def enough(self, output: Path, bits: int, summary: Summary) -> Summary:
        """The summary of the model `output` of `bits` bits, or of one with more that takes its place.

        More are taken while results on calibration inputs are far from the float model's and more bits help.
        """
        for widths in WIDTHS:
            before = largest(summary)
            if before <= NEAR:
                break
            with TemporaryDirectory(dir=output.parent, prefix=f".{output.stem}-") as folder:
                tried = Path(folder) / output.name
                more, found = self.first(tried, widths)
                if found is None or largest(found) > WORTH * before:
                    continue
                self.say(
                    f"results of {bits} bits are {before:.0%} off the float model's on calibration inputs, of {more} "
                    f"{largest(found):.0%}: took {more} (--activation-bits {bits} --weight-bits {bits} takes fewer, "
                    "and fewer bytes)"
                )
                tried.replace(output)
                summary, bits = found, more
        return summary

    def first(self, path: Path, widths: tuple[int, ...]) -> tuple[int, Summary | None]:
        """The first of some widths that can be compiled, and the summary of that; None if none can."""
        for bits in widths:
            try:
                return bits, self.compile(path, bits)
            except UnsupportedError:
                continue
        return 0, None
