"""Convolutions, pools and norms of volumes (channels, depth, height, width), by those of images.

The slices of a volume become one tall image, below each other, with rows between them that keep them apart; the
depth of a kernel becomes channels.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.rewrite.writer import Writer

VOLUME_AXES = 4


def listed(w: Writer, name: str, default: int, count: int = 3) -> list[int]:
    """A list of whole numbers among the attributes, one per axis."""
    return [int(value) for value in w.call.attributes.get(name, [default] * count)]


def pads_of(w: Writer, reach: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Padding in front of the three axes, and then behind them."""
    mode = w.call.attributes.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        return listed(w, "pads", 0, 6)
    if mode == "VALID":
        return [0] * 6
    sizes = zip(w.shape[1:], reach, stride, strict=True)
    total = [max((math.ceil(length / step) - 1) * step + span - length, 0) for length, span, step in sizes]
    less, more = [t // 2 for t in total], [t - t // 2 for t in total]
    return [*less, *more] if mode == "SAME_UPPER" else [*more, *less]


def taps(w: Writer, x: str, starts: Sequence[int], count: int, step: int) -> str:
    """Write `count` slices of (channels, depth, rest) from each of `starts` on, as (channels, starts, count * rest)."""
    parts = [w.slice(x, 1, start, start + (count - 1) * step + 1, step) for start in starts]
    flat = [w.put("Reshape", part, w.numbers(0, w.shape[0], 1, -1)) for part in parts]
    return flat[0] if len(flat) == 1 else w.put("Concat", *flat, axis=2)


def convolution(w: Writer) -> str:
    """Conv of a volume: one convolution of a tall image with a channel per channel and depth of the kernel."""
    weight = w.call.required(1, "weight")
    channels, depth, height, width = w.shape
    stride, dilation = listed(w, "strides", 1), listed(w, "dilations", 1)
    outputs, _, *kernel = weight.shape
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = pads_of(w, reach, stride)
    front, back = pads[:3], pads[3:]
    _, slices, rows, columns = w.call.output_shape
    tall = math.ceil(max(front[1] + height + back[1], 1) / stride[1]) * stride[1]
    wide = front[2] + width + back[2]
    below = tall - front[1] - height
    image = w.pad(w.reshape(w.x, channels * depth, height, width), [0, *front[1:]], [0, below, back[2]])
    stack = w.pad(w.reshape(image, channels, depth, tall * wide), [0, front[0], 0], [0, back[0], 0])
    starts = [index * dilation[0] for index in range(kernel[0])]
    joined = taps(w, stack, starts, slices, stride[0])
    image = w.reshape(joined, channels * kernel[0], slices * tall, wide)
    flat = w.constant(weight.reshape(outputs, -1, *kernel[1:]))
    end = max(reach[1] - stride[1], 0)
    attributes = {"strides": stride[1:], "dilations": dilation[1:], "pads": [0, 0, end, 0]}
    made = w.put("Conv", image, flat, *w.call.inputs[2:], **attributes, group=int(w.call.attributes.get("group", 1)))
    steps = tall // stride[1]
    have = (slices * tall + end - reach[1]) // stride[1] + 1
    whole = cropped(w, made, have, (outputs, slices, steps, columns))
    kept = whole if rows == steps else w.slice(whole, 1, 0, rows)
    return w.reshape(kept, *w.call.output_shape)


def cropped(w: Writer, made: str, have: int, lengths: Sequence[int]) -> str:
    """(outputs, have, columns) with as many rows as slices have together, as (outputs * slices, steps, columns)."""
    outputs, slices, steps, columns = lengths
    want = slices * steps
    if have > want:
        made = w.slice(made, 1, 0, want)
    elif have < want:
        made = w.pad(made, [0, 0, 0], [0, want - have, 0])
    return w.reshape(made, outputs * slices, steps, columns)


def transposed_convolution(w: Writer) -> str:
    """ConvTranspose of a volume: the slices between two become channels of a transposed one of a tall image."""
    weight, bias = w.call.required(1, "weight"), w.call.constant(2, "bias")
    if "output_shape" in w.call.attributes or w.call.attributes.get("auto_pad", "NOTSET") != "NOTSET":
        w.call.refuse("of volumes with output_shape or auto_pad", "give explicit `pads`")
    channels, depth, height, width = w.shape
    stride, dilation, front = listed(w, "strides", 1), listed(w, "dilations", 1), listed(w, "pads", 0, 6)[:3]
    outputs, slices, rows, columns = w.call.output_shape
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    tap, steps = math.ceil(reach[0] / stride[0]), math.ceil((front[0] + slices) / stride[0])
    behind = max(steps - depth, 0)
    stack = w.pad(w.reshape(w.x, channels, depth, height * width), [0, tap - 1, 0], [0, behind, 0])
    joined = taps(w, stack, [tap - 1 - index for index in range(tap)], steps, 1)
    tall = math.ceil(max(front[1] + rows, (height - 1) * stride[1] + reach[1]) / stride[1])
    image = w.reshape(joined, channels * tap * steps, height, width)
    image = w.reshape(w.pad(image, [0, 0, 0], [0, tall - height, 0]), channels * tap, steps * tall, width)
    inputs = [image, w.constant(by_phase(weight, stride[0], dilation[0], tap))]
    if bias is not None:
        inputs.append(w.constant(np.repeat(bias, stride[0])))
    last = (width - 1) * stride[2] + reach[2]
    made = w.put(
        "ConvTranspose",
        *inputs,
        strides=stride[1:],
        dilations=dilation[1:],
        group=int(w.call.attributes.get("group", 1)),
    )
    lengths = (outputs * stride[0], steps, tall * stride[1], last)
    spread = cropped(w, made, (steps * tall - 1) * stride[1] + reach[1], lengths)
    spread = framed(w, spread, front[1:], (rows, columns), lengths[2:])
    moved = w.permute(spread, (outputs, stride[0], steps, rows * columns), (0, 2, 1, 3)) if stride[0] > 1 else spread
    volume = w.reshape(moved, outputs, steps * stride[0], rows * columns)
    return w.reshape(w.slice(volume, 1, front[0], front[0] + slices), *w.call.output_shape)


def framed(w: Writer, x: str, front: Sequence[int], lengths: Sequence[int], have: Sequence[int]) -> str:
    """Rows and columns of (slices, rows, columns) from `front` on, zeros where there are no more."""
    for axis, (start, length, size) in enumerate(zip(front, lengths, have, strict=True)):
        missing = max(start + length - size, 0)
        x = w.pad(x, [0, 0, 0], [missing if other == axis + 1 else 0 for other in range(3)])
        if (start, length) != (0, size + missing):
            x = w.slice(x, axis + 1, start, start + length)
    return x


def by_phase(weight: NDArray[Any], stride: int, dilation: int, tap: int) -> NDArray[Any]:
    """The weights (channels * tap, outputs * stride, height, width), from (channels, outputs, depth, ...)."""
    channels, outputs, depth, *kernel = weight.shape
    wide = np.zeros((channels, outputs, tap * stride, *kernel), weight.dtype)
    wide[:, :, : (depth - 1) * dilation + 1 : dilation] = weight
    split = wide.reshape(channels, outputs, tap, stride, *kernel).transpose(0, 2, 1, 3, 4, 5)
    return np.ascontiguousarray(split.reshape(channels * tap, outputs * stride, *kernel))


def pool(w: Writer) -> str:
    """MaxPool or AveragePool of a volume: of its slices, and then along the depth."""
    channels, depth, height, width = w.shape
    _, slices, rows, columns = w.call.output_shape
    per_axis = {name: listed(w, name, 1) for name in ("kernel_shape", "strides", "dilations")}
    reach = [(k - 1) * d + 1 for k, d in zip(per_axis["kernel_shape"], per_axis["dilations"], strict=True)]
    pads = pads_of(w, reach, per_axis["strides"])
    same = {k: v for k, v in w.call.attributes.items() if k in ("ceil_mode", "count_include_pad")}
    if all(d == 1 for d in per_axis["dilations"]):
        del per_axis["dilations"]
    inside = {name: values[1:] for name, values in per_axis.items()} | {"pads": [*pads[1:3], *pads[4:]]}
    along = {name: [values[0], 1] for name, values in per_axis.items()} | {"pads": [pads[0], 0, pads[3], 0]}
    flat = w.put(w.call.operator, w.reshape(w.x, channels * depth, height, width), **same, **inside)
    deep = w.put(w.call.operator, w.reshape(flat, channels, depth, rows * columns), **same, **along)
    return w.reshape(deep, channels, slices, rows, columns)


def batch_normalization(w: Writer) -> str:
    """BatchNormalization of a volume, as of an image."""
    channels, depth, height, width = w.shape
    image = w.reshape(w.x, channels, depth * height, width)
    return w.reshape(w.put("BatchNormalization", image, *w.call.inputs[1:], **w.call.attributes), *w.shape)
