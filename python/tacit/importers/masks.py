"""Masks: whatever a model makes of the mask, bit by bit, is computed for both values of a bit."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Call
from tacit.importers.fold import compute
from tacit.importers.layout import Masked, Places, Stored

HIDDEN = -1e4
"""A score this low, or lower, hides what it belongs to."""
KEPT = 1e-3
"""A score this near to 0 leaves what it is added to as it is."""
REARRANGING = {
    "Cast",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
}
"""Operators that give elements of their first input, whatever these are."""
BITWISE = {
    "Add",
    "And",
    "Cast",
    "Clip",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "IsNaN",
    "Less",
    "LessOrEqual",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Not",
    "Or",
    "Sub",
    "Where",
    "Xor",
}
"""Operators whose every result depends on one element of each input."""
BOTH = 2
"""Operands of a product."""
LOGICAL = ("And", "Not", "Or", "Xor")
"""Operators of truth values, which may come as the zeros and ones of the input itself."""
Value = Stored | Masked


def of_bits(places: Places) -> Masked:
    """The mask itself."""
    return Masked(places, np.zeros(places.shape, np.float32), np.ones(places.shape, np.float32))


def lies_in(stored: Stored, input_name: str, sequence: int, rows: range) -> bool:
    """Whether it lies in some rows of the input, of `sequence` elements; 0 for one that has no mask."""
    if stored.name != input_name or sequence <= 0:
        return False
    first, last = int(stored.places.min()), int(stored.places.max())
    return rows.start <= first // sequence and last // sequence < rows.stop


def moved(call: Call, places: Places, opset: int) -> list[Places]:
    """Where the elements are that a rearranging node gives, by output."""
    if call.operator == "Cast":
        return [places]
    constants = [call.constants[name] if name else None for name in call.inputs[1:]]
    found = compute(call.operator, call.attributes, [places, *constants], len(call.outputs), opset)
    if found is None:
        call.refuse("cannot be computed", "simplify the export")
    return [np.asarray(part, np.int64) for part in found]


def masked(call: Call, values: Mapping[str, Masked], opset: int) -> Masked:
    """A node all of whose activations are functions of the mask."""
    off, on = (result(call, values, role, opset) for role in ("off", "on"))
    if call.operator in REARRANGING:
        (places,) = moved(call, values[call.inputs[0]].places, opset)
        return Masked(places, off, on)
    spread = [np.broadcast_to(values[name].places, off.shape) for name in call.inputs if name in values]
    if call.operator in ("And", "Mul") and len(spread) == BOTH:
        spread = of_keys(spread)
    if any((other != spread[0]).any() for other in spread[1:]):
        call.refuse("of two bits of the mask", "let each element of a mask depend on one key")
    return Masked(spread[0], off, on)


def of_keys(spread: list[Places]) -> list[Places]:
    """The keys' bits, of bits of queries multiplied by bits of keys: queries that are padding hide nothing.

    What is computed of padding is read by nothing but padding, so that no other token notices.
    """
    square = spread[0].ndim > 1 and spread[0].shape[-1] == spread[0].shape[-2]
    keys = [places for places in spread if square and (places == places[..., :1, :]).all()]
    queries = [places for places in spread if square and (places == places[..., :, :1]).all()]
    turned = len(keys) == len(queries) == 1 and (np.swapaxes(keys[0], -1, -2) == queries[0]).all()
    return keys if turned else spread


def result(call: Call, values: Mapping[str, Masked], role: str, opset: int) -> NDArray[np.generic]:
    """What a node gives when all bits of the mask are the same."""
    inputs = [getattr(values[name], role) if name in values else call.constants.get(name) for name in call.inputs]
    if call.operator in LOGICAL:
        inputs = [None if value is None else value.astype(bool) for value in inputs]
    if call.operator == "Where" and inputs[0] is not None:
        inputs[0] = inputs[0].astype(bool)
    found = compute(call.operator, call.attributes, inputs, len(call.outputs), opset)
    if found is None:
        call.refuse("of a mask cannot be computed", "simplify the export")
    return found[0]


def hides(mask: Masked) -> bool:
    """Whether, added to scores, it hides those whose bit is 0 and leaves the others."""
    on, off = mask.on.astype(np.float64), mask.off.astype(np.float64)
    return bool((np.abs(on) < KEPT).all() and (off <= HIDDEN).all())


def chooses(mask: Masked, call: Call) -> str | None:
    """The activation that a Where by `mask` takes where the bit is 1, if a constant hides the others."""
    on, off = mask.on.astype(bool), mask.off.astype(bool)
    first, second = call.inputs[1:]
    if on.all() and not off.any():
        kept, other = first, second
    elif off.all() and not on.any():
        kept, other = second, first
    else:
        return None
    hidden = other in call.constants and bool((call.constants[other] <= HIDDEN).all())
    return kept if hidden and kept not in call.constants else None
