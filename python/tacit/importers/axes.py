"""Converters of concatenations, pads and means of tensors with any number of axes, the first perhaps no batch."""

import math

import numpy as np

from tacit.importers.call import Call
from tacit.importers.layout import Stored, in_order
from tacit.importers.rearrange import integers
from tacit.importers.source import MOST_AXES
from tacit.importers.weaver import Values, Weaver


def usual(weaver: Weaver, call: Call) -> bool:
    """Whether all activations of a node have a batch of one and no more axes than the engine has."""
    names = [name for name in (*call.inputs, call.outputs[0]) if name and name not in call.constants]
    sizes = [weaver.sizes[name] for name in names]
    return all(size[:1] == (1,) and len(size) <= MOST_AXES + 1 for size in sizes)


def concat(weaver: Weaver, call: Call) -> Values:
    """Concat: each operand with the joined axis first, which is how the result lies."""
    size = weaver.sizes[call.outputs[0]]
    axis = int(call.attributes["axis"]) % len(size)
    read = []
    for name in call.inputs:
        stored = weaver.stored(call, name)
        places = np.moveaxis(stored.places, axis, 0)
        read.append(weaver.draft.arranged(call, stored, places.reshape(len(places), -1)))
    rest = size[:axis] + size[axis + 1 :]
    result = np.moveaxis(in_order((size[axis], *rest)), 0, axis)
    return weaver.written(call, read, {"op": "Concat"}, (size[axis], math.prod(rest)), result)


def reduce_mean(weaver: Weaver, call: Call) -> Values:
    """ReduceMean over neighbouring axes: an average pool over them as one axis."""
    stored = weaver.stored(call, call.inputs[0])
    shape = stored.places.shape
    inside = sorted(axis % len(shape) for axis in integers(call, "axes", 1) or range(len(shape)))
    first, last = inside[0], inside[-1]
    if inside != list(range(first, last + 1)):
        call.refuse(f"over axes {inside}", "reduce neighbouring axes")
    outer, count, inner = (math.prod(part) for part in (shape[:first], shape[first : last + 1], shape[last + 1 :]))
    read = weaver.draft.arranged(call, stored, stored.places.reshape(outer, count, inner))
    kernel = {"kernel": [count, 1], "stride": [1, 1], "padding": [0] * 4, "count_include_pad": True}
    places = in_order(weaver.sizes[call.outputs[0]])
    return weaver.written(call, [read], {"op": "AveragePool", **kernel}, (outer, 1, inner), places)


def pad(weaver: Weaver, call: Call) -> Values:
    """Pad with zeros: one axis after another, each between what lies before it and what lies behind."""
    shape = weaver.sizes[call.inputs[0]]
    rank, amounts = len(shape), integers(call, "pads", 1) or []
    axes = [axis % rank for axis in integers(call, "axes", 3) or range(rank)]
    wide = {axis: (amounts[k], amounts[k + len(axes)]) for k, axis in enumerate(axes) if amounts}
    wide = {axis: ends for axis, ends in wide.items() if any(ends)}
    value = call.constant(2, "value")
    zeros = call.attributes.get("mode", "constant") == "constant" and (value is None or not value.any())
    if not zeros or not wide or min(min(ends) for ends in wide.values()) < 0:
        call.refuse(f"of a tensor of shape {list(shape)} in this way", "pad with zeros, and with at least one")
    stored, size = weaver.stored(call, call.inputs[0]), list(shape)
    *_, last = wide
    for axis, (before, after) in wide.items():
        outer, inner = math.prod(size[:axis]), math.prod(size[axis + 1 :])
        read = weaver.draft.arranged(call, stored, stored.places.reshape(outer, size[axis], inner))
        size[axis] += before + after
        form, operation = (outer, size[axis], inner), {"op": "Pad", "before": [0, before, 0], "after": [0, after, 0]}
        if axis == last:
            break
        stored = Stored(weaver.draft.local(read, "pad", operation, form), in_order(size), stored.tensor)
    return weaver.written(call, [read], operation, form, in_order(size))
