"""ONNX graphs whose only real node is an ensemble of trees.

`find` gives the ensemble and what stands before and behind it, so that importers of pipelines can begin there.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from tacit.data.links import Link
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.onnx import load
from tacit.importers.packed import packed, unpack
from tacit.importers.trees.ensemble import Ensemble
from tacit.importers.trees.onnx_nodes import attributes, forest, refuse

DOMAIN = "ai.onnx.ml"
ENSEMBLES = frozenset({"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"})
MARK = b"TreeEnsemble"
MOST_SCANNED = 1 << 31
PLAIN_BEFORE = frozenset({"Identity", "Cast"})
PLAIN_BEHIND = frozenset(
    {"ArgMax", "ArrayFeatureExtractor", "Cast", "Flatten", "Identity", "Reshape", "Squeeze", "ZipMap"}
)
"""Nodes behind an ensemble that make nothing new of scores: labels and other shapes."""
TRANSFORMS = {"NONE": None, "LOGISTIC": "sigmoid", "SOFTMAX": "softmax"}
FUNCTIONS = {"Sigmoid": "sigmoid", "Softmax": "softmax", "Exp": "exp"}


@dataclass(frozen=True)
class Found:
    """An ensemble in a graph: its node, and the nodes that it depends on and that depend on it, in order."""

    node: onnx.NodeProto
    before: tuple[onnx.NodeProto, ...]
    behind: tuple[onnx.NodeProto, ...]


def mentions_ensemble(path: Path) -> bool:
    """Whether a file may have an ensemble of trees, without reading it as a model."""
    if not path.is_file() or path.stat().st_size > MOST_SCANNED:
        return False
    return scanned(path.absolute(), path.stat().st_mtime_ns, path.stat().st_size)


@lru_cache(maxsize=16)
def scanned(path: Path, _written: int, _size: int) -> bool:
    """Whether a file has the operators' name in it; a file that did not change is not read again."""
    if packed(path):
        return MARK in unpack(path)
    before = b""
    with path.open("rb") as file:
        while piece := file.read(1 << 24):
            if MARK in before + piece:
                return True
            before = piece[-len(MARK) :]
    return False


def find(model: onnx.ModelProto) -> Found | None:
    """The ensemble of a graph, None without one.

    Raises `UnsupportedError` for several, and `MisuseError` for nodes that are not in order.
    """
    nodes = list(model.graph.node)
    ensembles = [at for at, node in enumerate(nodes) if node.op_type in ENSEMBLES and node.domain == DOMAIN]
    if not ensembles:
        return None
    if len(ensembles) > 1:
        refuse(nodes[ensembles[1]], "beside another ensemble", "compile the estimator itself, or one ensemble alone")
    at = ensembles[0]
    needed, made = set(nodes[at].input), set(nodes[at].output)
    before = []
    for node in reversed(nodes[:at]):
        if needed.intersection(node.output):
            needed.update(node.input)
            before.append(node)
    behind = []
    for node in nodes[at + 1 :]:
        if made.intersection(node.input):
            made.update(node.output)
            behind.append(node)
    return Found(nodes[at], tuple(reversed(before)), tuple(behind))


def stands_alone(path: Path) -> bool:
    """Whether a file has an ensemble that reads the model's input as it is."""
    found = find(load(path))
    return found is not None and all(node.op_type in PLAIN_BEFORE for node in found.before)


def read_graph(path: Path) -> Ensemble | None:
    """The ensemble of an ONNX file, None where other nodes than ensembles are all there is."""
    model = load(path)
    found = find(model)
    if found is None:
        return None
    for node in found.before:
        if node.op_type not in PLAIN_BEFORE:
            refuse(node, "before an ensemble of trees", "compile the pipeline itself, or give the ensemble its inputs")
    return of_node(model, found, path.stem)


def of_node(model: onnx.ModelProto, found: Found, name: str, features: int | None = None) -> Ensemble:
    """The ensemble of a node; its link is that of its own last function, or of nodes behind it.

    It reads as many `features` as are given, or else as the model's input has.
    """
    node = found.node
    try:
        grown = forest(node)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise MisuseError(
            f"node `{node.name}`: {node.op_type} is damaged ({type(error).__name__}: {error}); export the model again"
        ) from error
    if grown.transform not in TRANSFORMS:
        refuse(node, f"with post_transform={grown.transform}", "use NONE, LOGISTIC or SOFTMAX")
    function = behind(model, found, TRANSFORMS[grown.transform])
    link = None if function is None else Link(function)
    given = attributes(node)
    classes = tuple(map(str, given.get("classlabels_strings") or given.get("classlabels_int64s") or ()))
    notes = [] if link is None else [f"results are scores: {link.words}"]
    if len(classes) == 2 and len(grown.base) == 1:
        notes.append(f"the result is the score of class {classes[1]}, against class {classes[0]}")
    tested = max((int(tree.feature.max()) for tree in grown.trees), default=0) + 1
    return Ensemble(
        name=name,
        features=features or width(model, found, max(tested, 1)),
        base=grown.base,
        trees=grown.trees,
        divisor=grown.divisor,
        labels=classes if len(classes) == len(grown.base) else (),
        notes=tuple(notes),
        link=link,
    )


def behind(model: onnx.ModelProto, found: Found, function: str | None) -> str | None:
    """The last function of all: the ensemble's own, or that of a node behind it."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in found.behind:
        if node.op_type in FUNCTIONS and function is None:
            function = FUNCTIONS[node.op_type]
        elif node.op_type not in PLAIN_BEHIND and not is_plain(node, stored):
            refuse(node, "behind an ensemble of trees", "export the model without what follows the trees")
    return function


def is_plain(node: onnx.NodeProto, stored: dict[str, onnx.TensorProto]) -> bool:
    """Whether a node gives what it reads: a product with ones, or probabilities that are made to add up to one."""
    if node.op_type == "Normalizer":
        return str(attributes(node).get("norm", "MAX")) == "L1"
    factors = [numpy_helper.to_array(stored[name]) for name in node.input if name in stored]
    return node.op_type == "Mul" and bool(factors) and all(bool((np.asarray(one) == 1).all()) for one in factors)


def width(model: onnx.ModelProto, found: Found, tested: int) -> int:
    """The number of features: that of the graph's input, or else as many as trees test."""
    names = {found.node.input[0], *(name for node in found.before for name in node.input)}
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = [entry for entry in model.graph.input if entry.name in names and entry.name not in stored]
    if len(inputs) != 1:
        raise UnsupportedError(
            f"an ensemble of trees that reads {len(inputs)} inputs; join the columns before the model"
        )
    sizes = [int(axis.dim_value) for axis in inputs[0].type.tensor_type.shape.dim]
    known = sizes[-1] if len(sizes) == 2 else 0
    if known and known < tested:
        raise MisuseError(f"trees test feature {tested - 1} of {known}; export the model again")
    return known or tested
