"""Linear models and support vector machines of the domain `ai.onnx.ml`, as scikit-learn's exporter writes them.

They become operators of ONNX itself before anything else reads the model. Scores before a softmax or a logistic
function get the name of the output with `.logits` behind it, so that they can be the result.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit.errors import UnsupportedError
from tacit.importers.fold import keep

DOMAIN = "ai.onnx.ml"
OWN_OPSET = 13
"""Version of ONNX's own operators in a model that uses none."""
MOST_DEGREES = 4
LEAST_EXPONENT = -8.0
"""Kernels below exp of this count as that: a table has 256 entries, which those above need."""
Floats = NDArray[np.float32]


@dataclass
class Rewriting:
    """One node, the node that writes its first input, the model's constants, and what the node becomes."""

    node: onnx.NodeProto
    before: onnx.NodeProto | None
    stored: Mapping[str, TensorProto]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.attributes = attributes(self.node)
        self.output = self.node.output[-1]

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise `UnsupportedError` naming the node."""
        name = self.node.name or self.output
        error = UnsupportedError(f"node `{name}`: {DOMAIN}.{self.node.op_type} {what}; {instead}")
        error.node = name
        raise error

    def floats(self, name: str) -> Floats:
        """An attribute that is a list of numbers, empty where it is absent."""
        return np.asarray(self.attributes.get(name, ()), np.float32)

    def transform(self) -> str:
        """The function that the node applies to its scores, as ONNX names it; NONE by default."""
        return str(self.attributes.get("post_transform", "NONE"))

    def constant(self, role: str, value: Any) -> str:
        """Store a constant of the model; gives its name."""
        name = f"{self.output}.{role}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, operator: str, inputs: Sequence[str], output: str, **settings: Any) -> str:
        """A node named after what it writes; gives that name."""
        self.nodes.append(helper.make_node(operator, inputs, [output], output, **settings))
        return output

    def scaled(self, weight: Floats, bias: Floats) -> tuple[str, Floats, Floats]:
        """A layer that takes a Scaler before it into its weight and bias: what it reads, and both."""
        name = self.node.input[0]
        if self.before is None or (self.before.domain, self.before.op_type) != (DOMAIN, "Scaler"):
            return name, weight, bias
        given = attributes(self.before)
        offset, scale = (np.asarray(given.get(role, ())) for role in ("offset", "scale"))
        wide = weight * (scale if len(scale) else 1.0)
        moved = bias - (wide * (offset if len(offset) else 0.0)).sum(axis=1)
        return self.before.input[0], wide.astype(np.float32), moved.astype(np.float32)

    def dense(self, name: str, weight: Floats, bias: Floats, output: str) -> str:
        """A fully connected layer with `weight` (outputs, inputs)."""
        stored = [self.constant(f"{output}.{role}", value) for role, value in (("weight", weight), ("bias", bias))]
        return self.add("Gemm", [name, *stored], output, transB=1)


def to_onnx(model: onnx.ModelProto) -> None:
    """Replace the nodes of `ai.onnx.ml` that have a converter, in place; those that it refuses stay as they are."""
    if all(node.domain != DOMAIN for node in model.graph.node):
        return
    nodes: list[onnx.NodeProto] = []
    for node, found in rewritings(model):
        nodes += found.nodes if isinstance(found, Rewriting) else [node]
        model.graph.initializer.extend(found.constants if isinstance(found, Rewriting) else ())
    keep(model, nodes)
    versions = {entry.domain: entry.version for entry in model.opset_import}
    if not versions.keys() & {"", "ai.onnx"}:
        versions[""] = OWN_OPSET
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(domain, version) for domain, version in versions.items())


def refusals(model: onnx.ModelProto) -> list[UnsupportedError]:
    """Why the nodes that have a converter and are still there cannot be expressed."""
    return [found for _, found in rewritings(model) if isinstance(found, UnsupportedError)]


def rewritings(model: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, Rewriting | UnsupportedError | None]]:
    """What each node becomes, or why it does not; None for a node without a converter."""
    makers = {name: node for node in model.graph.node for name in node.output if name}
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        if not convertible(node) or node.input[0] in stored:
            yield node, None
            continue
        rewriting = Rewriting(node, makers.get(node.input[0]), stored)
        try:
            CLASSICAL[node.op_type](rewriting)
        except UnsupportedError as error:
            yield node, error
        except (ValueError, IndexError, KeyError) as error:
            name = node.name or rewriting.output
            what = f"node `{name}`: {DOMAIN}.{node.op_type} has attributes that do not fit together ({error})"
            yield node, UnsupportedError(f"{what}; export the model again")
        else:
            yield node, rewriting


def convertible(node: onnx.NodeProto) -> bool:
    """Whether there is a converter for it."""
    return node.domain == DOMAIN and node.op_type in CLASSICAL and bool(node.input)


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes as plain values, strings as text."""
    values = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


def linear_classifier(rewriting: Rewriting) -> None:
    """Scores of all classes, then a softmax or a logistic function."""
    weight, bias = layer(rewriting, len(labels(rewriting)))
    if len(weight) == 1:
        ones = np.float32(rewriting.transform() == "NONE")
        weight, bias = np.concatenate([-weight, weight]), np.concatenate([ones - bias, bias])
    last = {"NONE": None, "LOGISTIC": "Sigmoid", "SOFTMAX": "Softmax"}
    if rewriting.transform() not in last:
        rewriting.refuse(f"with post_transform={rewriting.transform()}", "use NONE, LOGISTIC or SOFTMAX")
    function = last[rewriting.transform()]
    name, weight, bias = rewriting.scaled(weight, bias)
    if function is None:
        rewriting.dense(name, weight, bias, rewriting.output)
    else:
        scores = rewriting.dense(name, weight, bias, f"{rewriting.output}.logits")
        settings = {"axis": 1} if function == "Softmax" else {}
        rewriting.add(function, [scores], rewriting.output, **settings)
    label(rewriting)


def labels(rewriting: Rewriting) -> Sequence[Any]:
    """The classes, by number or by name."""
    given = rewriting.attributes
    return given.get("classlabels_ints") or given.get("classlabels_strings") or given.get("classlabels_int64s") or ()


def label(rewriting: Rewriting) -> None:
    """The place of the best class for whoever reads the label, which no result can be."""
    name = rewriting.node.output[0]
    if len(rewriting.node.output) > 1 and name:
        rewriting.add("ArgMax", [rewriting.output], name, axis=1, keepdims=0)


def layer(rewriting: Rewriting, outputs: int) -> tuple[Floats, Floats]:
    """Weight (outputs, inputs) and bias of a linear model; one score may stand for two classes."""
    coefficients, bias = rewriting.floats("coefficients"), rewriting.floats("intercepts")
    rows = len(bias) or (1 if outputs <= 2 else outputs)
    if not len(coefficients) or len(coefficients) % rows:
        rewriting.refuse("whose coefficients do not fit its outputs", "export the model again")
    return coefficients.reshape(rows, -1), bias if len(bias) else np.zeros(rows, np.float32)


def linear_regressor(rewriting: Rewriting) -> None:
    """A fully connected layer."""
    if rewriting.transform() != "NONE":
        rewriting.refuse(f"with post_transform={rewriting.transform()}", "export the model without it")
    targets = int(rewriting.attributes.get("targets", 1))
    bias = rewriting.floats("intercepts")
    coefficients = rewriting.floats("coefficients")
    if not len(coefficients) or len(coefficients) % targets:
        rewriting.refuse("whose coefficients do not fit its targets", "export the model again")
    bias = bias if len(bias) else np.zeros(targets, np.float32)
    name, weight, bias = rewriting.scaled(coefficients.reshape(targets, -1), bias)
    rewriting.dense(name, weight, bias, rewriting.output)


def scaler(rewriting: Rewriting) -> None:
    """`(x - offset) * scale`, with one number for all features or one for each."""
    name, (offset, scale) = rewriting.node.input[0], (rewriting.floats(role) for role in ("offset", "scale"))
    if len(offset):
        last = rewriting.output if not len(scale) else f"{rewriting.output}.centred"
        name = rewriting.add("Sub", [name, rewriting.constant("offset", offset)], last)
    if len(scale):
        rewriting.add("Mul", [name, rewriting.constant("scale", scale)], rewriting.output)
    elif not len(offset):
        rewriting.add("Identity", [name], rewriting.output)


def normalizer(rewriting: Rewriting) -> None:
    """Shares of a sum that is 1 already: what exporters write behind probabilities."""
    before, name = rewriting.before, rewriting.node.input[0]
    norm = str(rewriting.attributes.get("norm", "MAX"))
    if norm != "L1" or before is None or not sums_to_one(before):
        advice = f"normalise before the model, or choose what it reads as the result (--result {name})"
        rewriting.refuse(f"with norm={norm}, which divides by activations", advice)
    rewriting.add("Identity", [name], rewriting.output)


def extractor(rewriting: Rewriting) -> None:
    """Some of the features, by constant places."""
    name, places = rewriting.node.input
    if places not in rewriting.stored:
        rewriting.refuse("with computed places", "choose an earlier result (--result NAME)")
    chosen = numpy_helper.to_array(rewriting.stored[places]).astype(np.int64).ravel()
    rewriting.add("Gather", [name, rewriting.constant("places", chosen)], rewriting.output, axis=1)


def sums_to_one(node: onnx.NodeProto) -> bool:
    """Whether a node writes positive numbers whose sum is 1: a softmax, or a logistic function and what it lacks."""
    given = attributes(node)
    if node.op_type == "Softmax" or given.get("post_transform") == "SOFTMAX":
        return True
    if node.op_type != "LinearClassifier" or given.get("post_transform") != "LOGISTIC":
        return False
    bias = np.asarray(given.get("intercepts", ()))
    rows = np.asarray(given["coefficients"]).reshape(max(len(bias), 1), -1)
    return len(rows) == 1 or (len(rows) == 2 and np.array_equal(rows[0], -rows[1]) and bool(bias[0] == -bias[1]))


def kernel(rewriting: Rewriting, vectors: Floats, combination: Floats, bias: Floats, output: str) -> str:
    """`combination` (outputs, vectors) of a kernel between the input and each of the support `vectors`."""
    kind, name = str(rewriting.attributes.get("kernel_type", "LINEAR")), rewriting.node.input[0]
    gamma, constant, degree = (*map(float, rewriting.attributes.get("kernel_params", ())), 0.0, 0.0, 0.0)[:3]
    if kind == "LINEAR" or (kind == "POLY" and degree == 1):
        factor, shift = (1.0, 0.0) if kind == "LINEAR" else (gamma, constant)
        weight = np.asarray(factor * (combination @ vectors), np.float32)
        return rewriting.dense(name, weight, np.asarray(bias + shift * combination.sum(axis=1), np.float32), output)
    if kind == "RBF":
        values = radial(rewriting, vectors, gamma, output)
        return rewriting.dense(values, combination, bias, output)
    if kind not in ("POLY", "SIGMOID") or (kind == "POLY" and degree not in range(2, MOST_DEGREES + 1)):
        shown = f"a polynomial of degree {degree:g}" if kind == "POLY" else kind
        advice = f"use a linear kernel, RBF, a sigmoid, or a polynomial of degree 1 to {MOST_DEGREES}"
        rewriting.refuse(f"with kernel {shown}", advice)
    products = f"{output}.products"
    shifts = np.full(len(vectors), constant, np.float32)
    rewriting.dense(name, np.float32(gamma) * vectors, shifts, products)
    values = (
        rewriting.add("Tanh", [products], f"{output}.kernel")
        if kind == "SIGMOID"
        else power(rewriting, products, int(degree), output)
    )
    return rewriting.dense(values, combination, bias, output)


def radial(rewriting: Rewriting, vectors: Floats, gamma: float, output: str) -> str:
    """exp(-gamma |x - v|^2) for each of `vectors`, of products and squares; what is below exp(-8) counts as that."""
    name, ones = rewriting.node.input[0], np.full(vectors.shape, -gamma, np.float32)
    squares = rewriting.add("Mul", [name, name], f"{output}.squares")
    lengths = rewriting.dense(squares, ones, np.zeros(len(vectors), np.float32), f"{output}.lengths")
    shifts = np.asarray(-gamma * (vectors.astype(np.float64) ** 2).sum(axis=1), np.float32)
    products = rewriting.dense(name, np.float32(2 * gamma) * vectors, shifts, f"{output}.products")
    exponents = rewriting.add("Add", [lengths, products], f"{output}.exponents")
    ends = [f"{output}.least", f"{output}.most"]
    limits = (np.array(LEAST_EXPONENT, np.float32), np.array(0.0, np.float32))
    rewriting.constants += [numpy_helper.from_array(limit, end) for limit, end in zip(limits, ends, strict=True)]
    cut = rewriting.add("Clip", [exponents, *ends], f"{output}.cut")
    return rewriting.add("Exp", [cut], f"{output}.kernel")


def power(rewriting: Rewriting, name: str, degree: int, output: str) -> str:
    """A power by squares and products."""
    two = rewriting.constant("two", np.float32(2))
    square = rewriting.add("Pow", [name, two], f"{output}.square")
    if degree == 2:
        return square
    if degree == 3:
        return rewriting.add("Mul", [square, name], f"{output}.cube")
    return rewriting.add("Pow", [square, two], f"{output}.fourth")


def svm_regressor(rewriting: Rewriting) -> None:
    """A combination of kernels; without support vectors a linear model."""
    given = rewriting.attributes
    if rewriting.transform() != "NONE" or given.get("one_class", 0):
        rewriting.refuse("with post_transform or of one class", "export it without them")
    count, combination = int(given.get("n_supports", 0)), rewriting.floats("coefficients")
    bias = rewriting.floats("rho")
    if count == 0:
        rewriting.dense(rewriting.node.input[0], combination[None], bias, rewriting.output)
        return
    vectors = rewriting.floats("support_vectors").reshape(count, -1)
    kernel(rewriting, vectors, combination[None], bias, rewriting.output)


def svm_classifier(rewriting: Rewriting) -> None:
    """One score for each pair of classes, as they are; of two classes the score of each."""
    counts = [int(count) for count in rewriting.attributes.get("vectors_per_class", ())]
    if len(counts) < 2 or rewriting.transform() != "NONE" or len(rewriting.floats("prob_a")):
        rewriting.refuse("with probabilities or without support vectors", "train it with probability=False")
    vectors = rewriting.floats("support_vectors").reshape(sum(counts), -1)
    combination = pairs(rewriting.floats("coefficients").reshape(len(counts) - 1, -1), counts)
    bias = rewriting.floats("rho")
    if len(counts) == 2:
        combination, bias = np.concatenate([-combination, combination]), np.concatenate([-bias, bias])
    kernel(rewriting, vectors, combination, bias, rewriting.output)
    label(rewriting)


def pairs(coefficients: Floats, counts: Sequence[int]) -> Floats:
    """For each pair of classes, what every support vector counts: those of other classes nothing."""
    ends = np.cumsum([0, *counts])
    rows = []
    for first in range(len(counts)):
        for second in range(first + 1, len(counts)):
            row = np.zeros(coefficients.shape[1], np.float32)
            for one, other in ((first, second - 1), (second, first)):
                row[ends[one] : ends[one + 1]] = coefficients[other, ends[one] : ends[one + 1]]
            rows.append(row)
    return np.stack(rows)


CLASSICAL: Mapping[str, Callable[[Rewriting], None]] = {
    "ArrayFeatureExtractor": extractor,
    "LinearClassifier": linear_classifier,
    "LinearRegressor": linear_regressor,
    "Normalizer": normalizer,
    "SVMClassifier": svm_classifier,
    "SVMRegressor": svm_regressor,
    "Scaler": scaler,
}
