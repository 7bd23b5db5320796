"""Networks with random weights as ONNX, node by node, to measure what shapes cost.

Weights are of He's size under a fixed seed, so that activations stay of one size; batch norms are folded.
"""

import argparse
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION, LEAK = 16, 8, 0.25


class Window(NamedTuple):
    """A kernel, its stride, and zeros above, to the left, below and to the right; None: half of the kernel each."""

    high: int
    wide: int
    stride: int = 1
    pads: tuple[int, int, int, int] | None = None


class Builder:
    """Nodes and constants; every method reads a tensor by name and gives that of its result."""

    def __init__(self, seed: int) -> None:
        """An empty graph, whose weights follow from `seed`."""
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[np.float32]) -> str:
        """Store weights."""
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def add(self, operator: str, *read: str, **attributes: Any) -> str:
        """One node."""
        name = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(read), [name], name=name, **attributes))
        return name

    def weights(self, kind: str, shape: tuple[int, ...]) -> tuple[str, str]:
        """Names of a kernel (made, given, ...) and a bias (made) of the next node."""
        fan = int(np.prod(shape[1:]))
        values = self.random.standard_normal(shape) * np.sqrt(2 / fan), 0.1 * self.random.standard_normal(shape[0])
        names = (f"{kind}{len(self.nodes)}.weight", f"{kind}{len(self.nodes)}.bias")
        for name, value in zip(names, values, strict=True):
            self.constant(name, value.astype(np.float32))
        return names

    def conv(self, x: str, channels: tuple[int, int], window: int | Window, group: int = 1) -> str:
        """A convolution from and to so many channels, with a square kernel and stride 1 where `window` is a number."""
        given, made = channels
        if isinstance(window, int):
            window = Window(window, window)
        names = self.weights("conv", (made, given // group, window.high, window.wide))
        pads = (window.high // 2, window.wide // 2) * 2 if window.pads is None else window.pads
        size = [window.high, window.wide]
        return self.add("Conv", x, *names, group=group, strides=[window.stride] * 2, pads=list(pads), kernel_shape=size)

    def dense(self, x: str, given: int, made: int) -> str:
        """A fully connected layer of vectors (N, given)."""
        return self.add("Gemm", x, *self.weights("dense", (made, given)), transB=1)

    def sloped(self, x: str, channels: int) -> str:
        """PReLU with a slope for each channel."""
        slopes = (LEAK * self.random.uniform(0.5, 1.5, (channels, 1, 1))).astype(np.float32)
        return self.add("PRelu", x, self.constant(f"prelu{len(self.nodes)}.slope", slopes))

    def model(self, name: str, given: tuple[int, ...], result: str, made: tuple[int, ...]) -> onnx.ModelProto:
        """The model from input `x` (N, *given) to the tensor `result` (N, *made)."""
        read = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *given])
        wrote = helper.make_tensor_value_info(result, TensorProto.FLOAT, ["N", *made])
        graph = helper.make_graph(self.nodes, name, [read], [wrote], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def write(description: str | None, known: Collection[str], build: Callable[[str], onnx.ModelProto]) -> None:
    """What the modules of networks do as programs: write NAME-random.onnx for those that the command line names."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of " + ", ".join(known))
    parser.add_argument("--output", type=Path, default=Path("build"), help="default: %(default)s")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"no network is called {unknown[0]}; there are {', '.join(known)}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or known:
        path = arguments.output / f"{name}-random.onnx"
        onnx.save(build(name), path)
        sys.stdout.write(f"{path}: {path.stat().st_size / 1e6:.0f} MB\n")
