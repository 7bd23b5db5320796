"""More bits for models that 8 are too few for, where nobody said how many to take."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.compiler.doubt import largest
from tacit.errors import UnsupportedError

WIDTHS = (10, 12)
"""Bits of activations and weights that are tried one after another."""
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
        for more in WIDTHS:
            before = largest(summary)
            if before <= NEAR:
                break
            with TemporaryDirectory(dir=output.parent, prefix=f".{output.stem}-") as folder:
                tried = Path(folder) / output.name
                try:
                    found = self.compile(tried, more)
                except UnsupportedError:
                    break
                if largest(found) > WORTH * before:
                    continue
                self.say(
                    f"results of {bits} bits are {before:.0%} off the float model's on calibration inputs, of {more} "
                    f"{largest(found):.0%}: took {more} (--activation-bits {bits} --weight-bits {bits} takes fewer, "
                    "and fewer bytes)"
                )
                tried.replace(output)
                summary, bits = found, more
        return summary
