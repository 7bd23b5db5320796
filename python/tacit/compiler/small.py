"""GELUs of values that are all near zero: there the curve has no room, and a table is as precise."""

from collections.abc import Mapping
from dataclasses import replace

from tacit.importers.source import Node, Source

NEAR_ZERO, NEAR_ZERO_WIDE = 1.6, 2.0
"""The largest magnitudes of arguments for which a GELU is looked up, at up to `USUAL_BITS` and beyond.

The curve of a GELU takes a width that activations have from 1.2 at 5 bits, 1.5 at 8 and 2.0 at 12.
"""
USUAL_BITS = 8


def tabulated(source: Source, ranges: Mapping[str, tuple[float, float]], bits: int) -> Source:
    """The graph, with tables in the place of GELUs whose arguments were near zero in calibration.

    `ranges` are those of tensors by name, and `bits` those of activations. A GELU of unknown range stays.
    """
    near = NEAR_ZERO if bits <= USUAL_BITS else NEAR_ZERO_WIDE

    def looked_up(node: Node) -> Node:
        low, high = ranges.get(node.inputs[0], (0.0, 2 * near))
        if node.operation["op"] != "Gelu" or max(high, -low) > near:
            return node
        return replace(node, operation={"op": "Table", "function": "Gelu"})

    return replace(source, nodes=tuple(map(looked_up, source.nodes)))
