"""Operators that move or repeat elements, by rearrangements of three axes, concatenations and zeros."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tacit.importers.call import Shape
from tacit.importers.rearrange import axis_of, integers
from tacit.importers.rewrite.writer import Writer

EXPANDED_SINCE = 8
"""The opset since which there is Expand."""
MOST_PIECES = 64
"""Evenly spaced runs of which a choice of elements may be put together."""


def depth_to_space(w: Writer) -> str:
    """DepthToSpace: blocks of channels become blocks of positions."""
    block, (channels, height, width) = int(w.call.attributes["blocksize"]), w.shape
    rest = channels // block**2
    if w.call.attributes.get("mode", "DCR") == "CRD":
        moved = w.permute(w.x, (rest, block, block, height, width), (0, 3, 1, 4, 2))
    else:
        moved = w.permute(w.x, (block, block, rest, height, width), (2, 3, 0, 4, 1))
    return w.reshape(moved, rest, height * block, width * block)


def space_to_depth(w: Writer) -> str:
    """SpaceToDepth: blocks of positions become blocks of channels."""
    block, (channels, height, width) = int(w.call.attributes["blocksize"]), w.shape
    lengths = (channels, height // block, block, width // block, block)
    return w.reshape(w.permute(w.x, lengths, (2, 4, 0, 1, 3)), *w.call.output_shape)


def runs(indices: Sequence[int]) -> list[range]:
    """Indices as evenly spaced ranges that go up, the longest first."""
    found: list[range] = []
    place = 0
    while place < len(indices):
        start, end = indices[place], place + 1
        step = indices[end] - start if end < len(indices) else 1
        while step > 0 and end < len(indices) and indices[end] == start + (end - place) * step:
            end += 1
        found.append(range(start, start + (end - place - 1) * max(step, 1) + 1, max(step, 1)))
        place = end
    return found


def chosen(w: Writer, x: str, shape: Shape, axis: int, indices: Sequence[int]) -> str | None:
    """Write the elements of `x` at `indices` of an axis, None where that takes too many pieces."""
    length, count = shape[axis], len(indices)
    after = (*shape[:axis], count, *shape[axis + 1 :])
    if list(indices) == list(range(length)):
        return x
    repeats = count // length
    if count % length == 0 and list(indices) == np.repeat(np.arange(length), repeats).tolist():
        outer, inner = math.prod(shape[: axis + 1]), math.prod(shape[axis + 1 :])
        return w.reshape(repeated(w, x, outer, repeats, inner), *after)
    if count % length == 0 and list(indices) == list(range(length)) * repeats:
        outer, inner = math.prod(shape[:axis]), math.prod(shape[axis:])
        return w.reshape(repeated(w, x, outer, repeats, inner), *after)
    pieces = runs(indices)
    if len(pieces) > MOST_PIECES:
        pieces = both_ways(indices)
    if len(pieces) > MOST_PIECES:
        return None
    parts = [run(w, x, shape, axis, piece) for piece in pieces]
    return parts[0] if len(parts) == 1 else w.put("Concat", *parts, axis=axis + 1)


def both_ways(indices: Sequence[int]) -> list[range]:
    """Indices as evenly spaced ranges that go up, and others that go down by one."""
    found: list[range] = []
    for piece in runs(indices):
        down = found and len(piece) == 1 and piece[0] == found[-1][-1] - 1
        if down and (found[-1].step == -1 or len(found[-1]) == 1):
            found[-1] = range(found[-1][0], piece[0] - 1, -1)
        else:
            found.append(piece)
    return found


def run(w: Writer, x: str, shape: Shape, axis: int, piece: range) -> str:
    """Write the elements of `x` at evenly spaced places of an axis, upwards or down by one."""
    if piece.step > 0:
        return w.slice(x, axis, piece[0], piece[-1] + 1, piece.step)
    part = w.slice(x, axis, piece[-1], piece[0] + 1)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    return w.reshape(backwards(w, part, outer, len(piece), inner), *shape[:axis], len(piece), *shape[axis + 1 :])


def backwards(w: Writer, x: str, outer: int, length: int, inner: int) -> str:
    """(outer, length, inner) with the middle axis in reverse: both halves swapped, then each of them reversed."""
    if length < 2:
        return x
    half = length // 2
    rows = w.reshape(x, outer, length * inner)
    first, last = (w.slice(rows, 1, place * inner, (place + half) * inner) for place in (0, length - half))
    if length % 2 == 0:
        swapped = w.reshape(w.put("Concat", last, first, axis=2), 2 * outer, half * inner)
        return backwards(w, swapped, 2 * outer, half, inner)
    middle = w.slice(rows, 1, half * inner, (half + 1) * inner)
    ends = (w.reshape(backwards(w, end, outer, half, inner), outer, half * inner) for end in (last, first))
    turned_last, turned_first = ends
    return w.put("Concat", turned_last, middle, turned_first, axis=2)


def repeated(w: Writer, x: str, outer: int, times: int, inner: int) -> str:
    """(outer, inner) as (outer, times, inner)."""
    rows = w.reshape(x, outer, 1, inner)
    if w.opset < EXPANDED_SINCE:
        return w.put("Concat", *[rows] * times, axis=2)
    return w.put("Expand", rows, w.numbers(1, outer, times, inner))


def gather(w: Writer) -> str | None:
    """Gather of an activation by constant indices along an axis; single ones and even runs are left alone."""
    if w.call.inputs[0] in w.call.constants or w.call.inputs[1] not in w.call.constants:
        return None
    if w.call.inputs[0] not in w.call.shapes:
        return None
    index = w.call.required(1, "indices")
    if int(w.call.attributes.get("axis", 0)) in (0, -len(w.shape) - 1):
        return None
    axis = axis_of(w.call, int(w.call.attributes.get("axis", 0)), len(w.shape))
    indices = [int(i) % w.shape[axis] for i in index.ravel()]
    if len(runs(indices)) < 2:
        return None
    picked = chosen(w, w.x, w.shape, axis, indices)
    if picked is None:
        picked = w.along(w.x, w.shape, axis, np.eye(w.shape[axis], dtype=np.float32)[indices])
    return w.reshape(picked, *w.call.output_shape)


def slice_(w: Writer) -> str | None:
    """Slice with negative steps: elements are put together one by one."""
    steps = integers(w.call, "steps", 4)
    if not steps or min(steps) > 0 or w.x not in w.call.shapes:
        return None
    starts, ends = integers(w.call, "starts", 1), integers(w.call, "ends", 2)
    axes = integers(w.call, "axes", 3) or list(range(len(steps)))
    x, shape = w.x, list(w.shape)
    for axis, start, end, step in zip(axes, starts or [], ends or [], steps, strict=True):
        place = axis_of(w.call, axis, len(shape))
        indices = list(range(shape[place])[slice(start, end, step)])
        picked = chosen(w, x, tuple(shape), place, indices)
        x = picked or w.along(x, tuple(shape), place, np.eye(shape[place], dtype=np.float32)[indices])
        shape[place] = len(indices)
    return x


def pad(w: Writer) -> str | None:
    """Pad with another number than zero, with the border or what is behind it, and with less than nothing."""
    rank, mode = len(w.shape), w.call.attributes.get("mode", "constant")
    pads = integers(w.call, "pads", 1) or [0] * (2 * rank + 2)
    axes = integers(w.call, "axes", 3) or list(range(rank + 1))
    given = w.call.constant(2, "value")
    value = float(w.call.attributes.get("value", 0.0) if given is None or not given.size else given.item())
    if mode == "constant" and value == 0 and min(pads) >= 0:
        return None
    before, after = [0] * rank, [0] * rank
    for index, axis in enumerate(axes):
        ends = pads[index], pads[index + len(axes)]
        if any(ends):
            place = axis_of(w.call, axis, rank)
            before[place], after[place] = ends
    x, shape = w.x, list(w.shape)
    for axis, (front, back) in enumerate(zip(before, after, strict=True)):
        kept = range(max(-front, 0), shape[axis] - max(-back, 0))
        if mode != "constant":
            kept_indices = np.pad(np.array(kept), (max(front, 0), max(back, 0)), mode).tolist()
            picked = chosen(w, x, tuple(shape), axis, kept_indices)
            if picked is None:
                w.call.refuse(f"with mode={mode} of so many elements", "pad with fewer, or with zeros")
            x, shape[axis] = picked, len(kept_indices)
        elif len(kept) < shape[axis]:
            x, shape[axis] = w.slice(x, axis, kept[0], kept[-1] + 1), len(kept)
    if mode != "constant":
        return x
    moved = x if value == 0 else w.put("Sub", x, w.number(value))
    padded = w.pad(moved, [max(p, 0) for p in before], [max(p, 0) for p in after])
    return padded if value == 0 else w.put("Add", padded, w.number(value))


def concat(w: Writer) -> str | None:
    """Concat with constants: zeros in their place, and their sum."""
    names = list(w.call.inputs)
    activations = [name for name in names if name not in w.call.constants]
    if len(activations) == len(names) or any(name not in w.call.shapes for name in activations):
        return None
    shape = w.call.output_shape
    axis = axis_of(w.call, int(w.call.attributes["axis"]), len(shape))
    total = np.zeros((1, *shape), np.float32)
    place, start, parts = 0, 0, []
    for name in names:
        if name in w.call.constants:
            value = w.call.constants[name]
            length = value.shape[axis + 1]
            total[(slice(None),) * (axis + 1) + (slice(place, place + length),)] = value
        else:
            length = w.call.shapes[name][axis]
            parts.append((name, place - start))
            start = place + length
        place += length
    pieces = []
    for index, (name, front) in enumerate(parts):
        back = shape[axis] - start if index == len(parts) - 1 else 0
        ends = [[amount if other == axis else 0 for other in range(len(shape))] for amount in (front, back)]
        pieces.append(w.pad(name, *ends))
    joined = pieces[0] if len(pieces) == 1 else w.put("Concat", *pieces, axis=axis + 1)
    return w.put("Add", joined, w.constant(total))


ARRANGEMENTS: Mapping[str, Callable[[Writer], str | None]] = {
    "Concat": concat,
    "DepthToSpace": depth_to_space,
    "Gather": gather,
    "Pad": pad,
    "Slice": slice_,
    "SpaceToDepth": space_to_depth,
}
