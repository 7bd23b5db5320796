"""Small models of one operator each, with attributes as exporters give them."""

from collections.abc import Callable, Sequence

import numpy as np
from networks import Network
from pieces import IMAGE, ROW, constants, floats, ints, one, three, two, weights, with_constants


def logarithm() -> Network:
    """A logarithm, whose argument is a square and a half, and so never near the pole."""
    network = Network(IMAGE, opset=18)
    network.add("Mul", inputs=["x", "x"]).add("Add", floats(network, 0.5))
    return network.add("Log")


def of_a_square(operator: str, plus: float = 0.0) -> Callable[[], Network]:
    """The operator on a square and a constant: never below it."""

    def build() -> Network:
        network = Network(IMAGE, opset=18)
        network.add("Mul", inputs=["x", "x"])
        if plus:
            network.add("Add", floats(network, plus))
        return network.add(operator)

    return build


def power_of_a_half() -> Network:
    """The square root by its exponent."""
    network = of_a_square("Identity", 0.3)()
    return network.add("Pow", floats(network, 0.5))


def gated(*gate: str, scaled: float | None = None) -> Callable[[], Network]:
    """The input times a gate of it, as exporters write SiLU and Mish."""

    def build() -> Network:
        network = Network(IMAGE, opset=18)
        if scaled is not None:
            network.add("Mul", inputs=["x", floats(network, scaled)])
        for operator in gate:
            network.add(operator)
        return network.add("Mul", inputs=["x", network.last])

    return build


def hard_swish(form: str) -> Callable[[], Network]:
    """HardSwish in steps: by a hard sigmoid, or by a clip of which the gate or the product is a sixth."""

    def build() -> Network:
        network = Network(IMAGE, opset=13)
        if form == "sigmoid":
            network.add("HardSigmoid", alpha=1 / 6)
        else:
            network.add("Add", floats(network, 3))
            network.add("Clip", floats(network, 0), floats(network, 6))
        if form == "gate":
            network.add("Mul", floats(network, 1 / 6))
        network.add("Mul", inputs=["x", network.last])
        return network.add("Div", floats(network, 6)) if form == "product" else network

    return build


def known_factor() -> Network:
    """The input times what a layer makes of it: a product whose left factor the client knows."""
    network = Network(("N", 4, 4), opset=18)
    made = network.add("MatMul", network.constant("w", network.normal(4, 4))).add("Relu").last
    return network.add("MatMul", inputs=["x", made])


def quotient(constant: bool) -> Callable[[], Network]:
    """The input, or a constant, by a sum that is never near 0."""

    def build() -> Network:
        network = Network(IMAGE, opset=18)
        below = network.add("Mul", inputs=["x", "x"]).add("Add", floats(network, 0.5)).last
        return network.add("Div", inputs=[floats(network, 2.0) if constant else "x", below])

    return build


def lengths() -> Network:
    """The lengths of rows, which nothing is divided by."""
    network = Network(("N", 4, 9), opset=18)
    return network.add("ReduceL2", ints(network, 2), keepdims=1)


def shuffled() -> Network:
    network = Network(("N", 6, 4, 4))
    network.add("Reshape", ints(network, 0, 2, 3, 4, 4)).add("Transpose", perm=[0, 2, 1, 3, 4])
    return network.add("Reshape", ints(network, 0, 6, 4, 4)).add("Relu")


def pixel_shuffle_in_steps() -> Network:
    network = Network(("N", 8, 3, 3))
    network.add("Reshape", ints(network, -1, 2, 2, 2, 3, 3)).add("Transpose", perm=[0, 1, 4, 2, 5, 3])
    return network.add("Reshape", ints(network, -1, 2, 6, 6)).add("Relu")


def decoder() -> Network:
    """Layers of a decoder that only the path of sequences has, between layers of images."""
    network = Network(("N", 8, 3, 3), opset=18)
    network.add("ConvTranspose", floats(network, weights(8, 4, 4, 4)), strides=[2, 2], pads=[1, 1, 1, 1])
    names = floats(network, np.linspace(0.5, 1.5, 4)), floats(network, np.linspace(-0.5, 0.5, 4))
    network.add("InstanceNormalization", *names).add("Relu")
    return network.add("Resize", "", floats(network, [1, 1, 2, 2]), mode="nearest").add("MaxPool", kernel_shape=[2, 2])


def rms_formula(*, reciprocal: str) -> Callable[[], Network]:
    """A norm by the root of the mean square, as arithmetic."""

    def build() -> Network:
        network = Network(("N", 5, 16))
        network.add("Pow", floats(network, 2.0)).add("ReduceMean", axes=[-1]).add("Add", floats(network, 1e-5))
        if reciprocal == "Pow":
            network.add("Pow", floats(network, -0.5))
        else:
            network.add("Sqrt")
        if reciprocal == "Reciprocal":
            network.add("Reciprocal")
        if reciprocal == "Div":
            network.add("Div", inputs=[floats(network, 1.0), network.last])
        network.add("Div" if reciprocal == "" else "Mul", inputs=["x", network.last])
        return network.add("Mul", floats(network, np.linspace(0.5, 1.5, 16)))

    return build


def unit_length() -> Network:
    """What a framework makes of a normalisation to length 1."""
    network = Network((1, 16)).add("ReduceL2", axes=[1], keepdims=1)
    network.add("Clip", floats(network, 1e-12)).add("Expand", ints(network, 1, 16))
    return network.add("Div", inputs=["x", network.last])


def unit_length_by_sums() -> Network:
    """The same with a sum of squares."""
    network = Network(("N", 3, 16)).add("Mul", inputs=["x", "x"])
    network.add("ReduceSum", ints(network, -1)).add("Add", floats(network, 1e-6)).add("Sqrt")
    return network.add("Div", inputs=["x", network.last])


def spectrum() -> Network:
    """Magnitudes of complex numbers, the real parts of which are in front of the imaginary ones."""
    network = Network(("N", 1, 12), opset=13)
    network.add("Conv", floats(network, weights(6, 1, 4)), strides=[2], name="conv")
    for name, start in (("real", 0), ("imaginary", 3)):
        ends = ints(network, start), ints(network, start + 3), ints(network, 1)
        network.add("Slice", *ends, inputs=["conv.out", *ends], name=name)
    network.add("Pow", inputs=["real.out", floats(network, 2.0)], name="a")
    network.add("Mul", inputs=["imaginary.out", "imaginary.out"]).add("Add", inputs=["a.out", network.last])
    return network.add("Add", floats(network, 1e-8)).add("Sqrt")


def power(exponent: float, plus: float = 0.0) -> Callable[[], Network]:
    """A square, and perhaps a number more, to a power."""

    def build() -> Network:
        network = of_a_square("Identity", plus)()
        return network.add("Pow", floats(network, exponent))

    return build


def then_relu(build: Callable[[], Network]) -> Callable[[], Network]:
    """The operator with a ReLU after it."""
    return lambda: build().add("Relu")


def token() -> Network:
    network = Network((1, 5, 8))
    first = network.constant("token", weights(1, 1, 8))
    return network.add("Concat", inputs=[first, "x"], axis=1)


def half(values: Sequence[float]) -> np.ndarray:
    return np.array(values, np.float32)


NOTHING = np.zeros(0, np.float32)

OPERATORS: dict[str, Callable[[], Network]] = {
    "a transposition alone": one("Transpose", perm=[0, 2, 3, 1]),
    "silu in two steps": gated("Sigmoid"),
    "hard swish by a hard sigmoid": hard_swish("sigmoid"),
    "hard swish by a clip": hard_swish("gate"),
    "hard swish by a clip, divided last": hard_swish("product"),
    "silu of another slope": gated("Sigmoid", scaled=1.702),
    "mish in three steps": gated("Softplus", "Tanh"),
    "product of the input by what is made of it": known_factor,
    "lengths of rows": lengths,
    "quotient of activations": quotient(False),
    "quotient of a constant": quotient(True),
    "cosine": one("Cos"),
    "error function": one("Erf"),
    "reciprocal": of_a_square("Reciprocal", 0.5),
    "square root": of_a_square("Sqrt"),
    "power of a fraction": power(1.7),
    "root of another degree": power(0.4),
    "inverse power": power(-1.5, 1.0),
    "inverse": power(-1.0, 1.0),
    "square root far from 0": of_a_square("Sqrt", 1.0),
    "power of a half": power_of_a_half,
    "exponential": one("Exp"),
    "logarithm": logarithm,
    "sine": one("Sin"),
    "softsign": one("Softsign"),
    "conv 1-D": with_constants("Conv", weights(5, 4, 3), weights(5, 4)[:, 0], shape=ROW, pads=[1, 2], strides=[2]),
    "conv 1-D, grouped and dilated": with_constants("Conv", weights(4, 2, 3), shape=ROW, group=2, dilations=[2]),
    "conv 1-D, auto_pad": with_constants("Conv", weights(4, 4, 4), shape=ROW, auto_pad="SAME_UPPER", strides=[2]),
    "conv, asymmetric padding": with_constants("Conv", weights(4, 4, 3, 2), pads=[0, 1, 2, 0]),
    "conv, auto_pad lower": with_constants("Conv", weights(4, 4, 4, 3), auto_pad="SAME_LOWER", strides=[2, 1]),
    "max pool 1-D": one("MaxPool", ROW, kernel_shape=[3], strides=[2], pads=[1, 0]),
    "max pool, ceil_mode": one("MaxPool", ("N", 4, 6, 7), kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1),
    "max pool 1-D, ceil_mode": one("MaxPool", ("N", 4, 10), kernel_shape=[3], strides=[2], ceil_mode=1),
    "max pool, ceil_mode and padding": one(
        "MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1
    ),
    "max pool, auto_pad": one("MaxPool", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
    "average pool 1-D": one("AveragePool", ROW, kernel_shape=[3], strides=[2]),
    "average pool 1-D, padding not counted": one("AveragePool", ROW, kernel_shape=[3], pads=[1, 1]),
    "average pool, padding not counted": one("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    "average pool, auto_pad": one("AveragePool", kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
    "average pool, padding counted": one("AveragePool", kernel_shape=[3, 3], pads=[1, 0, 1, 0], count_include_pad=1),
    "average pool, ceil_mode": one("AveragePool", ("N", 4, 6, 6), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "average pool, dilated": one("AveragePool", opset=19, kernel_shape=[2, 2], dilations=[2, 3], pads=[1, 1, 0, 0]),
    "global average pool 1-D": one("GlobalAveragePool", ROW),
    "global max pool": one("GlobalMaxPool"),
    "global max pool 1-D": one("GlobalMaxPool", ROW),
    "transposed conv": with_constants("ConvTranspose", weights(4, 3, 3, 3), weights(3, 4)[:, 0], strides=[2, 2]),
    "transposed conv, padded": with_constants(
        "ConvTranspose", weights(4, 3, 4, 3), strides=[2, 3], pads=[1, 0, 2, 1], output_padding=[1, 2]
    ),
    "transposed conv, stride 1": with_constants("ConvTranspose", weights(4, 3, 3, 3), pads=[1, 1, 1, 1]),
    "transposed conv, grouped": with_constants("ConvTranspose", weights(4, 2, 2, 2), group=2, strides=[2, 2]),
    "transposed conv, dilated": with_constants("ConvTranspose", weights(4, 3, 3, 2), strides=[2, 1], dilations=[2, 2]),
    "transposed conv, wide stride": with_constants("ConvTranspose", weights(4, 3, 2, 2), strides=[3, 3]),
    "transposed conv, auto_pad": with_constants(
        "ConvTranspose", weights(4, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER"
    ),
    "transposed conv 1-D": with_constants("ConvTranspose", weights(4, 3, 4), shape=ROW, strides=[2], pads=[1, 1]),
    "resize nearest": with_constants("Resize", None, half([1, 1, 2, 3]), mode="nearest"),
    "resize nearest, asymmetric": with_constants(
        "Resize",
        NOTHING,
        half([1, 1, 2, 2]),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
        opset=13,
    ),
    "resize nearest, smaller": with_constants("Resize", None, half([1, 1, 0.5, 0.5]), mode="nearest"),
    "resize nearest, uneven": with_constants("Resize", None, half([1, 1, 1.5, 1.5]), mode="nearest"),
    "resize nearest, to a size": with_constants(
        "Resize", None, None, np.array([1, 4, 12, 9]), shape=(1, 4, 6, 6), mode="nearest"
    ),
    "resize linear": with_constants("Resize", None, half([1, 1, 2, 2]), mode="linear"),
    "resize linear, corners": with_constants(
        "Resize", None, half([1, 1, 2, 2]), mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "resize linear, to a size": with_constants(
        "Resize", None, None, np.array([1, 4, 9, 3]), shape=(1, 4, 6, 6), mode="linear"
    ),
    "resize cubic": with_constants("Resize", None, half([1, 1, 2, 2]), mode="cubic"),
    "resize nearest 1-D": with_constants("Resize", None, half([1, 1, 2]), shape=ROW, mode="nearest"),
    "resize linear 1-D": with_constants("Resize", None, half([1, 1, 2]), shape=ROW, mode="linear"),
    "resize of opset 10": with_constants("Resize", half([1, 1, 2, 2]), opset=10, mode="nearest"),
    "upsample nearest": with_constants("Upsample", half([1, 1, 2, 2]), opset=9, mode="nearest"),
    "upsample linear": with_constants("Upsample", half([1, 1, 2, 2]), opset=9, mode="linear"),
    "prelu per channel": with_constants("PRelu", half([[[0.1]], [[0.5]], [[-0.3]], [[0]]])),
    "prelu of one slope": with_constants("PRelu", half([0.25])),
    "selu": one("Selu"),
    "celu": one("Celu", alpha=0.5),
    "elu": one("Elu", alpha=0.7),
    "mish": one("Mish"),
    "swish": one("Swish", opset=24, alpha=1.5),
    "softplus": one("Softplus"),
    "hard sigmoid": one("HardSigmoid"),
    "gelu of small values": one("Gelu", opset=20),
    "max pool with dilations": one("MaxPool", kernel_shape=[2, 3], dilations=[2, 2], strides=[1, 2], pads=[1, 2, 0, 1]),
    "max pool with dilations 1-D": one("MaxPool", ROW, kernel_shape=[3], dilations=[2], pads=[2, 2]),
    "hard swish": one("HardSwish"),
    "clip": with_constants("Clip", np.float32(-0.5), np.float32(0.25)),
    "thresholded relu at 0": one("ThresholdedRelu", alpha=0.0),
    "shrink": one("Shrink", bias=0.3, lambd=0.3),
    "abs": one("Abs"),
    "neg": one("Neg"),
    "cube": with_constants("Pow", np.float32(3)),
    "fourth power": with_constants("Pow", np.float32(4)),
    "maximum of a number": with_constants("Max", np.float32(0.2)),
    "minimum of a number": with_constants("Min", np.float32(0.2)),
    "maximum of constants": with_constants("Max", weights(4, 1, 1)),
    "maximum of two": two("Max"),
    "minimum of two": two("Min"),
    "sum of three": three("Sum"),
    "mean of three": three("Mean"),
    "maximum of three": three("Max"),
    "reduce sum": with_constants("ReduceSum", np.array([2, 3]), keepdims=0),
    "reduce sum, distant axes": with_constants("ReduceSum", np.array([1, 3])),
    "reduce sum of opset 11": one("ReduceSum", opset=11, axes=[-1]),
    "reduce mean, distant axes": with_constants("ReduceMean", np.array([1, 3]), keepdims=0),
    "reduce max": with_constants("ReduceMax", np.array([1])),
    "reduce max, distant axes": with_constants("ReduceMax", np.array([1, 3]), keepdims=0),
    "reduce min": with_constants("ReduceMin", np.array([2, 3]), keepdims=0),
    "reduce L1": with_constants("ReduceL1", np.array([2, 3])),
    "reduce sum of squares": with_constants("ReduceSumSquare", np.array([2, 3])),
    "cumulative sum": with_constants("CumSum", np.array(1)),
    "cumulative sum, backwards": with_constants("CumSum", np.array(-1), reverse=1, exclusive=1),
    "instance norm": with_constants("InstanceNormalization", *constants(4)[:2]),
    "instance norm 1-D": with_constants("InstanceNormalization", *constants(4)[:2], shape=("N", 4, 24)),
    "group norm": with_constants("GroupNormalization", *constants(4)[:2], opset=21, num_groups=2),
    "layer norm over an image": with_constants(
        "LayerNormalization", weights(4, 6, 6) + 1, weights(4, 6, 6, seed=3), axis=1
    ),
    "layer norm of one row": with_constants("LayerNormalization", *constants(24)[:2], shape=("N", 24)),
    "rms norm": with_constants("RMSNormalization", *constants(16)[:1], shape=("N", 5, 16), opset=23),
    "rms norm as a quotient": rms_formula(reciprocal=""),
    "rms norm by a reciprocal": rms_formula(reciprocal="Reciprocal"),
    "rms norm by one over a root": rms_formula(reciprocal="Div"),
    "rms norm by a power": rms_formula(reciprocal="Pow"),
    "unit length": unit_length,
    "unit length by sums": unit_length_by_sums,
    "softmax over channels": one("Softmax", axis=1),
    "softmax over rows": one("Softmax", axis=2),
    "softmax of opset 11": one("Softmax", ("N", 3, 4), opset=11),
    "l2 normalisation": one("LpNormalization", ("N", 5, 16), p=2, axis=-1),
    "batch norm alone": with_constants("BatchNormalization", *constants(4)),
    "batch norm of features": with_constants("BatchNormalization", *constants(12), shape=("N", 12)),
    "batch norm 1-D": with_constants("BatchNormalization", *constants(4), shape=ROW),
    "factors per channel of rows": with_constants("Mul", weights(4, 1), shape=ROW),
    "factors per place of rows": with_constants("Mul", weights(9, 1)[:, 0], shape=ROW),
    "factors per position": with_constants("Mul", weights(6, 6)),
    "factors per element": with_constants("Mul", weights(4, 6, 6)),
    "depth to space": one("DepthToSpace", ("N", 8, 3, 4), blocksize=2),
    "depth to space, CRD": one("DepthToSpace", ("N", 8, 3, 4), blocksize=2, mode="CRD"),
    "space to depth": one("SpaceToDepth", ("N", 2, 4, 6), blocksize=2),
    "channel shuffle": shuffled,
    "pixel shuffle in steps": pixel_shuffle_in_steps,
    "decoder": decoder,
    "expand": with_constants("Expand", np.array([1, 4, 3, 6]), shape=("N", 4, 1, 6)),
    "tile": then_relu(with_constants("Tile", np.array([1, 1, 2, 2]))),
    "gather of one": then_relu(with_constants("Gather", np.array(2), axis=1)),
    "gather in order": with_constants("Gather", np.array([3, 0, 2, 2, -1]), axis=2),
    "slice backwards": with_constants("Slice", np.array([-1]), np.array([-100]), np.array([3]), np.array([-1])),
    "pad with a number": with_constants("Pad", np.array([0, 0, 1, 2, 0, 0, 0, 1]), np.float32(0.7)),
    "pad by reflection": with_constants("Pad", np.array([0, 0, 1, 2, 0, 0, 2, 1]), mode="reflect"),
    "pad by the reflection of much": with_constants(
        "Pad", np.array([0, 0, 37, 0, 0, 70]), mode="reflect", shape=("N", 2, 80)
    ),
    "pad by the edge": with_constants("Pad", np.array([0, 0, 1, 2, 0, 0, 2, 1]), mode="edge"),
    "pad with less": with_constants("Pad", np.array([0, 0, -1, 0, 0, 0, -2, 1])),
    "concat of a constant": token,
    "einsum by a constant": with_constants("Einsum", weights(8, 6), shape=("N", 5, 8), equation="bij,jk->bik"),
    "einsum of heads": with_constants("Einsum", weights(8, 2, 3), shape=("N", 5, 8), equation="bsd,dhk->bhsk"),
    "einsum of two": two("Einsum", ("N", 2, 5, 6), equation="bhid,bhjd->bhij"),
    "einsum of two, turned": two(
        "Einsum", ("N", 2, 5, 6), equation="bhij,bhjd->bihd".replace("jd", "id").replace("ihd", "hjd")
    ),
    "constant matrix first": with_constants("MatMul", weights(5, 6), first=True),
}
