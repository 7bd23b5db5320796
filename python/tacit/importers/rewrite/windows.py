"""Convolutions and pools: those along one axis, those at odd borders, and transposed ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.operators import padding
from tacit.importers.rewrite import volumes
from tacit.importers.rewrite.volumes import VOLUME_AXES
from tacit.importers.rewrite.writer import Writer

IMAGE_AXES = 3


def listed(w: Writer, name: str, default: int, count: int) -> list[int]:
    """A list of whole numbers among the attributes, one per axis."""
    return [int(value) for value in w.call.attributes.get(name, [default] * count)]


def flat(w: Writer, weight: NDArray[Any] | None = None) -> str:
    """The node on an image with a height of one, for one on a row."""
    channels, length = w.shape
    one_more = {"kernel_shape": [1], "strides": [1], "dilations": [1], "output_padding": [0], "output_shape": [1]}
    attributes = dict(w.call.attributes)
    for name, front in one_more.items():
        if name in attributes:
            attributes[name] = [*front, *attributes[name]]
    if "pads" in attributes:
        before, after = attributes["pads"]
        attributes["pads"] = [0, before, 0, after]
    inputs = [w.reshape(w.x, channels, 1, length), *w.call.inputs[1:]]
    if weight is not None:
        inputs[1] = w.constant(weight[:, :, None, :])
    image = w.put(w.call.operator, *inputs, **attributes)
    return w.reshape(image, *w.call.output_shape)


def convolution(w: Writer) -> str | None:
    """Conv along one axis or three."""
    weight = w.call.required(1, "weight")
    if len(w.shape) == VOLUME_AXES and weight.ndim == VOLUME_AXES + 1:
        return volumes.convolution(w)
    return flat(w, weight) if weight.ndim == IMAGE_AXES and len(w.shape) == IMAGE_AXES - 1 else None


def batch_normalization(w: Writer) -> str | None:
    """BatchNormalization of channels along one axis or three."""
    if len(w.shape) == VOLUME_AXES:
        return volumes.batch_normalization(w)
    return flat(w) if len(w.shape) == IMAGE_AXES - 1 else None


def ends(w: Writer, reach: Sequence[int], stride: Sequence[int]) -> tuple[list[int], list[int]]:
    """The padding that a pool asks for, and the one with which rounding down gives as many windows."""
    pads = padding(w.call, w.shape[1:], reach, stride)
    sizes = zip(w.shape[1:], w.call.output_shape[1:], reach, stride, pads[:2], strict=True)
    needed = [max((count - 1) * step + span - size - before, 0) for size, count, span, step, before in sizes]
    whole = bool(w.call.attributes.get("ceil_mode", 0))
    return pads, [*pads[:2], *(needed if whole else pads[2:])]


def max_pool(w: Writer) -> str | None:
    """MaxPool along one axis, one with dilations, and one whose windows reach over the end."""
    if any(w.call.outputs[1:]):
        w.call.refuse("whose indices are used", "use its first output only")
    if len(w.shape) == IMAGE_AXES - 1:
        return flat(w)
    if len(w.shape) == VOLUME_AXES:
        return volumes.pool(w)
    if len(w.shape) != IMAGE_AXES:
        return None
    if any(d != 1 for d in w.call.attributes.get("dilations", [])):
        return dilated_max_pool(w)
    if not w.call.attributes.get("ceil_mode", 0):
        return None
    kernel, stride = (listed(w, name, 1, 2) for name in ("kernel_shape", "strides"))
    _, pads = ends(w, kernel, stride)
    return w.put("MaxPool", w.x, kernel_shape=kernel, strides=stride, pads=pads)


def dilated_max_pool(w: Writer) -> str:
    """MaxPool whose windows have gaps: along each axis the largest of shifted copies."""
    kernel, stride, dilation = (listed(w, name, 1, 2) for name in ("kernel_shape", "strides", "dilations"))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    before = padding(w.call, w.shape[1:], reach, stride)
    x, shape = w.x, list(w.shape)
    for axis, (taps, step, gap) in enumerate(zip(kernel, stride, dilation, strict=True)):
        starts = np.arange(w.call.output_shape[axis + 1])[:, None] * step - before[axis]
        places = starts + np.arange(taps) * gap
        inside = (places >= 0) & (places < shape[axis + 1])
        if not inside.any(axis=1).all():
            w.call.refuse("with windows of padding alone", "use less padding")
        # Padding is never the largest: another element of the window stands for it.
        first = np.take_along_axis(places, inside.argmax(axis=1)[:, None], axis=1)
        places = np.where(inside, places, first)
        shape[axis + 1] = len(places)
        moved = [w.put("Gather", x, w.numbers(*tap), axis=axis + 2) for tap in places.T.tolist()]
        rows = [w.reshape(tap, 1, math.prod(shape)) for tap in moved]
        stacked = rows[0] if taps == 1 else w.put("Concat", *rows, axis=1)
        pooled = w.put("MaxPool", w.reshape(stacked, 1, taps, math.prod(shape)), kernel_shape=[taps, 1])
        x = w.reshape(pooled, *shape)
    return x


def average_pool(w: Writer) -> str | None:
    """AveragePool along one axis, one that does not count padding, with dilations, or with windows over the end.

    Where windows have fewer elements at the border, the mean of all is multiplied by a constant per position.
    """
    if len(w.shape) == IMAGE_AXES - 1:
        return flat(w)
    if len(w.shape) == VOLUME_AXES:
        return volumes.pool(w)
    if len(w.shape) != IMAGE_AXES:
        return None
    kernel, stride, dilation = (listed(w, name, 1, 2) for name in ("kernel_shape", "strides", "dilations"))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    asked, pads = ends(w, reach, stride)
    counted = bool(w.call.attributes.get("count_include_pad", 0))
    plain = not w.call.attributes.get("ceil_mode", 0) and (counted or not any(asked)) and dilation == [1, 1]
    if plain:
        return None
    if dilation == [1, 1]:
        mean = w.put("AveragePool", w.x, kernel_shape=kernel, strides=stride, pads=pads, count_include_pad=1)
    else:
        channels = w.shape[0]
        weight = w.constant(np.full((channels, 1, *kernel), 1 / math.prod(kernel), np.float32))
        mean = w.put("Conv", w.x, weight, strides=stride, pads=pads, dilations=dilation, group=channels)
    axes = []
    for axis, (size, count) in enumerate(zip(w.shape[1:], w.call.output_shape[1:], strict=True)):
        before, after = (asked[axis], asked[axis + 2]) if counted else (0, 0)
        starts = np.arange(count)[:, None] * stride[axis] - asked[axis]
        taps = starts + np.arange(kernel[axis]) * dilation[axis]
        axes.append(kernel[axis] / ((taps >= -before) & (taps < size + after)).sum(axis=1))
    factor = np.outer(*axes).astype(np.float32)
    return mean if (factor == 1).all() else w.put("Mul", mean, w.constant(factor[None, None]))


def global_average_pool(w: Writer) -> str | None:
    """GlobalAveragePool of anything but images."""
    if len(w.shape) == IMAGE_AXES:
        return None
    return w.mean(w.x, *range(1, len(w.shape)))


def global_max_pool(w: Writer) -> str:
    """GlobalMaxPool: a pool as large as what it reads."""
    channels, rest = w.shape[0], math.prod(w.shape[1:])
    pooled = w.put("MaxPool", w.reshape(w.x, channels, rest, 1), kernel_shape=[rest, 1])
    return w.reshape(pooled, *w.call.output_shape)


def transposed_convolution(w: Writer) -> str:
    """ConvTranspose: a convolution that gives the elements between two inputs as channels, which are then spread."""
    weight, bias = w.call.required(1, "weight"), w.call.constant(2, "bias")
    if len(w.shape) == IMAGE_AXES - 1 and weight.ndim == IMAGE_AXES:
        return flat(w, weight)
    if len(w.shape) == VOLUME_AXES and weight.ndim == VOLUME_AXES + 1:
        return volumes.transposed_convolution(w)
    if len(w.shape) != IMAGE_AXES or weight.ndim != IMAGE_AXES + 1:
        w.call.refuse("with more than three spatial dimensions", "use layers of up to three")
    stride, dilation = listed(w, "strides", 1, 2), listed(w, "dilations", 1, 2)
    groups = int(w.call.attributes.get("group", 1))
    weight = stretched(weight, dilation)
    begin, reach = cut(w, weight.shape[2:], stride)
    taps = [math.ceil(k / s) for k, s in zip(weight.shape[2:], stride, strict=True)]
    steps = [math.ceil(length / s) for length, s in zip(reach, stride, strict=True)]
    kernel = phases(weight, stride, taps, groups)
    inputs = [w.x, w.constant(kernel)]
    if bias is not None:
        inputs.append(w.constant(np.repeat(bias, math.prod(stride))))
    after = [step - size for step, size in zip(steps, w.shape[1:], strict=True)]
    before = [tap - 1 for tap in taps]
    wide = [max(a, 0) for a in after]
    if any(amount >= tap for amount, tap in zip(wide, taps, strict=True)):
        inputs[0] = w.pad(w.x, [0, *before], [0, *wide])
        made = w.put("Conv", *inputs, group=groups)
    else:
        made = w.put("Conv", *inputs, pads=[*before, *wide], group=groups)
    made_steps = [size + amount for size, amount in zip(w.shape[1:], wide, strict=True)]
    channels = len(kernel) // math.prod(stride)
    spread = spaced(w, made, (channels, *stride, *made_steps))
    for axis, (start, length) in enumerate(zip(begin, w.call.output_shape[1:], strict=True)):
        if (start, length) != (0, made_steps[axis] * stride[axis]):
            spread = w.slice(spread, axis + 1, start, start + length)
    return spread


def stretched(weight: NDArray[Any], dilation: Sequence[int]) -> NDArray[Any]:
    """A kernel with zeros between its taps, so that it has no dilation."""
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    wide = np.zeros((*weight.shape[:2], *reach), weight.dtype)
    wide[:, :, :: dilation[0], :: dilation[1]] = weight
    return wide


def cut(w: Writer, kernel: Sequence[int], stride: Sequence[int]) -> tuple[list[int], list[int]]:
    """How much of the start of a full transposed convolution is left out, and how far its result reaches."""
    lengths, extra = w.call.output_shape[1:], listed(w, "output_padding", 0, 2)
    pads = [int(p) for p in w.call.attributes.get("pads", [0, 0, 0, 0])]
    mode = w.call.attributes.get("auto_pad", "NOTSET")
    begin = pads[:2]
    if "output_shape" in w.call.attributes or mode not in ("NOTSET", "VALID"):
        full = [(n - 1) * s + k + e for n, s, k, e in zip(w.shape[1:], stride, kernel, extra, strict=True)]
        total = [f - length for f, length in zip(full, lengths, strict=True)]
        if min(total) < 0:
            w.call.refuse("to an output_shape beyond its inputs", "use output_padding")
        begin = [t // 2 if mode != "SAME_LOWER" else t - t // 2 for t in total]
    return begin, [start + length for start, length in zip(begin, lengths, strict=True)]


def phases(weight: NDArray[Any], stride: Sequence[int], taps: Sequence[int], groups: int) -> NDArray[Any]:
    """The weights (out * strides, in / groups, taps) of the convolution, from those of a transposed one."""
    inputs, outputs, *kernel = weight.shape
    wide = np.zeros((inputs, outputs, *(t * s for t, s in zip(taps, stride, strict=True))), weight.dtype)
    wide[:, :, : kernel[0], : kernel[1]] = weight
    split = wide.reshape(groups, inputs // groups, outputs, taps[0], stride[0], taps[1], stride[1])[
        :, :, :, ::-1, :, ::-1, :
    ]
    ordered = split.transpose(0, 2, 4, 6, 1, 3, 5)
    return np.ascontiguousarray(ordered.reshape(-1, inputs // groups, *taps))


def spaced(w: Writer, x: str, lengths: Sequence[int]) -> str:
    """(channels * rows * columns, height, width), with rows and columns moved between height and width."""
    channels, rows, columns, height, width = lengths
    moved = w.permute(x, lengths, (0, 3, 1, 4, 2)) if rows * columns > 1 else x
    return w.reshape(moved, channels, height * rows, width * columns)


WINDOWS: Mapping[str, Callable[[Writer], str | None]] = {
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Conv": convolution,
    "ConvTranspose": transposed_convolution,
    "GlobalAveragePool": global_average_pool,
    "GlobalMaxPool": global_max_pool,
    "MaxPool": max_pool,
}
