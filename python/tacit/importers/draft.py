"""A source graph in the making: its nodes, the shapes they write, and where calibration sees them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Call, Operation, Shape
from tacit.importers.layout import Places, Stored, channel_axis, channels_first, in_order, without_batch
from tacit.importers.source import Node, Seen, Source, State
from tacit.importers.views import views

LINEAR = ("Conv", "Gemm")


@dataclass
class Draft:
    """Nodes by the tensor they write, in order; shapes of tensors have no batch."""

    shapes: dict[str, Shape]
    nodes: dict[str, Node] = field(default_factory=dict)
    weights: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    forms: dict[tuple[str, Shape, bytes], str] = field(default_factory=dict)
    first_alone: set[str] = field(default_factory=set)
    """Matrix products whose first operand nothing else reads."""

    def write(self, call: Call, inputs: Sequence[str], operation: Operation, shape: Shape, places: Places) -> Stored:
        """The node of `call`, which writes its first output in `shape`."""
        output = call.outputs[0]
        self.put(Node(call.name, tuple(inputs), output, operation), shape)
        self.weights.update(call.weights)
        self.seen[output] = Seen(output, channel=channel_axis(places, shape))
        return Stored(output, places, output)

    def put(self, node: Node, shape: Shape) -> str:
        """Append a node that writes a tensor of `shape`; gives its name."""
        self.nodes[node.output] = node
        self.shapes[node.output] = shape
        return node.output

    def size(self, stored: Stored) -> int:
        """Elements of the tensor that it lies in."""
        return int(np.prod(self.shapes[stored.name]))

    def arranged(self, call: Call, stored: Stored, places: Places) -> str:
        """A tensor that has `places` of what `stored` lies in, in their shape."""
        shape, flat = tuple(places.shape), places.ravel()
        straight = flat.size == self.size(stored) and (flat == np.arange(flat.size)).all()
        if straight and shape == self.shapes[stored.name]:
            return stored.name
        key = (stored.name, shape, places.tobytes())
        if key not in self.forms:
            name = stored.name if straight else self.viewed(call, stored, places)
            if self.shapes[name] != shape:
                name = self.local(name, "shape", {"op": "Reshape", "shape": list(shape)}, shape)
            self.remember(name, stored, places)
            self.forms[key] = name
        return self.forms[key]

    def viewed(self, call: Call, stored: Stored, places: Places) -> str:
        """A View, or several, with the elements at `places`, in their shape or another one."""
        found = views(places, self.size(stored))
        if found is None:
            call.refuse("reads elements in an order without fixed distances", "simplify the export")
        name = stored.name
        for shape, start, strides in found:
            operation = {"op": "View", "shape": list(shape), "start": start, "strides": strides}
            name = self.local(name, "view", operation, shape)
        return name

    def local(self, name: str, suffix: str, operation: Operation, shape: Shape) -> str:
        """A node of one input that the model does not have."""
        fresh = self.fresh(name, suffix)
        return self.put(Node(fresh, (name,), fresh, operation), shape)

    def fresh(self, name: str, suffix: str) -> str:
        """A name that no tensor has."""
        count = 0
        while (found := f"{name}.{suffix}{count or ''}") in self.shapes:
            count += 1
        return found

    def remember(self, name: str, stored: Stored, places: Places) -> None:
        """Where calibration sees a rearranged tensor: it is the model's own one with its channels elsewhere."""
        base = self.seen.get(stored.name)
        if (
            base is not None
            and places.size == stored.places.size
            and np.array_equal(places.reshape(-1), channels_first(stored.places).reshape(-1))
        ):
            self.seen[name] = Seen(stored.tensor, base.factor, stored.places.ndim - 2)

    def is_linear(self, stored: Stored) -> bool:
        """Whether a linear layer by constants writes what `stored` lies in."""
        node = self.nodes.get(stored.name)
        return node is not None and node.operation["op"] in LINEAR

    def straight(self, call: Call, stored: Stored, shape: Shape) -> str:
        """`stored` in the model's own order and in `shape`."""
        return self.arranged(call, stored, stored.places.reshape(shape))

    def unmoved(self, call: Call, stored: Stored) -> Stored:
        """`stored` in the model's own order, from where what no view shows can be rearranged further."""
        places = stored.places
        if np.array_equal(places.ravel(), np.arange(self.size(stored))):
            return stored
        name = self.straight(call, stored, without_batch(places.shape))
        return Stored(name, in_order(places.shape), stored.tensor)

    def own_form(self, call: Call, stored: Stored) -> Stored:
        """`stored` where it lies if it is all of what lies there, and else in a tensor of its own."""
        if stored.whole(self.size(stored)):
            return stored
        if len(np.unique(stored.places)) < stored.places.size:
            return self.unmoved(call, stored)
        places = channels_first(stored.places)
        name = self.arranged(call, stored, places)
        return Stored(name, from_form(stored.places, places), stored.tensor)

    def aligned(self, call: Call, first: Stored, second: Stored) -> str:
        """`second` in the order in which `first`, which is whole, lies."""
        if first.places.shape != second.places.shape:
            shape = np.broadcast_shapes(first.places.shape, second.places.shape)
            second = replace(second, places=np.broadcast_to(second.places, shape))
        return self.arranged(call, second, self.stored_order(first, second.places))

    def stored_order(self, stored: Stored, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """One value per element of the model's tensor, moved to where `stored`, which is whole, has the element."""
        shape = self.shapes[stored.name]
        moved = np.empty(int(np.prod(shape)), values.dtype)
        moved[stored.places.ravel()] = np.broadcast_to(values, stored.places.shape).ravel()
        return moved.reshape(shape)

    def renamed(self, old: str, new: str, operation: Mapping[str, Any]) -> None:
        """Let the node that wrote `old` do `operation` and write `new`."""
        node = self.nodes[old]
        changed = Node(node.name, node.inputs, new, operation)
        self.nodes = {
            (new if name == old else name): (changed if name == old else reading(other, old, new))
            for name, other in self.nodes.items()
        }
        self.shapes[new] = self.shapes.pop(old)
        self.seen[new] = self.seen.pop(old)

    def shift(self, name: str, output: str, value: NDArray[np.float32]) -> None:
        """Add a constant per channel to a linear layer, which then writes `output`."""
        operation = self.nodes[name].operation
        bias = operation["bias"]
        total = value if bias is None else self.weights[bias] + value
        bias = bias or operation["weight"].removesuffix("weight") + "bias"
        self.weights[bias] = np.ascontiguousarray(total, np.float32)
        channel = self.seen[name].channel
        self.renamed(name, output, {**operation, "bias": bias})
        self.seen[output] = Seen(output, channel=channel)

    def add_again(self, name: str, output: str, value: NDArray[np.float32]) -> None:
        """Add a constant, in the order in which the tensor lies, to an added one; the node then writes `output`."""
        operation, shape = self.nodes[name].operation, self.shapes[name]
        before = self.weights[operation["constant"]]
        before = before.reshape(-1, *[1] * (len(shape) - 1)) if before.ndim == 1 else before
        self.weights[operation["constant"]] = np.ascontiguousarray(before + value, np.float32)
        channel = self.seen[name].channel
        self.renamed(name, output, operation)
        self.seen[output] = Seen(output, channel=channel)

    def scale(self, name: str, factor: float, output: str) -> bool:
        """Multiply what a linear layer or a matrix product writes, which then writes `output`; tells whether it can."""
        node = self.nodes.get(name)
        if node is None or node.operation["op"] not in (*LINEAR, "MatMul"):
            return False
        if node.operation["op"] == "MatMul":
            first = self.behind_views(node.inputs[0])
            alone = first is not None and name in self.first_alone
            if first is None or not alone or not self.scale(first, factor, self.fresh(first, "scaled")):
                return False
            self.renamed(name, output, node.operation)
        else:
            for role in ("weight", "bias"):
                if node.operation[role] is not None:
                    self.weights[node.operation[role]] = self.weights[node.operation[role]] * np.float32(factor)
            self.renamed(name, output, node.operation)
        seen = self.seen[output]
        self.seen[output] = replace(seen, factor=seen.factor * factor)
        return True

    def behind_views(self, name: str) -> str | None:
        """The tensor that `name` shows in another order; None if something else reads it too."""
        readers = Counter(read for node in self.nodes.values() for read in node.inputs)
        while name in self.nodes and readers[name] == 1:
            node = self.nodes[name]
            if node.operation["op"] not in ("View", "Reshape"):
                return name
            name = node.inputs[0]
        return None

    def source(
        self, name: str, input_name: str, output: str, model_output: str, states: Sequence[State] = ()
    ) -> Source:
        """The finished graph: nodes that `output`, the model's `model_output`, and `states` depend on."""
        needed, kept = {output, *(state.after for state in states)}, []
        for node in reversed(self.nodes.values()):
            if node.output in needed:
                needed.update(node.inputs)
                kept.append(node)
        nodes = tuple(kept[::-1])
        seen = {node.output: self.seen[node.output] for node in nodes if node.output in self.seen}
        internal = frozenset(node.output for node in nodes) - seen.keys()
        ends = (input_name, self.shapes[input_name], output)
        weights = used(nodes, self.weights)
        source = Source(name, *ends, nodes, weights, internal, seen, self.shapes[output], model_output)
        return replace(source, states=tuple(states))


def reading(node: Node, old: str, new: str) -> Node:
    """A node that reads `new` where it read `old`."""
    return replace(node, inputs=tuple(new if name == old else name for name in node.inputs))


def used(nodes: Sequence[Node], weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """The weights that nodes name."""
    named = {value for node in nodes for value in node.operation.values() if isinstance(value, str)}
    return {name: value for name, value in weights.items() if name in named}


def from_form(places: Places, form: Places) -> Places:
    """Where elements that lay at `places` lie in a tensor made of `form`."""
    order = np.argsort(form.ravel(), kind="stable")
    found = order[np.searchsorted(form.ravel(), places.ravel(), sorter=order)]
    return np.asarray(found.reshape(places.shape), np.int64)
