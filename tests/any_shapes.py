"""Random arrangements of a tensor's elements: parts, other orders and shapes, padding, several tensors side by side."""

import numpy as np
from any_growth import AnyGrowth


def some_axis(growth: AnyGrowth) -> int:
    """An axis behind the batch."""
    return growth.upto(growth.rank)


def with_axis(growth: AnyGrowth, axis: int, size: int) -> tuple[int, ...]:
    """The shape with another size of one axis."""
    return tuple(size if index == axis - 1 else length for index, length in enumerate(growth.shape))


def part(growth: AnyGrowth) -> None:
    """Part of one or two axes, with steps, forwards or backwards."""
    if growth.opset < 10:
        return
    axes = sorted({some_axis(growth), some_axis(growth)})
    starts, ends, steps, shape = [], [], [], growth.shape
    for axis in axes:
        length = growth.shape[axis - 1]
        start = growth.upto(length - 1, 0)
        end = growth.upto(length, start + 1)
        step = growth.pick([1, 1, 1, 2, 3])
        count = -(-(end - start) // step)
        shape = tuple(count if index == axis - 1 else size for index, size in enumerate(shape))
        if growth.maybe(0.15):
            last = start + (count - 1) * step
            starts, ends, steps = [*starts, last], [*ends, start - 1 if start else -length - 1], [*steps, -step]
        else:
            whole = end == length and growth.maybe()
            starts, ends, steps = [*starts, start], [*ends, 2**31 - 1 if whole else end], [*steps, step]
    values = (starts, ends, axes, steps)
    growth.add("Slice", *(growth.constant(np.array(value, np.int64)) for value in values), shape=shape)


def parts(growth: AnyGrowth) -> None:
    """Two or three parts of an axis, one of which is a result or both joined the other way round."""
    axis = some_axis(growth)
    length = growth.shape[axis - 1]
    if length < 2 or growth.opset < 13:
        return
    first = growth.upto(length - 1)
    other = f"rest{len(growth.network.nodes)}"
    sizes = growth.constant(np.array([first, length - first]))
    growth.add("Split", sizes, axis=axis, outputs=[other], shape=with_axis(growth, axis, first))
    if growth.maybe(0.6):
        growth.add("Concat", inputs=[other, growth.last], axis=axis, shape=with_axis(growth, axis, length))
    elif growth.maybe():
        growth.go_to(other, with_axis(growth, axis, length - first))


def pick_some(growth: AnyGrowth) -> None:
    """Elements of an axis by constant places."""
    axis = some_axis(growth)
    length = growth.shape[axis - 1]
    if growth.maybe(0.3) and growth.rank > 1:
        shape = tuple(size for index, size in enumerate(growth.shape) if index != axis - 1)
        growth.add("Gather", growth.constant(np.array(growth.upto(length - 1, -length))), axis=axis, shape=shape)
        return
    low = -length if growth.opset >= 11 else 0
    places = [growth.upto(length - 1, low) for _ in range(growth.upto(5))]
    growth.add("Gather", growth.constant(np.array(places)), axis=axis, shape=with_axis(growth, axis, len(places)))


def turned(growth: AnyGrowth) -> None:
    """Another order of the axes."""
    order = [int(axis) for axis in growth.random.permutation(growth.rank)]
    shape = tuple(growth.shape[axis] for axis in order)
    growth.add("Transpose", perm=[0, *(axis + 1 for axis in order)], shape=shape)


def shaped(growth: AnyGrowth) -> None:
    """Another shape, of one to four axes."""
    left, sizes = int(np.prod(growth.shape)), []
    for _ in range(growth.upto(3, 0)):
        sizes.append(growth.pick([n for n in range(1, 13) if left % n == 0]))
        left //= sizes[-1]
    shape = (*sizes, left)
    given = [*shape]
    front = 0 if growth.batch == "N" or growth.maybe() else 1
    if growth.maybe():
        given[growth.upto(len(given)) - 1] = -1
    growth.add("Reshape", growth.constant(np.array([front, *given])), shape=shape)


def flat(growth: AnyGrowth) -> None:
    """One axis."""
    if growth.rank > 1:
        growth.add("Flatten", shape=(int(np.prod(growth.shape)),))


def squeezed(growth: AnyGrowth) -> None:
    """An axis of length one more, or less."""
    ones = [axis + 1 for axis, size in enumerate(growth.shape) if size == 1]
    if ones and growth.rank > 1:
        axis = growth.pick(ones)
        growth.axes("Squeeze", [axis], growth.shape[: axis - 1] + growth.shape[axis:])
    elif growth.rank < 4:
        axis = growth.upto(growth.rank + 1)
        growth.axes("Unsqueeze", [axis], (*growth.shape[: axis - 1], 1, *growth.shape[axis - 1 :]))


def repeated(growth: AnyGrowth) -> None:
    """Copies side by side."""
    if growth.maybe(0.4) and 1 in growth.shape:
        shape = tuple(growth.upto(4) if size == 1 else size for size in growth.shape)
        if growth.small(shape):
            growth.add("Expand", growth.constant(np.array([1, *shape])), shape=shape)
        return
    counts = [growth.pick([1, 1, 2, 3]) for _ in growth.shape]
    shape = tuple(n * size for n, size in zip(counts, growth.shape, strict=True))
    if growth.small(shape):
        growth.add("Tile", growth.constant(np.array([1, *counts])), shape=shape)


def padded(growth: AnyGrowth) -> None:
    """Zeros, another number, the border, or what is behind it, around."""
    mode = growth.pick(["constant", "constant", "reflect", "edge"])
    before, after = [], []
    for axis, size in enumerate(growth.shape):
        most = 0 if growth.rank > 1 and axis == 0 and growth.maybe(0.8) else 2
        most = min(most, size - 1) if mode == "reflect" else most
        before.append(growth.upto(most, 0))
        after.append(growth.upto(most, 0))
    shape = tuple(a + size + b for a, size, b in zip(before, growth.shape, after, strict=True))
    # onnxruntime reflects along three axes at most.
    if not growth.small(shape) or (growth.rank == 4 and mode != "constant"):
        return
    pads = [0, *before, 0, *after]
    if growth.opset < 11:
        growth.add("Pad", pads=pads, mode=mode, shape=shape)
        return
    names = [growth.constant(np.array(pads))]
    if mode == "constant" and growth.maybe(0.4):
        names.append(growth.constant(growth.pick([0.5, -1.0, 0.0])))
    growth.add("Pad", *names, mode=mode, shape=shape)


def blocks(growth: AnyGrowth) -> None:
    """Channels to positions or back."""
    if growth.rank != 3:
        return
    many, high, wide = growth.shape
    if many % 4 == 0 and growth.opset >= 11:
        mode = growth.pick(["DCR", "CRD"])
        growth.add("DepthToSpace", blocksize=2, mode=mode, shape=(many // 4, 2 * high, 2 * wide))
    elif high % 2 == 0 and wide % 2 == 0:
        growth.add("SpaceToDepth", blocksize=2, shape=(4 * many, high // 2, wide // 2))


def side_by_side(growth: AnyGrowth) -> None:
    """The tensor and others of its shape along an axis."""
    name, shape = growth.other()
    axis = some_axis(growth)
    names = [growth.last, name]
    if growth.maybe(0.3):
        names.append(growth.last)
    if growth.maybe(0.3) and growth.batch == 1:
        names.append(growth.constant(growth.floats(1, *shape)))
    names = [names[int(index)] for index in growth.random.permutation(len(names))]
    size = with_axis(growth, axis, len(names) * shape[axis - 1])
    if growth.small(size):
        growth.add("Concat", inputs=names, axis=axis, shape=size)


def class_token(growth: AnyGrowth) -> None:
    """A constant row in front, for as many examples as there are."""
    if growth.rank != 2 or growth.opset < 11:
        return
    rows, width = growth.shape
    token = growth.constant(growth.floats(1, 1, width))
    origin = growth.last
    if growth.batch == "N":
        network, key = growth.network, len(growth.network.nodes)
        network.add("Shape", name=f"size{key}")
        network.add("Gather", growth.constant(np.array([0])), axis=0, name=f"batch{key}")
        network.add("Concat", growth.constant(np.array([1, width])), axis=0, name=f"whole{key}")
        token = network.add("Expand", inputs=[token, network.last], name=f"token{key}").last
    growth.add("Concat", inputs=[token, origin], axis=1, shape=(rows + 1, width))
    growth.earlier[-1] = (origin, (rows, width))


def nothing(growth: AnyGrowth) -> None:
    """An operator that does nothing at inference."""
    growth.add(growth.pick(["Identity", "Dropout"]))


SHAPES_KINDS = {
    "part": part,
    "parts": parts,
    "gather": pick_some,
    "turned": turned,
    "shaped": shaped,
    "flat": flat,
    "squeezed": squeezed,
    "repeated": repeated,
    "padded": padded,
    "blocks": blocks,
    "side by side": side_by_side,
    "class token": class_token,
    "nothing": nothing,
}
