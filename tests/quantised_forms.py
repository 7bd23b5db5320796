"""Small quantised models, as quantisers write them: one for each form."""

from collections.abc import Callable
from typing import Any

import numpy as np
from networks import Network
from onnx import TensorProto, helper

EXTRA = "com.microsoft"
KINDS = {
    "int8": (np.int8, -128, 127),
    "uint8": (np.uint8, 0, 255),
    "int16": (np.int16, -32768, 32767),
    "uint16": (np.uint16, 0, 65535),
}


class Quantised(Network):
    """A network with constants of scales and integers."""

    def number(self, value: Any, kind: Any = np.float32) -> str:
        """A constant; gives its name."""
        return self.constant(f"c{len(self.constants)}", np.asarray(value, kind))

    def form(self, low: float, high: float, kind: str = "uint8", zero: bool = True) -> list[str]:
        """Scale and zero point for the numbers from `low` to `high`."""
        integer, least, most = KINDS[kind]
        scale = (high - low) / (most - least)
        zero_point = np.clip(np.round(least - low / scale), least, most)
        return [self.number(scale), *([self.number(zero_point, integer)] if zero else [])]

    def around(self, form: list[str], domain: str = "") -> "Quantised":
        """QuantizeLinear and DequantizeLinear of the last tensor."""
        self.add("QuantizeLinear", *form, domain=domain)
        self.add("DequantizeLinear", *form, domain=domain)
        return self

    def weight(self, *shape: int, axis: int | None = None, kind: type = np.int8) -> tuple[list[str], np.ndarray]:
        """A weight of integers with its scale and zero point, per tensor or along an axis; and its numbers."""
        value = self.normal(*shape)
        others = tuple(k for k in range(len(shape)) if k != axis)
        scale = np.abs(value).max(axis=None if axis is None else others) / 127
        wide = scale if axis is None else np.expand_dims(scale, others)
        offset = 0 if kind == np.int8 else 128
        integers = np.clip(np.round(value / wide) + offset, *((-127, 127) if kind == np.int8 else (0, 255)))
        names = [self.number(integers, kind), self.number(scale), self.number(np.full(np.shape(scale), offset), kind)]
        return names, (integers - offset) * wide

    def dequantised(self, names: list[str], axis: int | None = None, domain: str = "") -> str:
        """A DequantizeLinear of a weight; gives the name of its output."""
        last = self.last
        attributes = {} if axis is None else {"axis": axis}
        self.add("DequantizeLinear", inputs=names, domain=domain, **attributes)
        made, self.last = self.last, last
        return made


def qdq(
    kind: str, axis: int | None = None, zero: bool = True, domain: str = "", opset: int = 21
) -> Callable[[], Network]:
    """Convolutions between pairs; the ReLU of the first is left out, as its zero point makes it needless."""

    def build() -> Network:
        network = Quantised((1, 3, 6, 6), opset=opset)
        network.around(network.form(-1, 1, kind, zero) if zero else [network.number(2 / 255)], domain)
        weight = network.dequantised(network.weight(6, 3, 3, 3, axis=axis)[0], axis, domain)
        network.add("Conv", weight, pads=[1, 1, 1, 1])
        network.around(network.form(0, 2, kind) if zero else [network.number(2 / 255)], domain)
        weight = network.dequantised(network.weight(4, 6, 3, 3, axis=axis)[0], axis, domain)
        network.add("Conv", weight)
        network.around(network.form(-2, 2, kind), domain)
        return network.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])

    return build


def blocked() -> Network:
    """A matrix of int4 with a scale for each block of eight rows."""
    network = Quantised((1, 16), opset=21)
    value = np.clip(np.round(network.normal(16, 6) * 20), -8, 7).astype(np.int32)
    tensor = helper.make_tensor("w", TensorProto.INT4, [16, 6], value.ravel().tolist())
    network.constants.append(tensor)
    scales = network.number(network.random.uniform(0.02, 0.1, (2, 6)))
    network.add("DequantizeLinear", inputs=["w", scales], axis=0, block_size=8, name="read")
    return network.add("MatMul", inputs=["x", "read.out"])


def moved() -> Network:
    """Operators on the integers themselves, between the pair."""
    network = Quantised((1, 4, 6, 6), opset=21)
    form = network.form(-1, 1)
    network.add("QuantizeLinear", *form, name="q").add("MaxPool", kernel_shape=[3, 3], strides=[3, 3])
    network.add("Transpose", perm=[0, 2, 3, 1], name="turned")
    network.add("Pad", network.number([0, 1, 0, 0, 0, 0, 0, 0], np.int64), network.number(200, np.uint8))
    network.add("Concat", inputs=[network.last, "turned.out"], axis=1)
    return network.add("DequantizeLinear", *form)


def other_scale() -> Network:
    """Integers that are read back at another scale."""
    network = Quantised((1, 12), opset=13)
    network.add("QuantizeLinear", *network.form(-1, 1))
    return network.add("DequantizeLinear", *network.form(-3, 1))


def qlinear_image(kind: str, axis: int | None) -> Callable[[], Network]:
    """The operators of integers that have a rounded result, on images."""

    def build() -> Network:
        network = Quantised((1, 3, 6, 6), opset=13)
        given, hidden, sums = network.form(-1, 1, kind), network.form(0, 2, kind), network.form(-3, 3, kind)
        network.add("QuantizeLinear", *given, name="q")
        weight, _ = network.weight(4, 3, 3, 3, axis=axis)
        bias = network.number([30, -40, 500, 60], np.int32)
        network.add("QLinearConv", *given, *weight, *hidden, bias, pads=[1, 1, 1, 1], name="conv")
        network.add("QLinearLeakyRelu", *hidden, *sums, domain=EXTRA, alpha=0.1, name="leaky")
        network.add("QLinearAdd", *sums, "conv.out", *hidden, *sums, domain=EXTRA, name="sum")
        network.add("QLinearSigmoid", *sums, *(unit := network.form(0, 1, kind)), domain=EXTRA, name="gate")
        network.add("QLinearMul", *unit, "sum.out", *sums, *sums, domain=EXTRA, name="product")
        parts = [*sums, "product.out", *sums, "conv.out", *hidden]
        network.add("QLinearConcat", inputs=parts, domain=EXTRA, axis=1, name="both")
        network.add("QLinearAveragePool", *sums, *sums, domain=EXTRA, kernel_shape=[2, 2], name="pool")
        return network.add("DequantizeLinear", *sums)

    return build


def qlinear_rows(kind: str, axis: int | None) -> Callable[[], Network]:
    """The operators of integers that have a rounded result, on what a pool leaves of an image."""

    def build() -> Network:
        network = Quantised((1, 8, 3, 3), opset=13)
        given, mean, sums = network.form(-1, 1, kind), network.form(-0.5, 0.5, kind), network.form(-0.6, 0.6, kind)
        network.add("QuantizeLinear", *given).add("QLinearGlobalAveragePool", *given, *mean, domain=EXTRA)
        network.add("Flatten")
        weight, _ = network.weight(8, 5, axis=None if axis is None else 1)
        network.add("QLinearMatMul", *mean, *weight, *sums)
        weight, _ = network.weight(4, 5, axis=axis)
        bias = network.number([30, -40, 500, 60], np.int32)
        network.add("QGemm", *sums, *weight, bias, *sums, domain=EXTRA, transB=1)
        return network.add("DequantizeLinear", *sums)

    return build


def dynamic_conv() -> Network:
    """A convolution whose input is rounded by a scale that the model computes."""
    network = Quantised((1, 3, 6, 6), opset=13)
    (weight, scale, zero), _ = network.weight(4, 3, 3, 3)
    network.add("DynamicQuantizeLinear", outputs=["s", "z"], name="q")
    network.add("ConvInteger", weight, "z", zero, pads=[1, 1, 1, 1]).add("Cast", to=TensorProto.FLOAT, name="sum")
    network.add("Mul", inputs=["s", scale], name="scale")
    network.add("Mul", inputs=["sum.out", "scale.out"])
    return network.add("Add", network.number(np.linspace(-1, 1, 4).reshape(4, 1, 1))).add("Relu")


def dynamic_matmul(axis: int | None) -> Callable[[], Network]:
    """A product whose input is rounded by a scale that the model computes."""

    def build() -> Network:
        network = Quantised((1, 5, 8), opset=13)
        (weight, scale, zero), _ = network.weight(8, 6, axis=axis)
        network.add("DynamicQuantizeLinear", outputs=["s", "z"], name="q")
        network.add("MatMulInteger", weight, "z", zero).add("Cast", to=TensorProto.FLOAT, name="sum")
        network.add("Mul", inputs=[scale, "s"], name="scale")
        return network.add("Mul", inputs=["scale.out", "sum.out"])

    return build


def static_matmul() -> Network:
    """A product of integers at a constant scale."""
    network = Quantised((1, 8), opset=13)
    scale, zero = network.form(-1, 1)
    (weight, factor, offset), _ = network.weight(8, 6, kind=np.uint8)
    network.add("QuantizeLinear", scale, zero)
    network.add("MatMulInteger", weight, zero, offset).add("Cast", to=TensorProto.FLOAT)
    return network.add("Mul", factor).add("Mul", scale)


def dynamic_fused(bias: bool) -> Callable[[], Network]:
    """The product with its rounding in one operator."""

    def build() -> Network:
        network = Quantised((1, 5, 8), opset=13)
        names, _ = network.weight(8, 6, axis=1)
        names += [network.number(np.linspace(-1, 1, 6))] if bias else []
        return network.add("DynamicQuantizeMatMul", *names, domain=EXTRA)

    return build


def to_float() -> Network:
    """The product and its scales in one operator."""
    network = Quantised((1, 5, 8), opset=13)
    (weight, scale, zero), _ = network.weight(8, 6)
    network.add("DynamicQuantizeLinear", outputs=["s", "z"], name="q")
    bias = network.number(np.linspace(-1, 1, 6))
    return network.add("MatMulIntegerToFloat", weight, "s", scale, "z", zero, bias, domain=EXTRA)


def few_bits() -> Network:
    """A product by a matrix of four bits in blocks."""
    network = Quantised((1, 5, 32), opset=13)
    codes = network.number(network.random.integers(0, 256, (6, 2, 8)), np.uint8)
    scales = network.number(network.random.uniform(0.02, 0.05, (6, 2)))
    zeros = network.number(network.random.integers(96, 160, (6, 1)), np.uint8)
    sizes = {"K": 32, "N": 6, "bits": 4, "block_size": 16}
    return network.add("MatMulNBits", codes, scales, zeros, domain=EXTRA, **sizes)


FORMS: dict[str, Callable[[], Network]] = {
    "qdq int8": qdq("int8"),
    "qdq uint8": qdq("uint8"),
    "qdq per channel": qdq("uint8", axis=0),
    "qdq int16": qdq("int16"),
    "qdq uint16, of com.microsoft": qdq("uint16", domain=EXTRA, opset=13),
    "qdq int4 in blocks": blocked,
    "integers moved": moved,
    "another scale": other_scale,
    "qlinear uint8": qlinear_image("uint8", None),
    "qlinear int8, per channel": qlinear_image("int8", 0),
    "qlinear rows uint8": qlinear_rows("uint8", None),
    "qlinear rows int8, per channel": qlinear_rows("int8", 0),
    "dynamic convolution": dynamic_conv,
    "dynamic product": dynamic_matmul(None),
    "dynamic product, per channel": dynamic_matmul(1),
    "static product": static_matmul,
    "dynamic product, fused": dynamic_fused(False),
    "dynamic product with bias, fused": dynamic_fused(True),
    "product to float": to_float,
    "product by four bits": few_bits,
}
