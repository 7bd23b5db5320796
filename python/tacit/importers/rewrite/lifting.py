"""Nodes on tensors whose first axis is no batch of one, such as windows or heads: they get a batch in front.

A reshape puts an axis of length one in front, the node runs with its axes moved by one, and a reshape takes it off
again. What is written holds for a batch of one example.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Call, Shape
from tacit.importers.rearrange import integers
from tacit.importers.rewrite.writer import Writer

NORM_ROLES = ("scale", "bias", "mean", "variance")


def lifts(call: Call, sizes: Mapping[str, Shape]) -> bool:
    """Whether a node reads an activation without a batch of one, and is known to work with one in front."""
    if call.operator not in LIFTED or not call.outputs or call.outputs[0] not in sizes:
        return False
    given = [name for name in call.inputs if name and name not in call.constants]
    return all(name in sizes for name in given) and any(sizes[name][:1] != (1,) for name in given)


def lifted(w: Writer) -> str | None:
    """Write the node with a batch of one in front of all that it reads."""
    return LIFTED[w.call.operator](w)


def restored(w: Writer, result: str) -> str:
    """Write the result in the shape that the model has."""
    return w.put("Reshape", result, w.numbers(*w.sizes[w.call.outputs[0]]))


def moved(axis: int) -> int:
    """An axis, counted from the front or from the end, once there is one more in front."""
    return axis if axis < 0 else axis + 1


def along_axis(w: Writer, default: int | None = None) -> str:
    """A node with one axis among its attributes, on any number of activations."""
    axis = w.call.attributes.get("axis", default)
    attributes = {**w.call.attributes, **({} if axis is None else {"axis": moved(int(axis))})}
    return restored(w, w.put(w.call.operator, *fronted_inputs(w), **attributes))


def concat(w: Writer) -> str | None:
    """Concat with constants; of activations alone the importer needs no batch."""
    return along_axis(w) if any(name in w.call.constants for name in w.call.inputs) else None


def reduce_mean(w: Writer) -> str | None:
    """ReduceMean: over neighbouring axes the importer needs no batch."""
    rank = len(w.sizes[w.call.inputs[0]])
    axes = sorted(axis % rank for axis in integers(w.call, "axes", 1) or [])
    return reduction(w) if axes and axes != list(range(axes[0], axes[-1] + 1)) else None


def fronted_inputs(w: Writer) -> list[str]:
    """Every input with a batch in front; constants too where the node treats all inputs alike."""
    every = [w.call.constants[name].shape if name in w.call.constants else w.sizes[name] for name in w.call.inputs]
    rank = max(len(size) for size in every)
    names = []
    for name, size in zip(w.call.inputs, every, strict=True):
        if name in w.call.constants:
            value = w.call.constants[name]
            names.append(w.constant(value.reshape(*[1] * (rank + 1 - len(size)), *size)))
        else:
            names.append(w.fronted(name, rank))
    return names


def softmax(w: Writer) -> str | None:
    """Softmax: along the last axis the importer needs no batch."""
    size = w.sizes[w.call.inputs[0]]
    last = len(size) - 1
    axis = int(w.call.attributes.get("axis", -1 if w.opset >= SINGLE_SINCE else 1))
    return None if axis in (-1, last) and size[last] > 1 else along_axis(w, axis)


def layer_normalization(w: Writer) -> str | None:
    """LayerNormalization: over the last axis the importer needs no batch."""
    size = w.sizes[w.call.inputs[0]]
    axis = int(w.call.attributes.get("axis", -1))
    if axis in (-1, len(size) - 1) or any(w.call.outputs[1:]):
        return None
    attributes = {**w.call.attributes, "axis": moved(axis)}
    x = w.fronted(w.call.inputs[0])
    return restored(w, w.put("LayerNormalization", x, *w.call.inputs[1:], **attributes))


def reduction(w: Writer) -> str:
    """A sum, mean or extreme over axes, which are an attribute or an input; without any all are reduced."""
    size = w.sizes[w.call.inputs[0]]
    given = integers(w.call, "axes", 1)
    attributes = {name: value for name, value in w.call.attributes.items() if name != "axes"}
    x = w.fronted(w.call.inputs[0])
    if not given:
        if attributes.get("noop_with_empty_axes", 0):
            return w.put("Identity", w.call.inputs[0])
        given = list(range(len(size)))
    axes = [moved(axis) for axis in given]
    if "axes" in w.call.attributes or (len(w.call.inputs) < 2 and not listed(w)):
        result = w.put(w.call.operator, x, **attributes, axes=axes)
    else:
        result = w.put(w.call.operator, x, w.numbers(*axes), **attributes)
    return restored(w, result)


def listed(w: Writer) -> bool:
    """Whether the axes of this reduction are an input at the opset of the model."""
    return w.opset >= (SINGLE_SINCE if w.call.operator == "ReduceSum" else AXES_SINCE)


def cumulative(w: Writer) -> str:
    """CumSum, whose axis is an input."""
    axis = moved(int(w.call.required(1, "axis").item()))
    x = w.fronted(w.call.inputs[0])
    result = w.put("CumSum", x, w.constant(np.array(axis, np.int64)), **w.call.attributes)
    return restored(w, result)


def pad(w: Writer) -> str | None:
    """Pad of constant amounts."""
    size = w.sizes[w.call.inputs[0]]
    rank = len(size)
    amounts = integers(w.call, "pads", 1) or [0] * (2 * rank)
    axes = [axis % rank for axis in integers(w.call, "axes", 3) or range(rank)]
    before, after = [0] * (rank + 1), [0] * (rank + 1)
    for index, axis in enumerate(axes):
        before[axis + 1], after[axis + 1] = amounts[index], amounts[index + len(axes)]
    attributes = {name: value for name, value in w.call.attributes.items() if name != "pads"}
    x = w.fronted(w.call.inputs[0])
    if "pads" in w.call.attributes:
        result = w.put("Pad", x, **attributes, pads=[*before, *after])
    else:
        result = w.put("Pad", x, w.numbers(*before, *after), *w.call.inputs[2:3], **attributes)
    return restored(w, result)


def batch_normalization(w: Writer) -> str:
    """BatchNormalization: a factor and an addend per channel, which need no batch."""
    scale, bias, mean, variance = (
        w.call.required(index + 1, role).astype(np.float64) for index, role in enumerate(NORM_ROLES)
    )
    factor = scale / np.sqrt(variance + float(w.call.attributes.get("epsilon", 1e-5)))
    ones = [1] * (len(w.sizes[w.call.inputs[0]]) - 2)
    values: list[NDArray[Any]] = [factor, bias - mean * factor]
    first, second = (w.constant(value.astype(np.float32).reshape(-1, *ones)) for value in values)
    return w.put("Add", w.put("Mul", w.x, first), second)


def one_by_one(w: Writer) -> str | None:
    """A convolution or a pool of images that lie along the first axis: each by itself, put together again."""
    count, *size = w.sizes[w.call.inputs[0]]
    if count > MOST_IMAGES:
        w.call.refuse(f"of {count} images of one example", f"use at most {MOST_IMAGES}")
    stack = w.fronted(w.call.inputs[0])
    done = []
    for index in range(count):
        image = w.put("Reshape", w.slice(stack, 0, index, index + 1), w.numbers(1, *size))
        result = w.put(w.call.operator, image, *w.call.inputs[1:], **w.call.attributes)
        done.append(w.put("Reshape", result, w.numbers(1, 1, *w.sizes[w.call.outputs[0]][1:])))
    return restored(w, w.put("Concat", *done, axis=1))


SINGLE_SINCE, AXES_SINCE = 13, 18
"""Opsets since which a softmax is along one axis, and a reduction has its axes as an input."""
MOST_IMAGES = 64
"""Images of one example that are convolved one by one."""
LIFTED: Mapping[str, Callable[[Writer], str | None]] = {
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), along_axis),
    **dict.fromkeys(("ReduceL1", "ReduceMax", "ReduceMin", "ReduceSum"), reduction),
    **dict.fromkeys(("AveragePool", "Conv", "ConvTranspose", "GlobalAveragePool", "MaxPool"), one_by_one),
    "BatchNormalization": batch_normalization,
    "Concat": concat,
    "CumSum": cumulative,
    "LayerNormalization": layer_normalization,
    "Pad": pad,
    "ReduceMean": reduce_mean,
    "ReduceSumSquare": reduction,
    "Softmax": softmax,
}
"""Operators that get a batch in front, and how; those that need none in the importer give None."""
