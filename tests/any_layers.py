"""Random layers with weights, pools, resizes, norms, reductions, products, attention and recurrent cells."""

import numpy as np
from any_growth import AnyGrowth, channels, window
from recurrences import layer


def conv(growth: AnyGrowth) -> None:
    """A convolution along one, two or three axes."""
    found = window(growth) if growth.rank in (2, 3, 4) else None
    if found is None:
        return
    attributes, size = found
    inputs = growth.shape[0]
    groups = growth.pick([n for n in range(1, inputs + 1) if inputs % n == 0])
    outputs = groups * growth.upto(max(1, 8 // groups))
    if not growth.small((outputs, *size)):
        return
    names = [growth.constant(growth.network.normal(outputs, inputs // groups, *attributes["kernel_shape"]))]
    if growth.maybe():
        names.append(growth.constant(growth.floats(outputs, size=0.3)))
    growth.add("Conv", *names, shape=(outputs, *size), group=groups, **attributes)


def conv_transpose(growth: AnyGrowth) -> None:
    """A transposed convolution."""
    if growth.rank not in (2, 3, 4):
        return
    inputs, outputs = growth.shape[0], channels(growth)
    groups = growth.pick([n for n in range(1, inputs + 1) if inputs % n == 0 and outputs % n == 0])
    spatial = growth.rank - 1
    kernel = [growth.upto(4) for _ in range(spatial)]
    stride = [growth.upto(3) for _ in range(spatial)]
    extra = [growth.upto(s - 1, 0) if growth.maybe(0.3) else 0 for s in stride]
    pads = [growth.upto((k - 1) // 2, 0) for k in kernel] * 2
    size = tuple(
        s * (n - 1) + k - 2 * p + e
        for n, k, s, p, e in zip(growth.shape[1:], kernel, stride, pads, extra, strict=False)
    )
    if not growth.small((outputs, *size)):
        return
    names = [growth.constant(growth.network.normal(inputs, outputs // groups, *kernel))]
    if growth.maybe():
        names.append(growth.constant(growth.floats(outputs, size=0.3)))
    attributes = {"strides": stride, "pads": pads, "group": groups, "output_padding": extra}
    growth.add("ConvTranspose", *names, shape=(outputs, *size), **attributes)


def pool(growth: AnyGrowth) -> None:
    """Maxima or means of windows."""
    found = window(growth, pool=True) if growth.rank in (2, 3, 4) else None
    if found is None:
        return
    attributes, size = found
    kind = growth.pick(["MaxPool", "AveragePool"])
    if kind == "AveragePool" and "pads" in attributes:
        attributes["count_include_pad"] = growth.upto(1, 0)
    # onnxruntime gives another size than ONNX says where windows begin in the padding behind.
    if growth.opset >= 10 and growth.maybe(0.2) and "auto_pad" not in attributes:
        spans = zip(growth.shape[1:], attributes["kernel_shape"], attributes["strides"], strict=True)
        attributes["pads"] = [0] * len(attributes["pads"])
        size = tuple(-(-(n - k) // s) + 1 if n >= k else 0 for n, k, s in spans)
        if min(size) < 1 or any(
            (n_out - 1) * s >= n for n_out, s, n in zip(size, attributes["strides"], growth.shape[1:], strict=True)
        ):
            return
        attributes["ceil_mode"] = 1
    growth.add(kind, shape=(growth.shape[0], *size), **attributes)


def global_pool(growth: AnyGrowth) -> None:
    """One value a channel."""
    if growth.rank >= 2:
        shape = (growth.shape[0], *(1 for _ in growth.shape[1:]))
        growth.add(growth.pick(["GlobalAveragePool", "GlobalMaxPool"]), shape=shape)


def resize(growth: AnyGrowth) -> None:
    """More or fewer positions."""
    if growth.rank not in (2, 3, 4):
        return
    factors = [float(growth.pick([1, 2, 2, 3, 0.5, 1.5])) for _ in growth.shape[1:]]
    size = tuple(int(np.floor(n * f)) for n, f in zip(growth.shape[1:], factors, strict=True))
    shape = (growth.shape[0], *size)
    if min(size) < 1 or not growth.small(shape):
        return
    scales = growth.constant(np.array([1, 1, *factors], np.float32))
    mode = growth.pick(["nearest", "linear"])
    if growth.opset < 11:
        if any(n * f != s for n, f, s in zip(growth.shape[1:], factors, size, strict=True)) or min(factors) < 1:
            return
        operator = "Upsample" if growth.opset == 9 else "Resize"
        growth.add(operator, scales, mode=mode, shape=shape)
        return
    if growth.rank == 3 and growth.maybe(0.2):
        mode = "cubic"
    way = growth.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    attributes = {"mode": mode, "coordinate_transformation_mode": way}
    if mode == "nearest":
        attributes["nearest_mode"] = growth.pick(["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"])
    empty = growth.constant(np.zeros(0, np.float32)) if growth.opset < 13 else ""
    if growth.maybe(0.4) and growth.batch == 1:
        nothing = growth.constant(np.zeros(0, np.float32)) if growth.opset < 13 else ""
        growth.add("Resize", empty, nothing, growth.constant(np.array([1, *shape])), shape=shape, **attributes)
    else:
        growth.add("Resize", empty, scales, shape=shape, **attributes)


def batch_norm(growth: AnyGrowth) -> None:
    """A scale and an offset a channel."""
    count = growth.shape[0]
    values = growth.random.uniform(0.5, 1.5, (4, count)) - np.array([[0], [1], [1], [0]])
    growth.add("BatchNormalization", *map(growth.constant, values))


def norm(growth: AnyGrowth) -> None:
    """A norm whose mean and variance, or length, are computed."""
    count = growth.shape[0]
    kinds = {"InstanceNormalization": 1, "LpNormalization": 1, "LayerNormalization": 17}
    kinds |= {"GroupNormalization": 21, "RMSNormalization": 23}
    kind = growth.pick([name for name, opset in kinds.items() if opset <= growth.opset])
    if kind in ("InstanceNormalization", "GroupNormalization"):
        if growth.rank < 2 or int(np.prod(growth.shape[1:])) < 4:
            return
        names = growth.constant(growth.floats(count, around=1)), growth.constant(growth.floats(count))
        groups = growth.pick([n for n in range(1, count + 1) if count % n == 0])
        attributes = {"num_groups": groups} if kind == "GroupNormalization" else {}
        growth.add(kind, *names, **attributes)
    elif kind == "LpNormalization":
        if growth.shape[-1] > 1:
            growth.add(kind, axis=-1, p=2)
    else:
        axis = growth.upto(growth.rank)
        size = growth.shape[axis - 1 :]
        if int(np.prod(size)) < 4:
            return
        names = [growth.constant(growth.floats(*size, around=1))]
        if kind == "LayerNormalization" and growth.maybe():
            names.append(growth.constant(growth.floats(*size)))
        growth.add(kind, *names, axis=growth.pick([axis, axis - growth.rank - 1]))


def reduce(growth: AnyGrowth) -> None:
    """A reduction over some axes."""
    count = growth.upto(growth.rank)
    axes = sorted(int(axis) for axis in growth.random.permutation(growth.rank)[:count] + 1)
    kinds = ["ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceSumSquare"]
    kept = growth.maybe()
    shape = tuple(
        1 if axis + 1 in axes else size for axis, size in enumerate(growth.shape) if kept or axis + 1 not in axes
    )
    if shape:
        growth.axes(growth.pick(kinds), axes, shape, keepdims=int(kept))


def gemm(growth: AnyGrowth) -> None:
    """A fully connected layer."""
    if growth.rank != 1:
        return
    outputs, turned = growth.upto(12, 2), growth.upto(1, 0)
    weight = growth.network.normal(outputs, growth.shape[0])
    names = [growth.constant(weight if turned else weight.T)]
    if growth.maybe() or growth.opset < 11:
        names.append(growth.constant(growth.floats(*growth.pick([(outputs,), (1, outputs), (1,)]))))
    attributes = {"alpha": growth.pick([1.0, 0.5, -1.5]), "beta": growth.pick([1.0, 2.0])}
    growth.add("Gemm", *names, shape=(outputs,), transB=turned, **attributes)


def matmul(growth: AnyGrowth) -> None:
    """A product with a constant on either side."""
    if growth.rank >= 2 and growth.maybe(0.3):
        outputs = growth.upto(8)
        weight = growth.constant(growth.network.normal(outputs, growth.shape[-2]))
        shape = (*growth.shape[:-2], outputs, growth.shape[-1])
        growth.add("MatMul", inputs=[weight, growth.last], shape=shape)
        return
    outputs = growth.upto(12)
    weight = growth.network.normal(outputs, growth.shape[-1]).T
    if growth.rank == 3 and growth.maybe(0.2):
        weight = np.stack([weight, weight[::-1]] * growth.shape[0])[: growth.shape[0]]
    growth.add("MatMul", growth.constant(weight), shape=(*growth.shape[:-1], outputs))


def einsum(growth: AnyGrowth) -> None:
    """A product of two tensors by letters."""
    if growth.opset < 13 or growth.rank not in (2, 3):
        return
    outputs = growth.upto(6)
    if growth.rank == 2:
        one, two = growth.shape
        forms = [
            ("bij,jk->bik", (two, outputs), (one, outputs)),
            ("bij,kj->bik", (outputs, two), (one, outputs)),
            ("bij,ik->bkj", (one, outputs), (outputs, two)),
            ("bij,jkl->bikl", (two, 2, outputs), (one, 2, outputs)),
        ]
    else:
        one, two, three = growth.shape
        forms = [
            ("bchw,wk->bchk", (three, outputs), (one, two, outputs)),
            ("bchw,cd->bdhw", (one, outputs), (outputs, two, three)),
            ("bchw,cwk->bchk", (one, three, outputs), (one, two, outputs)),
        ]
    equation, weight, shape = growth.pick(forms)
    growth.add("Einsum", growth.constant(growth.network.normal(*weight)), equation=equation, shape=shape)


def product_of_two(growth: AnyGrowth) -> None:
    """A product of two activations: of matrices, one of them turned."""
    if growth.rank not in (2, 3):
        return
    name, shape = growth.other()
    mine, length = growth.last, growth.shape[-2]
    if growth.opset >= 13 and growth.maybe(0.4):
        equation = "bid,bjd->bij" if growth.rank == 2 else "bhid,bhjd->bhij"
        growth.add("Einsum", inputs=[mine, name], equation=equation, shape=(*shape[:-1], length))
        return
    order = [0, 2, 1] if growth.rank == 2 else [0, 1, 3, 2]
    growth.add("Transpose", inputs=[name], perm=order, shape=(*shape[:-2], shape[-1], shape[-2]))
    growth.add("MatMul", inputs=[mine, growth.last], shape=(*shape[:-1], length))
    growth.add("Mul", growth.constant(np.float32(shape[-1] ** -0.5)))


def attention(growth: AnyGrowth) -> None:
    """Attention of rows to each other, with projections."""
    if growth.rank != 2:
        return
    origin, (rows, width) = growth.last, growth.shape
    parts = []
    for _ in range(3):
        weight = growth.constant(growth.network.normal(width, width))
        growth.add("MatMul", inputs=[origin, weight], shape=(rows, width))
        parts.append(growth.last)
    growth.add("Transpose", inputs=[parts[1]], perm=[0, 2, 1], shape=(width, rows))
    growth.add("MatMul", inputs=[parts[0], growth.last], shape=(rows, rows))
    growth.add("Mul", growth.constant(np.float32(width**-0.5)))
    growth.add("Softmax", axis=2 if growth.maybe() or growth.opset < 13 else -1)
    growth.add("MatMul", parts[2], shape=(rows, width))
    if growth.maybe():
        growth.add("Add", origin)


def softmax(growth: AnyGrowth) -> None:
    """A softmax along an axis."""
    axis = growth.upto(growth.rank)
    growth.add("Softmax", axis=axis)


def cumulative(growth: AnyGrowth) -> None:
    """Sums of all elements before."""
    if growth.opset >= 11:
        attributes = {"exclusive": growth.upto(1, 0), "reverse": growth.upto(1, 0)}
        growth.add("CumSum", growth.constant(np.array(growth.upto(growth.rank))), **attributes)


def recurrent(growth: AnyGrowth) -> None:
    """A recurrent cell along the rows, with time in front inside."""
    if growth.rank != 2 or growth.shape[0] > 6:
        return
    steps, features = growth.shape
    operator, directions = growth.pick(["LSTM", "GRU", "RNN"]), growth.pick([1, 1, 2])
    hidden = growth.upto(4, 2)
    attributes = {"linear_before_reset": 1} if operator == "GRU" and growth.maybe() else {}
    if directions == 1 and growth.maybe(0.3):
        attributes["direction"] = "reverse"
    growth.add("Transpose", perm=[1, 0, 2], shape=growth.shape)
    name = f"cell{len(growth.network.nodes)}"
    growth.earlier.pop()
    options = {"hidden": hidden, "bias": growth.maybe(0.8), "directions": directions, "name": name}
    layer(growth.network, operator, growth.last, features, "Y", **options, **attributes)
    growth.network.nodes[-1].output[0] = f"{name}.Y"
    growth.network.last = f"{name}.Y"
    growth.network.add("Transpose", name=f"turned{name}", perm=[2, 0, 1, 3])
    size = (steps, directions * hidden)
    growth.network.add("Reshape", growth.constant(np.array([0, *size])), name=f"joined{name}")
    growth.shape = size


LAYERS = {
    "conv n-D": conv,
    "transposed": conv_transpose,
    "pool n-D": pool,
    "global pool": global_pool,
    "resize": resize,
    "batch norm": batch_norm,
    "norm": norm,
    "reduce": reduce,
    "gemm by alpha": gemm,
    "matmul": matmul,
    "einsum": einsum,
    "product of two": product_of_two,
    "attention": attention,
    "softmax": softmax,
    "cumulative": cumulative,
    "recurrent": recurrent,
}
