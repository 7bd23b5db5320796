"""Chains of linear layers that grow too wide get a clip to the calibrated range in between.

Linear layers one after another keep all their bits, which costs nothing until a ring is full. Where one would not fit,
what it reads is rounded to the bits of an activation first, as a ReLU there would do.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from tacit.errors import UnsupportedError
from tacit.importers.source import Node, Source

TOO_WIDE = (
    "needs a width of",
    "a product of matrices without values",
    "demands more precision than",
    "more ciphertexts or more precision",
)
"""What the compiler says of a layer or a product that does not fit."""
ENDING = ".room"
UNBOUNDED = 1e30
MOST_CLIPS = 64
Ranges = Mapping[str, tuple[float, float]]
Made = TypeVar("Made")


def with_room(
    graph: Source, ranges: Ranges, make: Callable[[Source, Ranges], Made], say: Callable[[str], None]
) -> Made:
    """What `make` gives for the graph, with clips where layers would not fit without."""
    count = 0
    while True:
        try:
            made = make(graph, ranges)
        except UnsupportedError as error:
            found = None if count == MOST_CLIPS else clipped_before(graph, ranges, error)
            if found is None:
                raise
            graph, ranges = found
            count += 1
        else:
            if count:
                places = "one layer" if count == 1 else f"{count} layers"
                say(f"{places} would not fit after linear layers: inputs are rounded to an activation's bits there")
            return made


def clipped_before(graph: Source, ranges: Ranges, error: UnsupportedError) -> tuple[Source, Ranges] | None:
    """The graph with a clip before the layer that an error names, or else after it; None where that is no help."""
    layer = named(graph, error.node or "")
    if layer is None or layer.name.endswith(ENDING) or not any(what in str(error) for what in TOO_WIDE):
        return None
    wide = [read for read in layer.inputs if read != graph.input_name and not read.endswith(ENDING)]
    if wide:
        read = wide[-1]
        readers = {node.name for node in graph.nodes if "weight" in node.operation and node.inputs[0] == read}
        return clipped(graph, ranges, read, readers | {layer.name})
    made = layer.output
    if made == graph.output or f"{made}{ENDING}" in {node.output for node in graph.nodes}:
        return None
    return clipped(graph, ranges, made, {node.name for node in graph.nodes if made in node.inputs})


def named(graph: Source, name: str) -> Node | None:
    """The node that a part of the compiled model comes from: those have its name or its output's with more behind."""
    while name:
        for node in graph.nodes:
            if name in (node.name, node.output):
                return node
        name = name.rpartition(".")[0]
    return None


def clipped(graph: Source, ranges: Ranges, tensor: str, readers: set[str]) -> tuple[Source, Ranges]:
    """The graph with a clip of a tensor, which `readers` read instead, beside those that do already."""
    made = f"{tensor}{ENDING}"
    readers = readers | {node.name for node in graph.nodes if made in node.inputs}
    clip = Node(made, (tensor,), made, {"op": "Clip", "minimum": -UNBOUNDED, "maximum": UNBOUNDED})
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name == made:
            continue
        if node.name not in readers:
            nodes.append(node)
            continue
        nodes += [] if clip in nodes else [clip]
        nodes.append(replace(node, inputs=tuple(made if name == tensor else name for name in node.inputs)))
    changed = replace(graph, nodes=tuple(nodes), internal=graph.internal | {made})
    return changed, {**ranges, **({made: ranges[tensor]} if tensor in ranges else {})}
