"""Converters of sums and factors of sequence models: constants go into the linear layer before them where they can."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.attention import hidden
from tacit.importers.call import Call
from tacit.importers.draft import LINEAR, Draft
from tacit.importers.elementwise import plus, scale, times
from tacit.importers.layout import Masked, Stored
from tacit.importers.masks import hides
from tacit.importers.source import Node, Seen
from tacit.importers.weaver import Values, Weaver


def in_place(weaver: Weaver, call: Call, name: str, operation: Callable[[Call], Any]) -> Values:
    """A converter of one activation, on the elements in the order in which they lie."""
    draft, output = weaver.draft, call.outputs[0]
    stored = draft.own_form(call, weaver.stored(call, name))
    shape = draft.shapes[stored.name]
    inputs = [stored.name if read == name else read for read in call.inputs]
    local = replace(call, inputs=inputs, shapes={stored.name: shape, output: shape})
    converted = operation(local)
    call.weights.update(local.weights)
    if isinstance(converted, dict):
        return weaver.written(call, [stored.name], converted, shape, stored.places)
    for node in converted:
        draft.put(node, tuple(node.operation.get("shape", draft.shapes[node.inputs[0]])))
    draft.weights.update(call.weights)
    draft.seen[output] = Seen(output)
    return weaver.followed(call, Stored(output, stored.places, output))


def gelu(weaver: Weaver, call: Call) -> Values:
    """Gelu, its tanh approximation too."""
    return in_place(weaver, call, call.inputs[0], lambda _: {"op": "Gelu"})


def add(weaver: Weaver, call: Call) -> Values:
    """Add or Sub of a constant, of another activation, or of a penalty made of the mask."""
    for index, name in enumerate(call.inputs):
        mask = weaver.values.get(name)
        if isinstance(mask, Masked) and hides(mask) and call.operator == "Add":
            return hidden(weaver, call, call.inputs[1 - index], mask)
    constants = [index for index, name in enumerate(call.inputs) if name in call.constants]
    negative = call.operator == "Sub"
    if not constants:
        return combined(weaver, call, "Add", negative)
    if constants == [0] and negative:
        name = negated(weaver, call, call.inputs[1])
        return added(weaver, replace(call, inputs=[name, call.inputs[0]]), name, call.constants[call.inputs[0]])
    value = call.constants[call.inputs[constants[0]]]
    return added(weaver, call, call.inputs[1 - constants[0]], -value if negative else value)


def negated(weaver: Weaver, call: Call, read: str) -> str:
    """A node that negates an activation; gives the name of its value."""
    name = f"{call.name}.negated"
    step = replace(call, name=name, inputs=[read], outputs=[name], weights={})
    (value,) = in_place(weaver, step, read, lambda _: scale(-1.0)).values()
    weaver.values[name] = replace(value, tensor=read) if isinstance(value, Stored) else value
    weaver.draft.seen[name] = Seen(read, -1.0, weaver.draft.seen[name].channel)
    return name


def added(weaver: Weaver, call: Call, name: str, value: NDArray[Any]) -> Values:
    """A constant added; a linear layer that nothing else reads takes it into its bias."""
    call, name = widened(weaver, call, name, value)
    stored = weaver.draft.own_form(call, weaver.stored(call, name))
    moved_value = constant_at(weaver, call, stored, value)
    node = weaver.draft.nodes.get(stored.name)
    channels = moved_value.reshape(moved_value.shape[0], -1)
    even = bool((channels == channels[:, :1]).all())
    if stored.exclusive and even and node is not None and node.operation["op"] in LINEAR:
        weaver.draft.shift(stored.name, call.outputs[0], channels[:, 0])
        return weaver.followed(call, replace(stored, name=call.outputs[0]))
    if stored.exclusive and node is not None and node.operation["op"] == "AddConstant":
        weaver.draft.add_again(stored.name, call.outputs[0], moved_value)
        return weaver.followed(call, replace(stored, name=call.outputs[0]))
    return in_place(weaver, call, name, lambda local: plus(local, moved_value[None], "addend"))


def widened(weaver: Weaver, call: Call, name: str, value: NDArray[Any]) -> tuple[Call, str]:
    """The node and the activation it reads, with axes of length 1 in front if only the constant has them."""
    stored = weaver.stored(call, name)
    shape = np.broadcast_shapes(stored.places.shape, value.shape)
    if len(shape) == stored.places.ndim or np.prod(shape) != stored.places.size:
        return call, name
    wide = f"{call.name}.wide"
    weaver.values[wide] = replace(stored, places=stored.places.reshape(shape))
    return replace(call, inputs=[wide if read == name else read for read in call.inputs]), wide


def constant_at(weaver: Weaver, call: Call, stored: Stored, value: NDArray[Any]) -> NDArray[Any]:
    """A constant in the order in which `stored` lies; one that widens the activation is refused."""
    if np.broadcast_shapes(stored.places.shape, value.shape) != stored.places.shape:
        call.refuse("of a constant larger than the activation", "use a constant that broadcasts to one example")
    return weaver.draft.stored_order(stored, value)


def multiply(weaver: Weaver, call: Call) -> Values:
    """Mul or Div by a constant, or Mul of two activations."""
    constants = [index for index, name in enumerate(call.inputs) if name in call.constants]
    divides = call.operator == "Div"
    if divides and constants != [1]:
        call = by_inverse(weaver, call)
        divides = False
    if not constants:
        return combined(weaver, call, "Multiply")
    value = call.constants[call.inputs[constants[0]]]
    if divides and not value.all():
        call.refuse("by zero", "use a divisor that is not zero")
    factor = (1.0 / value.astype(np.float64)).astype(value.dtype) if divides else value
    name = call.inputs[1 - constants[0]]
    stored = weaver.stored(call, name)
    whole = factor.size == 1 and factor.item() != 0
    if stored.exclusive and whole and weaver.draft.scale(stored.name, float(factor.item()), call.outputs[0]):
        return weaver.followed(call, replace(stored, name=call.outputs[0]))
    stored = weaver.draft.own_form(call, stored)
    moved_factor = constant_at(weaver, call, stored, factor)
    return in_place(weaver, call, name, lambda local: times(local, moved_factor[None]))


def by_inverse(weaver: Weaver, call: Call) -> Call:
    """A Div by an activation as a Mul by its reciprocal, which is looked up."""
    divisor = weaver.draft.own_form(call, weaver.stored(call, call.inputs[1]))
    table = {"op": "Table", "function": "Reciprocal", "alpha": 0.0, "beta": 0.0}
    fresh = weaver.draft.fresh(call.name, "inverse")
    name = weaver.draft.put(Node(fresh, (divisor.name,), fresh, table), weaver.draft.shapes[divisor.name])
    weaver.values[name] = replace(divisor, name=name, tensor=name, exclusive=False)
    return replace(call, operator="Mul", inputs=[call.inputs[0], name])


def combined(weaver: Weaver, call: Call, operator: str, negative: bool = False) -> Values:
    """Two activations, in the order in which the first one that is as large as the result lies."""
    names = list(call.inputs)
    if negative:
        names[1] = negated(weaver, call, names[1])
    operands = [weaver.stored(call, name) for name in names]
    operands.sort(key=lambda stored: stored.places.shape != call.output_shape)
    if operands[0].places.shape != call.output_shape:
        call.refuse("that widens both operands", "broadcast one of them only")
    if operator == "Add" and is_product_alike(weaver.draft, operands):
        operands.reverse()
    first = weaver.draft.own_form(call, operands[0])
    second = weaver.draft.aligned(call, first, operands[1])
    shape = weaver.draft.shapes[first.name]
    return weaver.written(call, [first.name, second], {"op": operator}, shape, first.places)


def is_product_alike(draft: Draft, operands: Sequence[Stored]) -> bool:
    """Whether only the second operand is a linear layer's result, and the first lies in its order in another shape.

    The sum then has that shape, so that nothing stands between it and the layer, which adds the other operand itself.
    """
    first, second = operands
    if first.places.shape != second.places.shape or draft.is_linear(first) or not draft.is_linear(second):
        return False
    whole = all(operand.whole(draft.size(operand)) for operand in operands)
    return whole and np.array_equal(first.places, second.places)
