"""Constants that hide scores from a softmax: as large as the scores ask for, and no larger.

A model adds -10000 or less to scores that nothing may come of, such as those of later tokens. Cut into the steps of an
activation, a range with such a number in it has no room for the scores.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.quantize import Ranges
from tacit.importers.source import Node, Source

HIDDEN = -1000.0
"""A constant this low, or lower, hides the score that it is added to."""
NOTHING = 12.0
"""How far below all others a score weighs nothing: a part of e^-12."""
MOVING = {"Identity", "Mask", "Reshape", "View", "Transpose"}
Weights = dict[str, NDArray[np.float32]]


def soften(source: Source, ranges: Ranges) -> tuple[Weights, Ranges]:
    """The weights with penalties of softmaxes that are large enough for the `ranges` seen; and the ranges then."""
    weights, found = dict(source.weights), dict(ranges)
    readers: dict[str, list[Node]] = {}
    for node in source.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    for node in source.nodes:
        if node.operation["op"] != "AddConstant" or not weighed(node.output, readers, source.output):
            continue
        name, (low, high) = str(node.operation["constant"]), ranges.get(node.inputs[0], (0.0, 0.0))
        penalty = weights[name]
        hides = penalty <= HIDDEN
        if not hides.any() or node.inputs[0] not in ranges:
            continue
        rest = penalty[~hides] if not hides.all() else np.zeros(1, np.float32)
        least, most = low + min(float(rest.min()), 0.0), high + float(rest.max())
        depth = most - least + NOTHING
        weights[name] = np.where(hides, np.float32(-depth), penalty)
        found[node.output] = (low - depth, most)
        follow(node.output, readers, found)
    return weights, found


def weighed(name: str, readers: Mapping[str, list[Node]], output: str) -> bool:
    """Whether nothing but a softmax reads a tensor, which may be moved about before."""
    found: list[Any] = readers.get(name, [])
    return (
        name != output
        and bool(found)
        and all(
            node.operation["op"] == "Softmax"
            or (node.operation["op"] in MOVING and weighed(node.output, readers, output))
            for node in found
        )
    )


def follow(name: str, readers: Mapping[str, list[Node]], ranges: Ranges) -> None:
    """Give the range of a tensor to what it becomes when it is moved about."""
    for node in readers.get(name, []):
        if node.operation["op"] in MOVING and node.output in ranges:
            ranges[node.output] = ranges[name]
            follow(node.output, readers, ranges)
