"""Fitted estimators of scikit-learn whose scores are sums, or few functions of sums, as layers.

Names and shapes of attributes are those of scikit-learn. Nothing here imports the package.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit.data.links import Link
from tacit.data.schema import Result
from tacit.importers.classical import LEAST_EXPONENT
from tacit.importers.pipelines.columns import refuse
from tacit.importers.trees.estimators import kinds

Values = NDArray[np.float64]
OPSET = 17


@dataclass(frozen=True)
class Dense:
    """A sum for each output: `weight` (outputs, inputs) and `bias` (outputs,)."""

    weight: Values
    bias: Values


@dataclass(frozen=True)
class Function:
    """An operator of ONNX on each number."""

    operator: str


@dataclass(frozen=True)
class Quadratic:
    """`square` (outputs, inputs) times squares, plus a sum as of `Dense`."""

    square: Values
    weight: Values
    bias: Values


Layer = Dense | Function | Quadratic


@dataclass(frozen=True)
class Scores:
    """Layers one after another, and what their results mean."""

    layers: tuple[Layer, ...]
    result: Result

    @property
    def is_linear(self) -> bool:
        """Whether a single sum makes the scores."""
        return len(self.layers) == 1 and isinstance(self.layers[0], Dense)


def of_estimator(estimator: Any) -> Scores | None:
    """The scores of a fitted estimator; None for one that is not known here."""
    found = next(
        (READERS[name] for package, name in kinds(estimator) if package == "sklearn" and name in READERS), None
    )
    return None if found is None else found(estimator)


def classes(estimator: Any) -> tuple[str, ...]:
    """The names of the classes."""
    return tuple(map(str, np.asarray(estimator.classes_).tolist()))


def classified(names: tuple[str, ...], link: tuple[str, str] = ("", "")) -> Result:
    """Of two classes one score, of more a score each; `link` is that of two and that of more."""
    chosen = link[len(names) > 2]
    return Result("margin" if len(names) == 2 else "scores", names, link=Link(chosen) if chosen else None)


def linear_classifier(estimator: Any) -> Scores:
    """The decision function: a score of the second of two classes, or of each of more."""
    names = classes(estimator)
    layer = Dense(np.atleast_2d(np.asarray(estimator.coef_, np.float64)), vector(estimator.intercept_))
    likely = any(name in ("LogisticRegression", "LinearDiscriminantAnalysis") for _, name in kinds(estimator))
    return Scores((broad(layer),), classified(names, ("sigmoid", "softmax") if likely else ("", "")))


def linear_regressor(estimator: Any) -> Scores:
    """Estimates, before a link where there is one."""
    layer = Dense(np.atleast_2d(np.asarray(estimator.coef_, np.float64)), vector(estimator.intercept_))
    logarithm = any(name in ("PoissonRegressor", "GammaRegressor") for _, name in kinds(estimator))
    return Scores((broad(layer),), Result("value", link=Link("exp") if logarithm else None))


def vector(given: Any) -> Values:
    """Numbers (outputs,) of a number or several."""
    return np.atleast_1d(np.asarray(given, np.float64)).ravel()


def broad(layer: Dense) -> Dense:
    """The layer with a bias for each output."""
    return Dense(layer.weight, np.broadcast_to(layer.bias, len(layer.weight)).copy())


def k_means(estimator: Any) -> Scores:
    """The nearest centre has the largest 2 x c - c c, which is what distances differ by."""
    centres = np.asarray(estimator.cluster_centers_, np.float64)
    names = tuple(map(str, range(len(centres))))
    return Scores((Dense(2 * centres, -(centres**2).sum(axis=1)),), Result("scores", names))


def differences(layer: Dense, names: tuple[str, ...], link: tuple[str, str] = ("", "")) -> Scores:
    """Scores of all classes; of two the second less the first."""
    if len(names) == 2:
        layer = Dense(layer.weight[1:] - layer.weight[:1], layer.bias[1:] - layer.bias[:1])
    return Scores((layer,), classified(names, link))


def multinomial(estimator: Any) -> Scores:
    """Multinomial naive Bayes: joint log likelihoods, which are sums."""
    weights, priors = np.asarray(estimator.feature_log_prob_), np.asarray(estimator.class_log_prior_)
    return differences(Dense(weights, priors), classes(estimator), ("sigmoid", "softmax"))


def bernoulli(estimator: Any) -> Scores:
    """Bernoulli naive Bayes of zeros and ones."""
    if estimator.binarize not in (None, 0, 0.0):
        refuse(f"BernoulliNB(binarize={estimator.binarize})", "give it zeros and ones, and leave binarize at 0")
    present = np.asarray(estimator.feature_log_prob_, np.float64)
    absent = np.log1p(-np.exp(present))
    bias = np.asarray(estimator.class_log_prior_) + absent.sum(axis=1)
    return differences(Dense(present - absent, bias), classes(estimator), ("sigmoid", "softmax"))


def gaussian(estimator: Any) -> Scores:
    """Gaussian naive Bayes: joint log likelihoods, sums of squares; of columns brought to one size first."""
    means, variances = np.asarray(estimator.theta_, np.float64), np.asarray(estimator.var_, np.float64)
    middle, size = means.mean(axis=0), np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    means, variances = (means - middle) / size, variances / size**2
    constant = np.log(np.asarray(estimator.class_prior_)) - 0.5 * np.log(2 * np.pi * variances * size**2).sum(axis=1)
    square, weight = -0.5 / variances, means / variances
    bias = constant - 0.5 * (means**2 / variances).sum(axis=1)
    names = classes(estimator)
    if len(names) == 2:
        square, weight, bias = (each[1:] - each[:1] for each in (square, weight, bias))
    even = Dense(np.diag(1 / size), -middle / size)
    return Scores((even, Quadratic(square, weight, bias)), classified(names, ("sigmoid", "softmax")))


def support_vectors(estimator: Any) -> Scores:
    """SVC, NuSVC, SVR, NuSVR and OneClassSVM: a weighted sum of kernels with support vectors."""
    if getattr(estimator, "_sparse", False) or callable(estimator.kernel) or estimator.kernel == "precomputed":
        refuse("a support vector machine of sparse data or with a kernel of its own", "use a built-in kernel")
    vectors = np.asarray(estimator.support_vectors_, np.float64)
    bias = vector(estimator.intercept_)
    weights = np.asarray(estimator.dual_coef_, np.float64)
    if hasattr(estimator, "classes_") and len(estimator.classes_) > 2:
        refuse("a support vector machine of more than two classes", "use LinearSVC, or one machine for each class")
    result = classified(classes(estimator)) if hasattr(estimator, "classes_") else Result("value")
    if type(estimator).__name__ == "OneClassSVM":
        result = Result("margin", ("-1", "1"))
    last = Dense(weights, bias)
    gamma, free, degree = float(estimator._gamma), float(estimator.coef0), int(estimator.degree)
    if estimator.kernel == "linear":
        return Scores((Dense(weights @ vectors, bias),), result)
    if estimator.kernel == "rbf":
        ones = np.full((len(vectors), vectors.shape[1]), -gamma)
        distances = Quadratic(ones, 2 * gamma * vectors, -gamma * (vectors**2).sum(axis=1))
        return Scores((distances, Function("Exp"), last), result)
    products = Dense(gamma * vectors, np.full(len(vectors), free))
    if estimator.kernel == "sigmoid":
        return Scores((products, Function("Tanh"), last), result)
    powers: Mapping[int, tuple[Layer, ...]] = {1: (), 2: (Function("Square"),), 3: (Function("Cube"),)}
    if degree not in powers:
        refuse(f"a polynomial kernel of degree {degree}", "use degree 1, 2 or 3, or a kernel of radial basis functions")
    return Scores((products, *powers[degree], last), result)


def perceptrons(estimator: Any) -> Scores:
    """MLPClassifier and MLPRegressor: the last layer's sums."""
    functions = {"relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid", "identity": None}
    between = functions[str(estimator.activation)]
    layers: list[Layer] = []
    for weight, bias in zip(estimator.coefs_, estimator.intercepts_, strict=True):
        layers += [Function(between)] if layers and between is not None else []
        layers.append(Dense(np.asarray(weight, np.float64).T, vector(bias)))
    if not hasattr(estimator, "classes_"):
        return Scores(tuple(layers), Result("value"))
    if estimator.out_activation_ == "logistic" and len(estimator.classes_) != 2:
        refuse("an MLPClassifier of several labels at once", "train a network for each label")
    return Scores(tuple(layers), classified(classes(estimator), ("sigmoid", "softmax")))


def neighbours(estimator: Any) -> Scores:
    """Nearest neighbours need all rows of the training data for each answer."""
    return refuse(
        f"{type(estimator).__name__}, which compares each row with the whole training data",
        "train gradient boosted trees, a forest, or a support vector machine on it",
    )


Reader = Callable[[Any], Scores]
READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("LinearClassifierMixin", "BaseSGDClassifier"), linear_classifier),
    **dict.fromkeys(
        ("LinearRegression", "LinearModel", "BaseSGDRegressor", "LinearSVR", "_GeneralizedLinearRegressor"),
        linear_regressor,
    ),
    **dict.fromkeys(("KNeighborsMixin", "RadiusNeighborsMixin"), neighbours),
    **dict.fromkeys(("BaseMultilayerPerceptron",), perceptrons),
    **dict.fromkeys(("BaseLibSVM",), support_vectors),
    "BernoulliNB": bernoulli,
    "GaussianNB": gaussian,
    "KMeans": k_means,
    "MiniBatchKMeans": k_means,
    "MultinomialNB": multinomial,
}
"""Readers by the name of a class, or of one that it is made of."""


def sizes(x: NDArray[np.float32]) -> Values:
    """A power of two that is not below the magnitude of each feature of `x` (N, features)."""
    largest = np.abs(x.astype(np.float64)).max(axis=0)
    return np.asarray(np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0)))), np.float64)


def network(scores: Scores, first: Dense, units: Values) -> onnx.ModelProto:
    """Layers behind `first` as a model of ONNX of inputs (N, features); sums that follow one another become one.

    It begins with factors that undo the `units` (features,) of inputs, so that those become part of the first layer.
    """
    made = Graph(first.weight.shape[1])
    name, waiting = "input", first
    if len(units) > 1:
        name, waiting = made.add("Mul", [name, made.constant(1 / units)]), Dense(first.weight * units, first.bias)
    pending = True
    for layer in scores.layers:
        if isinstance(layer, Dense):
            waiting = (
                Dense(layer.weight @ waiting.weight, layer.weight @ waiting.bias + layer.bias) if pending else layer
            )
            pending = True
            continue
        if pending and not is_identity(waiting):
            name = made.dense(name, waiting)
        pending = False
        name = made.quadratic(name, layer) if isinstance(layer, Quadratic) else made.function(name, layer)
    if pending:
        name = made.dense(name, waiting)
    return made.model(name)


def is_identity(layer: Dense) -> bool:
    """Whether a layer changes nothing."""
    rows, columns = layer.weight.shape
    return rows == columns and not layer.bias.any() and bool((layer.weight == np.eye(rows)).all())


class Graph:
    """A model of ONNX that grows at its end."""

    def __init__(self, features: int) -> None:
        """Begin with inputs (N, features)."""
        self.features, self.width = features, features
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []

    def add(self, operator: str, inputs: Sequence[str], **settings: Any) -> str:
        """A node that is named after its place; gives its output."""
        name = f"{operator.lower()}{len(self.nodes) + 1}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name, **settings))
        return name

    def constant(self, value: Values) -> str:
        """Store a constant."""
        name = f"constant{len(self.constants) + 1}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def dense(self, name: str, layer: Dense) -> str:
        """A sum for each output."""
        self.width = len(layer.bias)
        return self.add("Gemm", [name, self.constant(layer.weight), self.constant(layer.bias)], transB=1)

    def quadratic(self, name: str, layer: Quadratic) -> str:
        """Sums of squares and of the numbers themselves."""
        squares = self.add("Mul", [name, name])
        sums = self.dense(name, Dense(layer.weight, layer.bias))
        return self.add("Add", [self.dense(squares, Dense(layer.square, np.zeros(len(layer.bias)))), sums])

    def function(self, name: str, layer: Function) -> str:
        """An operator on each number."""
        if layer.operator == "Square":
            return self.add("Mul", [name, name])
        if layer.operator == "Cube":
            return self.add("Mul", [self.add("Mul", [name, name]), name])
        if layer.operator == "Exp":
            name = self.add("Clip", [name, self.constant(np.array(LEAST_EXPONENT)), self.constant(np.array(0.0))])
        return self.add(layer.operator, [name])

    def model(self, name: str) -> onnx.ModelProto:
        """The model whose result is `name`."""
        ends = [("input", self.features), (name, self.width)]
        given, made = (helper.make_tensor_value_info(end, TensorProto.FLOAT, ["N", width]) for end, width in ends)
        graph = helper.make_graph(self.nodes, "pipeline", [given], [made], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
