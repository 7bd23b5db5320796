"""The source graph: a float network in the words of the Rust crate `graph`, before any pass."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Node:
    """One operator: `operation` holds its tag `op` and its attributes; tensors are named."""

    name: str
    inputs: tuple[str, ...]
    output: str
    operation: Mapping[str, Any]


@dataclass(frozen=True)
class Seen:
    """What calibration sees of a tensor: the model's `tensor` times `factor`.

    `channel` is the axis of it, batch left out, that is the first one here; None if there is none. `factors` multiply
    its channels as well, one each, where there are any.
    """

    tensor: str
    factor: float = 1.0
    channel: int | None = 0
    factors: tuple[float, ...] = ()


@dataclass(frozen=True)
class Selection:
    """The part of a file that is wanted: the tensor that is the `result`, or None for a choice by the importer.

    `shapes` are those of inputs by name, the batch first; without a name, of the only one.
    """

    result: str | None = None
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> "Selection":
        """What the options say that a file was compiled with."""
        result, shapes = noted.get("result"), noted.get("input_shapes") or ()
        return cls(result, tuple((str(name), tuple(map(int, shape))) for name, shape in shapes))


WHOLE = Selection()
"""Nobody asked for a part of the model."""


@dataclass(frozen=True)
class Source:
    """A float network with one input and one output; shapes leave the batch out.

    Tensors in `internal` are made by the import: the model itself does not compute them. The others are
    tensors of the model of the same name, unless `seen` says otherwise. Of models of sequences the output's shape and
    the name that the model has for it are known. Of a `masked` input `[H + 1, S]` the last row is a mask. `notes`
    tell people what the import chose for them, and `selection` is what they had asked for.
    """

    name: str
    input_name: str
    input_shape: tuple[int, ...]
    output: str
    nodes: tuple[Node, ...]
    weights: Mapping[str, NDArray[np.float32]] = field(repr=False)
    internal: frozenset[str] = frozenset()
    seen: Mapping[str, Seen] = field(default_factory=dict)
    output_shape: tuple[int, ...] = ()
    model_output: str = ""
    masked: bool = False
    notes: tuple[str, ...] = ()
    selection: Selection = WHOLE

    def to_json(self) -> str:
        """The graph without its weights, as `_core.compile` reads it."""
        nodes = [
            {"name": node.name, "inputs": list(node.inputs), "output": node.output, **node.operation}
            for node in self.nodes
        ]
        graph = {
            "name": self.name,
            "input": {"name": self.input_name, "shape": list(self.input_shape)},
            "output": self.output,
            "nodes": nodes,
        }
        return json.dumps(graph)

    def tensor_names(self) -> list[str]:
        """The input and every tensor that the model computes, in order: what calibration observes."""
        outputs = (node.output for node in self.nodes)
        return [self.input_name, *(name for name in outputs if name not in self.internal)]

    @property
    def reads_tokens(self) -> bool:
        """Whether the input is `[2, S]`: tokens that choose rows of a table, above their mask."""
        return any(node.operation["op"] == "Embedding" for node in self.nodes)

    def observed(self) -> dict[str, Seen]:
        """Say for each of `tensor_names` where calibration sees it."""
        return {name: self.seen.get(name, Seen(name)) for name in self.tensor_names()}
