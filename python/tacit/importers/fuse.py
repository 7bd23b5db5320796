"""Layer norms and GELUs that an exporter wrote as arithmetic become one operator again."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Call

GRID = np.linspace(-6, 6, 241)
NEAR = 5e-3
"""How far an approximation of GELU may be from it to be taken for it."""
LONGEST_FORMULA = 12
ERF = np.vectorize(math.erf, otypes=[np.float64])
POINTWISE: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "Div": np.divide,
    "Erf": ERF,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Pow": np.power,
    "Sub": np.subtract,
    "Tanh": np.tanh,
}


@dataclass
class Formulas:
    """The nodes of a graph, by what they write, and the readers of each tensor."""

    calls: list[Call]
    outputs: Sequence[str]

    def __post_init__(self) -> None:
        self.index()

    def index(self) -> None:
        """Note who writes and who reads what."""
        self.writer = {name: call for call in self.calls for name in call.outputs if name}
        self.readers: dict[str, list[Call]] = {}
        for call in self.calls:
            for name in dict.fromkeys(call.inputs):
                self.readers.setdefault(name, []).append(call)

    def written(self, name: str, operator: str) -> Call | None:
        """The node that writes `name`, if it is an `operator`."""
        call = self.writer.get(name)
        return call if call is not None and call.operator == operator else None

    def reader(self, name: str, operator: str) -> Call | None:
        """The only reader of `name`, if it is an `operator` and nothing else needs it."""
        readers = self.readers.get(name, [])
        return (
            readers[0] if len(readers) == 1 and readers[0].operator == operator and name not in self.outputs else None
        )

    def put(self, last: Call, fused: Call) -> None:
        """Let `fused` stand in for `last`, and drop what nobody needs any more."""
        self.calls = [fused if call is last else call for call in self.calls]
        needed, kept = set(self.outputs), []
        for call in reversed(self.calls):
            if needed.intersection(call.outputs):
                needed.update(call.inputs)
                kept.append(call)
        self.calls = kept[::-1]
        self.index()


def fuse(calls: Sequence[Call], outputs: Sequence[str]) -> list[Call]:
    """The nodes with LayerNormalization and Gelu in place of the formulas that compute them."""
    formulas = Formulas(list(calls), outputs)
    for call in calls:
        if call.operator in ("Div", "Mul"):
            fuse_norm(formulas, call)
        elif call.operator in ("Erf", "Tanh"):
            fuse_gelu(formulas, call)
        elif call.operator == "Where":
            fuse_guard(formulas, call)
    return formulas.calls


def fuse_guard(formulas: Formulas, call: Call) -> None:
    """`Where(IsNaN(x), constant, x)`, written for rows that are all masked, is x."""
    test = formulas.written(call.inputs[0], "IsNaN")
    if test is not None and test.inputs[0] == call.inputs[2] and call.inputs[1] in call.constants:
        formulas.put(call, replace(call, operator="Identity", inputs=[call.inputs[2]], attributes={}))


def fuse_norm(formulas: Formulas, call: Call) -> None:
    """`(x - mean) / sqrt(variance + epsilon)`, times and plus constants where those follow."""
    found = normalised(formulas, call)
    if found is None:
        return
    x, epsilon = found
    channels, last = call.shapes[x][-1:], call
    parameters = []
    for operator, default in (("Mul", np.ones), ("Add", np.zeros)):
        after = formulas.reader(last.outputs[0], operator)
        value = None if after is None else vector(after, last.outputs[0], channels)
        name = f"{call.name}.{operator.lower()}"
        call.constants[name] = default(channels, np.float32) if value is None else value  # type: ignore[index]
        parameters.append(name)
        last = last if value is None or after is None else after
    attributes = {"axis": -1, "epsilon": epsilon}
    fused = replace(
        last, operator="LayerNormalization", inputs=[x, *parameters], attributes=attributes, outputs=last.outputs[:1]
    )
    formulas.put(last, fused)


def vector(call: Call, tensor: str, shape: tuple[int, ...]) -> NDArray[np.float32] | None:
    """The other operand of `call`, if it is a constant per channel."""
    (other,) = [name for name in call.inputs if name != tensor] or [tensor]
    if other not in call.constants:
        return None
    value = call.constants[other]
    fits = value.size in (1, *shape) and (value.ndim == 0 or value.size in (1, value.shape[-1]))
    return np.broadcast_to(value.ravel(), shape).astype(np.float32) if fits else None


def normalised(formulas: Formulas, call: Call) -> tuple[str, float] | None:
    """What a quotient normalises along its last axis, and its epsilon."""
    below = call.inputs[1]
    if call.operator == "Mul":
        reciprocal = formulas.written(below, "Reciprocal")
        if reciprocal is None:
            return None
        below = reciprocal.inputs[0]
    x = centred(formulas, call.inputs[0])
    root = formulas.written(below, "Sqrt")
    total = None if root is None else formulas.written(root.inputs[0], "Add")
    if x is None or total is None:
        return None
    epsilons = [name for name in total.inputs if name in call.constants and call.constants[name].size == 1]
    variances = [name for name in total.inputs if name not in call.constants]
    if len(epsilons) != 1 or squared(formulas, averaged(formulas, variances[0])) != x:
        return None
    return x, float(call.constants[epsilons[0]].item())


def centred(formulas: Formulas, name: str) -> str | None:
    """x, where `name` is `x - mean(x)`."""
    difference = formulas.written(name, "Sub")
    if difference is None or averaged(formulas, difference.inputs[1]) != difference.inputs[0]:
        return None
    return difference.inputs[0]


def squared(formulas: Formulas, name: str | None) -> str | None:
    """x, where `name` is the square of `x - mean(x)`."""
    if name is None:
        return None
    power, product = formulas.written(name, "Pow"), formulas.written(name, "Mul")
    if power is not None and power.inputs[1] in power.constants and (power.constants[power.inputs[1]] == 2).all():
        return centred(formulas, power.inputs[0])
    if product is not None and product.inputs[0] == product.inputs[1]:
        return centred(formulas, product.inputs[0])
    return None


def averaged(formulas: Formulas, name: str) -> str | None:
    """What `name` is the mean of along the last axis."""
    mean = formulas.written(name, "ReduceMean")
    if mean is None or not mean.attributes.get("keepdims", 1):
        return None
    axes = mean.attributes.get("axes")
    if axes is None and len(mean.inputs) > 1 and mean.inputs[1] in mean.constants:
        axes = mean.constants[mean.inputs[1]].ravel().tolist()
    last = len(mean.shapes[mean.inputs[0]]) - 1
    return mean.inputs[0] if axes is not None and list(axes) in ([-1], [last]) else None


def fuse_gelu(formulas: Formulas, call: Call) -> None:
    """Any formula around an error function or a hyperbolic tangent that has GELU's values."""
    if formulas.writer.get(call.outputs[0]) is not call:
        return
    expected = GRID * 0.5 * (1 + ERF(GRID / math.sqrt(2)))
    for root in roots(formulas, call):
        for last, values in functions(formulas, root):
            if np.allclose(values, expected, rtol=0, atol=NEAR):
                formulas.put(last, replace(last, operator="Gelu", inputs=[root], attributes={}))
                return


def roots(formulas: Formulas, call: Call) -> list[str]:
    """Tensors that `call` may be a function of, nearest first."""
    found: list[str] = []
    ahead = [call]
    while ahead and len(found) < LONGEST_FORMULA:
        for name in activations(ahead.pop(0)):
            if name not in found:
                found.append(name)
                writer = formulas.writer.get(name)
                if writer is not None and pointwise(writer):
                    ahead.append(writer)
    return found


def functions(formulas: Formulas, root: str) -> Iterator[tuple[Call, NDArray[np.float64]]]:
    """Nodes that are functions of `root` alone, with their values on a grid of its."""
    values: dict[str, NDArray[np.float64]] = {root: GRID}
    ahead = list(formulas.readers.get(root, []))
    for _ in range(LONGEST_FORMULA):
        ready = [
            c for c in ahead if pointwise(c) and c.outputs[0] not in values and set(activations(c)) <= values.keys()
        ]
        if not ready:
            return
        call = ready[0]
        operands = [values[name] if name in values else float(call.constants[name].item()) for name in call.inputs]
        with np.errstate(all="ignore"):
            values[call.outputs[0]] = np.asarray(POINTWISE[call.operator](*operands), np.float64)
        yield call, values[call.outputs[0]]
        ahead += formulas.readers.get(call.outputs[0], [])


def pointwise(call: Call) -> bool:
    """Whether it is a function of single numbers: activations and scalar constants."""
    constants = [call.constants[name] for name in call.inputs if name in call.constants]
    return call.operator in POINTWISE and all(value.size == 1 for value in constants)


def activations(call: Call) -> list[str]:
    """The computed inputs."""
    return [name for name in call.inputs if name and name not in call.constants]
