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


MOST_AXES = 3
"""Axes of a tensor without its batch that the engine has."""


Unit = float | tuple[float, ...]
"""How large 1 is in values: in all of them, or in each."""


@dataclass(frozen=True)
class Part:
    """One of several inputs or results, or the only one, under its name in the model.

    `shape` leaves the batch out. Its values are those of the joined tensor times `unit`, above 0, and where there are
    `units`, one for each value, times these.
    """

    name: str
    shape: tuple[int, ...]
    unit: float = 1.0
    units: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Part":
        """A part as the core describes it."""
        units = tuple(map(float, content.get("units", ())))
        return cls(content["name"], tuple(content["shape"]), float(content.get("unit", 1.0)), units)

    @classmethod
    def with_unit(cls, name: str, shape: tuple[int, ...], unit: Unit) -> "Part":
        """A part of one unit, or of one for each value."""
        return cls(name, shape, units=unit) if isinstance(unit, tuple) else cls(name, shape, unit)

    def content(self) -> dict[str, Any]:
        """The part as the core reads it."""
        units = {"units": list(self.units)} if self.units else {}
        return {"name": self.name, "shape": list(self.shape), "unit": self.unit, **units}


@dataclass(frozen=True)
class State:
    """A tensor that is kept between the inputs of a session: `after` one it is what `name` is before the next."""

    name: str
    shape: tuple[int, ...]
    after: str


@dataclass(frozen=True)
class Selection:
    """The part of a file that is wanted: the tensor that is the `result`, or None for a choice by the importer.

    Several results have commas between. `shapes` are those of inputs by name, the batch first; without a name, of the
    only one. `values` are those of inputs that are single numbers and no secret. `states` are pairs: an input that is
    kept from one example to the next, and the output that it is then. `units` say for inputs and results, where there
    are several, how large 1 is in the tensor that they share, and for an input of features the same for each.
    `beginning` are tokens that a decoder has read before those of each input, which is one token where `context` is not
    0: states have keys and values of so many before it.
    """

    result: str | None = None
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    values: tuple[tuple[str, float], ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, Unit], ...] = ()
    beginning: tuple[int, ...] = ()
    context: int = 0

    @classmethod
    def of(cls, noted: Mapping[str, Any]) -> "Selection":
        """What the options say that a file was compiled with."""
        shapes = tuple((str(name), tuple(map(int, shape))) for name, shape in noted.get("input_shapes") or ())
        values = tuple((str(name), float(value)) for name, value in noted.get("input_values") or ())
        states = tuple((str(before), str(after)) for before, after in noted.get("states") or ())
        units = tuple((str(name), read_unit(unit)) for name, unit in noted.get("units") or ())
        beginning = tuple(map(int, noted.get("beginning") or ()))
        return cls(noted.get("result"), shapes, values, states, units, beginning, int(noted.get("context") or 0))


def read_unit(content: object) -> Unit:
    """A unit as a file's options have it: a number, or a list of them."""
    return tuple(map(float, content)) if isinstance(content, list) else float(str(content))


@dataclass
class Remarks:
    """What reading a file tells beside the model: `notes` for people, and `bounds` that it states for its tensors."""

    notes: list[str] = field(default_factory=list)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)


WHOLE = Selection()
"""Nobody asked for a part of the model."""


@dataclass(frozen=True)
class Source:
    """A float network with one input and one output; shapes leave the batch out.

    Tensors in `internal` are made by the import: the model itself does not compute them. The others are
    tensors of the model of the same name, unless `seen` says otherwise. Of models of sequences the output's shape and
    the name that the model has for it are known. Of a `masked` input `[H + masks, S]` the last rows are masks. `notes`
    tell people what the import chose for them, and `selection` is what they had asked for. `inputs` and `outputs` are
    the parts of the input and of the output, where they are several or have more axes than the engine has; `states` are
    kept from one example to the next. `bounds` are the smallest and the largest value that tensors of the model can
    have, where a quantised model says it. `extra_bits` are by tensor what those have beyond the bits of activations
    that need them.
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
    masks: int = 1
    notes: tuple[str, ...] = ()
    selection: Selection = WHOLE
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    inputs: tuple[Part, ...] = ()
    outputs: tuple[Part, ...] = ()
    states: tuple[State, ...] = ()
    extra_bits: Mapping[str, int] = field(default_factory=dict)

    @property
    def example_shape(self) -> tuple[int, ...]:
        """Shape of one input as clients have it."""
        return self.inputs[0].shape if len(self.inputs) == 1 else self.input_shape

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
            "inputs": [part.content() for part in self.inputs],
            "outputs": [part.content() for part in self.outputs],
            "states": [{"name": s.name, "shape": list(s.shape), "after": s.after} for s in self.states],
            "extra_bits": dict(self.extra_bits),
        }
        return json.dumps(graph)

    def tensor_names(self) -> list[str]:
        """The input and every tensor that the model computes, in order: what calibration observes."""
        outputs = (node.output for node in self.nodes)
        states = (state.name for state in self.states)
        return [self.input_name, *states, *(name for name in outputs if name not in self.internal)]

    @property
    def reads_tokens(self) -> bool:
        """Whether the input is `[1 + masks, S]`: tokens that choose rows of a table, above their masks."""
        return any(node.operation["op"] == "Embedding" for node in self.nodes)

    def observed(self) -> dict[str, Seen]:
        """Say for each of `tensor_names` where calibration sees it."""
        return {name: self.seen.get(name, Seen(name)) for name in self.tensor_names()}
