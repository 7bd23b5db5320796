"""One node of a model as its converter sees it: plain attributes and numpy constants, never ONNX classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.errors import UnsupportedError
from tacit.importers.source import Node

Operation = dict[str, Any]
Shape = tuple[int, ...]


@dataclass
class Call:
    """One node: its attributes, the constants among its inputs, and shapes without the batch."""

    name: str
    operator: str
    inputs: Sequence[str]
    attributes: Mapping[str, Any]
    shapes: Mapping[str, Shape]
    constants: Mapping[str, NDArray[Any]]
    outputs: Sequence[str]
    weights: dict[str, NDArray[np.float32]] = field(default_factory=dict)

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise `UnsupportedError` naming this node."""
        error = UnsupportedError(f"node `{self.name}`: {self.operator} {what}; {instead}")
        error.node = self.name
        raise error

    def constant(self, index: int, role: str) -> NDArray[Any] | None:
        """The constant at input `index`, None when the input is absent; computed ones are refused."""
        name = self.inputs[index] if index < len(self.inputs) else ""
        if not name:
            return None
        if name not in self.constants:
            self.refuse(f"with a computed {role}", f"make {role} `{name}` a constant of the model")
        return self.constants[name]

    def required(self, index: int, role: str) -> NDArray[Any]:
        """Like `constant`, but absent is refused too."""
        value = self.constant(index, role)
        if value is None:
            self.refuse(f"without a {role}", f"give it a constant {role}")
        return value

    @property
    def output_shape(self) -> Shape:
        """Shape of the first output; one without a batch is refused."""
        if self.outputs[0] not in self.shapes:
            self.refuse(f"gives `{self.outputs[0]}`, which has no batch in front", "keep the batch as the first axis")
        return self.shapes[self.outputs[0]]

    def activation(self, index: int) -> str:
        """The computed tensor at input `index`; a constant is refused."""
        if self.inputs[index] in self.constants:
            self.refuse(f"with a constant as input {index}", "give it an activation")
        return self.inputs[index]

    def step(self, suffix: str, inputs: Sequence[str], operation: Operation) -> Node:
        """One of several nodes that this one becomes; its output has a name of its own."""
        name = f"{self.name}.{suffix}"
        return Node(name, tuple(inputs), name, operation)

    def last(self, inputs: Sequence[str], operation: Operation) -> Node:
        """The node that writes the first output."""
        return Node(self.name, tuple(inputs), self.outputs[0], operation)

    def store(self, role: str, value: NDArray[Any]) -> str:
        """Keep a weight as contiguous float32 and return its name."""
        if value.dtype != np.float32:
            self.refuse(f"with a {role} of type {value.dtype}", "export the model in float32")
        if not np.isfinite(value).all():
            self.refuse(f"with a {role} that is not finite", "train or export the model again")
        name = f"{self.name}.{role}"
        self.weights[name] = np.ascontiguousarray(value)
        return name

    def input_shape(self, rank: int, meaning: str) -> Shape:
        """Shape of the first input; any rank but `rank` (batch excluded) is refused."""
        shape = self.shapes[self.inputs[0]]
        if len(shape) != rank:
            self.refuse(f"on a tensor of shape {list(shape)} per example", f"it must be {meaning}")
        return shape


IMAGE = (3, "an image: (batch, channels, height, width)")


def spread(call: Call, value: NDArray[Any], shape: Shape) -> NDArray[Any]:
    """`value` broadcast to (1, *shape), batch dropped."""
    try:
        return np.broadcast_to(value, (1, *shape)).reshape(shape)
    except ValueError:
        call.refuse(
            f"of a constant of shape {list(value.shape)} to {list(shape)} per example",
            "use a constant that broadcasts to one example",
        )
