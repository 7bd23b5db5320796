"""GELUs of values that are all near zero: there the curve has no room, and a table is as precise."""

from collections.abc import Mapping
from dataclasses import replace

from tacit.importers.source import Node, Source

NEAR_ZERO = {5: 1.02, 6: 1.18, 7: 1.32, 8: 1.44, 9: 1.56, 10: 1.66, 11: 1.76, 12: 1.86}
"""By bits of activations, the largest magnitudes of arguments for which a GELU is looked up.

Above them the curve of a GELU has a width that activations have. It takes half the bytes of a table's.
"""


def tabulated(source: Source, ranges: Mapping[str, tuple[float, float]], bits: int) -> Source:
    """The graph, with tables in the place of GELUs whose arguments were near zero in calibration.

    `ranges` are those of tensors by name, and `bits` those of activations. A GELU of unknown range stays.
    """
    near = NEAR_ZERO[min(max(bits, min(NEAR_ZERO)), max(NEAR_ZERO))]

    def looked_up(node: Node) -> Node:
        low, high = ranges.get(node.inputs[0], (0.0, 2 * near))
        if node.operation["op"] != "Gelu" or max(high, -low) > near:
            return node
        return replace(node, operation={"op": "Table", "function": "Gelu"})

    return replace(source, nodes=tuple(map(looked_up, source.nodes)))
