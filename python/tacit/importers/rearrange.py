"""Converters of operators that move elements: slices, transpositions, concatenations, shapes, means."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Call, Operation, Shape
from tacit.importers.source import MOST_AXES, Node


def places(shape: Shape) -> NDArray[np.int64]:
    """The position of each element of a tensor, to be rearranged as the tensor is."""
    return np.arange(np.prod(shape), dtype=np.int64).reshape(shape)


def view(call: Call, elements: NDArray[np.int64], total: int) -> Operation:
    """The operation that shows `elements` (positions in a tensor of `total` values) in their shape."""
    shape = elements.shape or (1,)
    if len(shape) > MOST_AXES:
        call.refuse(f"gives a tensor of shape {list(shape)} per example", f"at most {MOST_AXES} axes are possible")
    if elements.size == total and (elements.ravel() == np.arange(total)).all():
        return {"op": "Reshape", "shape": list(shape)}
    start = int(elements.flat[0])
    strides = [int(np.take(elements, 1, k).flat[0]) - start if n > 1 else 0 for k, n in enumerate(elements.shape)]
    if min(strides, default=0) < 0:
        call.refuse("with a negative step", "use positive steps")
    return {"op": "View", "shape": list(shape), "start": start, "strides": strides or [0]}


def transposed(rows: int, columns: int) -> Operation:
    """A matrix of `rows` rows, turned."""
    return {"op": "View", "shape": [columns, rows], "start": 0, "strides": [1, columns]}


def axis_of(call: Call, axis: int, rank: int) -> int:
    """`axis` of a tensor of `rank` axes without batch; the batch itself is refused."""
    axis = axis + rank + 1 if axis < 0 else axis
    if axis == 0:
        call.refuse("along the batch", "keep the batch apart")
    return axis - 1


def integers(call: Call, attribute: str, index: int) -> list[int] | None:
    """A list that older opsets have as an attribute and newer ones as a constant input."""
    if attribute in call.attributes:
        return [int(value) for value in call.attributes[attribute]]
    value = call.constant(index, attribute)
    return None if value is None else [int(v) for v in value.ravel()]


def flatten(call: Call) -> Operation:
    """Flatten of everything but the batch."""
    rank = len(call.shapes[call.activation(0)]) + 1
    axis = int(call.attributes.get("axis", 1))
    if axis % rank != 1:
        call.refuse(f"with axis={axis}", "use axis=1, which keeps the batch apart")
    return reshaped(call)


def reshape(call: Call) -> Operation:
    """Reshape to a constant shape that keeps the batch apart."""
    call.required(1, "shape")
    return reshaped(call)


def reshaped(call: Call) -> Operation:
    """Squeeze, Unsqueeze and others that keep the order of the elements."""
    elements = places(call.shapes[call.activation(0)])
    return view(call, elements.reshape(call.output_shape), elements.size)


def transpose(call: Call) -> Operation:
    """Transpose with the batch in front."""
    elements = places(call.shapes[call.activation(0)])
    order = list(call.attributes.get("perm", reversed(range(elements.ndim + 1))))
    if order[0] != 0:
        call.refuse(f"with perm={order}", "keep the batch in front")
    return view(call, elements.transpose([axis - 1 for axis in order[1:]]), elements.size)


def slice_(call: Call) -> Operation:
    """Slice with constant bounds and positive steps."""
    elements = places(call.shapes[call.activation(0)])
    starts, ends = integers(call, "starts", 1), integers(call, "ends", 2)
    if starts is None or ends is None:
        call.refuse("without bounds", "give it constant bounds")
    axes = integers(call, "axes", 3) or list(range(len(starts)))
    steps = integers(call, "steps", 4) or [1] * len(starts)
    cut = [slice(None)] * elements.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 1:
            call.refuse("with a negative step", "use positive steps")
        if axis == 0 and start == 0 and end > 0 and step == 1:
            continue
        cut[axis_of(call, axis, elements.ndim)] = slice(start, end, step)
    return view(call, elements[tuple(cut)], elements.size)


def split(call: Call) -> list[Node]:
    """Split into parts along an axis."""
    elements = places(call.shapes[call.activation(0)])
    axis = axis_of(call, int(call.attributes.get("axis", 0)), elements.ndim)
    nodes, start = [], 0
    for index, output in enumerate(call.outputs):
        length = call.shapes[output][axis]
        part = np.take(elements, range(start, start + length), axis)
        nodes.append(Node(f"{call.name}.{index}", (call.inputs[0],), output, view(call, part, elements.size)))
        start += length
    return nodes


def concat(call: Call) -> Operation | list[Node]:
    """Concat along any axis; others than the first are turned to the front before and back after."""
    shape = call.output_shape
    axis = axis_of(call, int(call.attributes["axis"]), len(shape))
    inputs = [call.activation(index) for index in range(len(call.inputs))]
    if axis == 0:
        return {"op": "Concat"}
    turned = []
    for index, name in enumerate(inputs):
        elements = places(call.shapes[name])
        turned.append(call.step(f"turned{index}", [name], view(call, np.moveaxis(elements, axis, 0), elements.size)))
    joined = call.step("joined", [node.output for node in turned], {"op": "Concat"})
    front = (shape[axis], *shape[:axis], *shape[axis + 1 :])
    elements = places(front)
    back = call.last([joined.output], view(call, np.moveaxis(elements, 0, axis), elements.size))
    return [*turned, joined, back]


def pad(call: Call) -> Operation:
    """Pad with zeros, the batch left alone."""
    if call.attributes.get("mode", "constant") != "constant":
        call.refuse(f"with mode={call.attributes['mode']}", "pad with zeros")
    value = call.constant(2, "value")
    if call.attributes.get("value", 0.0) != 0 or (value is not None and value.any()):
        call.refuse("with a value other than 0", "pad with zeros")
    rank = len(call.shapes[call.activation(0)])
    pads = integers(call, "pads", 1) or [0] * (2 * rank + 2)
    axes = integers(call, "axes", 3) or list(range(rank + 1))
    before, after = [0] * rank, [0] * rank
    for index, axis in enumerate(axes):
        ends = pads[index], pads[index + len(axes)]
        if min(ends) < 0:
            call.refuse("with negative pads", "use Slice to cut")
        if any(ends):
            place = axis_of(call, axis, rank)
            before[place], after[place] = ends
    return {"op": "Pad", "before": before, "after": after}


def reduce_mean(call: Call) -> list[Node]:
    """ReduceMean over neighbouring axes: an average pool over them as one axis."""
    shape = call.shapes[call.activation(0)]
    axes = integers(call, "axes", 1) or list(range(1, len(shape) + 1))
    inside = sorted(axis_of(call, axis, len(shape)) for axis in axes)
    first, last = inside[0], inside[-1]
    if inside != list(range(first, last + 1)):
        call.refuse(f"over axes {axes}", "reduce neighbouring axes")
    outer, count, inner = (int(np.prod(part)) for part in (shape[:first], shape[first : last + 1], shape[last + 1 :]))
    image = call.step("image", [call.inputs[0]], {"op": "Reshape", "shape": [outer, count, inner]})
    kernel = {"kernel": [count, 1], "stride": [1, 1], "padding": [0] * 4, "count_include_pad": True}
    mean = call.step("mean", [image.output], {"op": "AveragePool", **kernel})
    return [image, mean, call.last([mean.output], {"op": "Reshape", "shape": list(call.output_shape or (1,))})]


def expand(call: Call) -> Operation:
    """Expand to a constant shape: axes of length one, and new ones in front, repeat what is there."""
    call.required(1, "shape")
    have, shape = call.shapes[call.activation(0)], call.output_shape
    padded = places((1,) * (len(shape) - len(have)) + have)
    return view(call, np.broadcast_to(padded, shape), padded.size)


def broadcast(call: Call, names: Sequence[str]) -> tuple[list[Node], list[str]]:
    """Views that bring activations to the output's shape where they are smaller, and the names to read."""
    shape = call.output_shape
    nodes, read = [], []
    for index, name in enumerate(names):
        have = call.shapes[name]
        if have == shape:
            read.append(name)
            continue
        padded = places((1,) * (len(shape) - len(have)) + have)
        elements = np.broadcast_to(padded, shape)
        nodes.append(call.step(f"broadcast{index}", [name], view(call, elements, padded.size)))
        read.append(nodes[-1].output)
    return nodes, read


REARRANGING: Mapping[str, Callable[[Call], Any]] = {
    "Concat": concat,
    "Expand": expand,
    "Flatten": flatten,
    "Pad": pad,
    "ReduceMean": reduce_mean,
    "Reshape": reshape,
    "Slice": slice_,
    "Split": split,
    "Squeeze": reshaped,
    "Transpose": transpose,
    "Unsqueeze": reshaped,
}
