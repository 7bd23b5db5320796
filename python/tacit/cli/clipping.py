"""What commands say of inputs beside the range of a model."""

import numpy as np
from numpy.typing import NDArray

from tacit.data.ranges import Bounds
from tacit.errors import MisuseError
from tacit.report import terminal


def check(x: NDArray[np.float32], bounds: Bounds, strict: bool = False) -> float:
    """Share of the values of `x` that are cut, 0 to 1; warns of any, or with `strict` raises `MisuseError`.

    Inputs are private and errors end in logs, so that no value is named.
    """
    share = bounds.clipped(x)
    if share:
        said = (
            f"{share:.2%} of the input's values are outside of {bounds.low:g} to {bounds.high:g}, for which the model "
            "was calibrated, and are cut; scale inputs as in training, or compile with inputs like these (--calibrate)"
        )
        if strict:
            raise MisuseError(said)
        terminal.warn(said)
    return share
