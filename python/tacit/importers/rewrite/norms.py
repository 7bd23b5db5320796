"""Normalisations, by the layer norm that the engine has: written as its formula, which the importer recognises."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from tacit.importers.call import Shape
from tacit.importers.rearrange import axis_of
from tacit.importers.rewrite.defined import NUMBERS_SINCE, RMS_NORM
from tacit.importers.rewrite.writer import Writer
from tacit.importers.unified import DOMAIN

SINGLE_SINCE = 13
"""The opset since which a softmax is along one axis."""


def normalised(w: Writer, x: str, epsilon: float) -> str:
    """Write `x` with mean 0 and variance 1 along its last axis, of two; at any opset."""
    centred = w.put("Sub", x, w.mean(x, 1))
    variance = w.mean(w.put("Mul", centred, centred), 1)
    deviation = w.put("Sqrt", w.put("Add", variance, w.number(epsilon)))
    return w.put("Div", centred, deviation)


def by_channel(w: Writer, x: str, factor: NDArray[Any], bias: NDArray[Any]) -> str:
    """Write `x`, of the node's shape, times and plus a constant per channel."""
    ones = [1] * (len(w.shape) - 1)
    if (factor != 1).any():
        x = w.put("Mul", x, w.constant(factor.reshape(1, -1, *ones)))
    return w.put("Add", x, w.constant(bias.reshape(1, -1, *ones))) if bias.any() else x


def grouped(w: Writer, groups: int, factor: NDArray[Any], bias: NDArray[Any]) -> str:
    """Write the input normalised over groups of channels and all positions."""
    count = math.prod(w.shape) // groups
    if count < 2:
        w.call.refuse("of single values", "normalise over two or more")
    rows = w.reshape(w.x, groups, count)
    done = normalised(w, rows, float(w.call.attributes.get("epsilon", 1e-5)))
    return by_channel(w, w.reshape(done, *w.shape), factor, bias)


def instance_normalization(w: Writer) -> str:
    """InstanceNormalization: over the positions of each channel."""
    return grouped(w, w.shape[0], w.call.required(1, "scale"), w.call.required(2, "bias"))


def group_normalization(w: Writer) -> str:
    """GroupNormalization: over the channels of a group and their positions."""
    return grouped(w, int(w.call.attributes["num_groups"]), w.call.required(1, "scale"), w.call.required(2, "bias"))


def layer_normalization(w: Writer) -> str | None:
    """LayerNormalization over several axes, as over one that has all of them."""
    if any(w.call.outputs[1:]):
        return None
    axis = axis_of(w.call, int(w.call.attributes.get("axis", -1)), len(w.shape))
    if axis == len(w.shape) - 1:
        return None
    count = math.prod(w.shape[axis:])
    rows = w.reshape(w.x, math.prod(w.shape[:axis]), count)
    flat = [w.constant(w.call.constants[name].reshape(-1)) for name in w.call.inputs[1:] if name in w.call.constants]
    epsilon = float(w.call.attributes.get("epsilon", 1e-5))
    return w.reshape(w.put("LayerNormalization", rows, *flat, axis=-1, epsilon=epsilon), *w.shape)


def root_mean_square(w: Writer, x: str, shape: Shape, axis: int, epsilon: float) -> str:
    """Write `x` of `shape` divided by the root of its mean square over the axes from `axis` on, as rows.

    At opsets that have no functions with attributes, what is normalised is `x` beside its negative: that has mean 0,
    and the same mean square.
    """
    count = math.prod(shape[axis:])
    rows = w.reshape(x, math.prod(shape[:axis]), count)
    if w.opset >= NUMBERS_SINCE:
        return w.put(RMS_NORM, rows, domain=DOMAIN, epsilon=epsilon)
    both = w.put("Concat", rows, w.put("Neg", rows), axis=2)
    return w.slice(normalised(w, both, epsilon), 1, 0, count)


def rms_normalization(w: Writer) -> str:
    """RMSNormalization over the last axes."""
    axis = axis_of(w.call, int(w.call.attributes.get("axis", -1)), len(w.shape))
    rows = root_mean_square(w, w.x, w.shape, axis, float(w.call.attributes.get("epsilon", 1e-5)))
    factor = w.call.required(1, "scale")
    done = w.reshape(rows, *w.shape)
    return done if (factor == 1).all() else w.put("Mul", done, w.constant(factor))


def lp_normalization(w: Writer) -> str:
    """LpNormalization to a Euclidean length of 1."""
    axis = axis_of(w.call, int(w.call.attributes.get("axis", -1)), len(w.shape))
    if int(w.call.attributes.get("p", 2)) != 2:
        w.call.refuse("with p=1", "use p=2")
    if axis != len(w.shape) - 1:
        w.call.refuse("along another axis than the last", "transpose it first")
    rows = root_mean_square(w, w.x, w.shape, axis, 0.0)
    return w.scale(w.reshape(rows, *w.shape), 1 / math.sqrt(w.shape[axis]))


def softmax(w: Writer) -> str | None:
    """Softmax along another axis than the last; before opset 13 along all axes from one on."""
    axis = axis_of(w.call, int(w.call.attributes.get("axis", -1 if w.opset >= SINGLE_SINCE else 1)), len(w.shape))
    last, shape = len(w.shape) - 1, w.shape
    if shape[axis] == 1 if w.opset >= SINGLE_SINCE else math.prod(shape[axis:]) == 1:
        return w.put("Add", w.put("Mul", w.x, w.number(0.0)), w.number(1.0))
    if axis == last or w.x not in w.call.shapes:
        return None
    outer, length, inner = (math.prod(part) for part in (shape[:axis], shape[axis : axis + 1], shape[axis + 1 :]))
    if w.opset < SINGLE_SINCE:
        return w.reshape(w.put("Softmax", w.reshape(w.x, outer, length * inner), axis=2), *shape)
    turned = w.transpose(w.reshape(w.x, outer, length, inner), 0, 2, 1)
    return w.reshape(w.transpose(w.put("Softmax", turned, axis=-1), 0, 2, 1), *shape)


def local_response(w: Writer) -> str:
    """LRN: `x*(bias + alpha*mean of squares of near channels)^-beta`, the power by a logarithm and an exponential."""
    channels, rest, size = w.shape[0], math.prod(w.shape[1:]), int(w.call.attributes["size"])
    alpha, beta, bias = (float(w.call.attributes.get(name, default)) for name, default in LOCAL_RESPONSE)
    if bias <= 0:
        w.call.refuse(f"with bias={bias:g}", "use a bias above 0")
    image = w.reshape(w.put("Mul", w.x, w.x), 1, channels, rest)
    pads = [(size - 1) // 2, 0, size - 1 - (size - 1) // 2, 0]
    mean = w.put("AveragePool", image, kernel_shape=[size, 1], pads=pads, count_include_pad=1)
    below = w.put("Add", w.scale(w.reshape(mean, *w.shape), alpha), w.number(bias))
    return w.put("Mul", w.x, w.put("Exp", w.scale(w.put("Log", below), -beta)))


LOCAL_RESPONSE = (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0))
"""Attributes of LRN and their defaults."""
NORMS: Mapping[str, Callable[[Writer], str | None]] = {
    "GroupNormalization": group_normalization,
    "InstanceNormalization": instance_normalization,
    "LRN": local_response,
    "LayerNormalization": layer_normalization,
    "LpNormalization": lp_normalization,
    "RMSNormalization": rms_normalization,
    "Softmax": softmax,
}
