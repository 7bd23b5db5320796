"""Ensembles in ONNX graphs: TreeEnsembleClassifier, TreeEnsembleRegressor and TreeEnsemble of the domain `ai.onnx.ml`.

The attributes are those of https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsemble.html and of its forerunners.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tacit.errors import UnsupportedError
from tacit.importers.trees.cuts import Cuts, at_most, below, equal_to
from tacit.importers.trees.ensemble import Tree
from tacit.importers.trees.grower import Grower

MOST_RESULTS = 1 << 16
MOST_VALUES = 1 << 24
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""Kinds of tests, by their number in TreeEnsemble."""
LEAF_MODE = "LEAF"
Attributes = Mapping[str, Any]
Children = tuple[int, int]


@dataclass(frozen=True)
class Forest:
    """What a node computes before its last function: `base[k]` and the leaves, over `divisor`."""

    trees: tuple[Tree, ...]
    base: tuple[float, ...]
    divisor: float
    transform: str


def refuse(node: onnx.NodeProto, what: str, instead: str) -> NoReturn:
    """Raise `UnsupportedError` naming the node."""
    name = node.name or (node.output[0] if node.output else node.op_type)
    error = UnsupportedError(f"node `{name}`: {node.op_type} {what}; {instead}")
    error.node = name
    raise error


def attributes(node: onnx.NodeProto) -> Attributes:
    """Attributes as plain values: texts as str, tensors as arrays."""
    found: dict[str, Any] = {}
    for entry in node.attribute:
        value = helper.get_attribute_value(entry)
        if isinstance(value, onnx.TensorProto):
            value = numpy_helper.to_array(value)
        elif isinstance(value, bytes):
            value = value.decode()
        elif isinstance(value, list) and value and isinstance(value[0], bytes):
            value = [each.decode() for each in value]
        found[entry.name] = value
    return found


def numbers(given: Attributes, name: str, dtype: Any = np.int64) -> NDArray[Any]:
    """An attribute that is a list of numbers, or the tensor in its place; empty where both are absent."""
    value = given.get(f"{name}_as_tensor", given.get(name, ()))
    return np.asarray(value, dtype).ravel()


def test(mode: str, value: float, missing_true: bool, members: Sequence[float] = ()) -> Cuts:
    """The test of a node; where it holds it goes left. NaN holds in no comparison but that it differs."""
    if mode == "BRANCH_LEQ":
        return at_most(value, missing_true)
    if mode == "BRANCH_LT":
        return below(value, missing_true)
    if mode in ("BRANCH_GTE", "BRANCH_GT"):
        other = below(value, missing_true) if mode == "BRANCH_GTE" else at_most(value, missing_true)
        return Cuts(other.cuts, not other.low_left, missing_true)
    if mode == "BRANCH_NEQ":
        return equal_to([value], True, inside_left=False)
    return equal_to(members if mode == "BRANCH_MEMBER" else [value], missing_true)


def forest(node: onnx.NodeProto) -> Forest:
    """The trees of a node; raises `ValueError` for attributes that do not fit together."""
    given = attributes(node)
    if node.op_type == "TreeEnsemble":
        return newer(node, given)
    return older(node, given)


def older(node: onnx.NodeProto, given: Attributes) -> Forest:
    """TreeEnsembleClassifier and TreeEnsembleRegressor: nodes with numbers of their own in each tree."""
    classifies = node.op_type == "TreeEnsembleClassifier"
    role = "class" if classifies else "target"
    owners = list(zip(numbers(given, f"{role}_treeids"), numbers(given, f"{role}_nodeids"), strict=True))
    targets, weights = numbers(given, f"{role}_ids"), numbers(given, f"{role}_weights", np.float64)
    results = class_count(given) if classifies else int(given.get("n_targets", 1))
    if not 1 <= results <= MOST_RESULTS or not len(owners) == len(targets) == len(weights):
        raise ValueError(f"{len(owners)} weights for {results} results")
    single = classifies and results == 2 and len(set(targets.tolist())) == 1
    if single:
        # The score of one of two classes.
        results, targets = 1, targets * 0
    if len(targets) and not (targets.min() >= 0 and targets.max() < results):
        raise ValueError("a weight for a result that there is not")
    places = {
        key: at
        for at, key in enumerate(zip(*(numbers(given, f"nodes_{name}").tolist() for name in KEYS), strict=False))
    }
    leaves: dict[int, list[tuple[int, float]]] = {}
    for owner, target, weight in zip(owners, targets.tolist(), weights.tolist(), strict=True):
        leaves.setdefault(places[int(owner[0]), int(owner[1])], []).append((target, weight))
    nodes = Nodes.of(given, len(places))
    owned = numbers(given, "nodes_treeids").tolist()

    def children(at: int) -> Children:
        return (places[owned[at], int(nodes.true[at])], places[owned[at], int(nodes.false[at])])

    roots = [at for at, (tree, _) in enumerate(places) if at == 0 or owned[at - 1] != tree]
    if len({owned[at] for at in roots}) != len(roots):
        raise ValueError("nodes of a tree that do not lie together")
    trees = grown(roots, nodes, children, lambda at: leaves.get(at, []), results)
    base = numbers(given, "base_values", np.float64)
    return summed(node, given, trees, base[:1] if single else base, results)


KEYS = ("treeids", "nodeids")


def class_count(given: Attributes) -> int:
    """The number of classes, which have numbers or names."""
    return max(len(given.get("classlabels_int64s", ())), len(given.get("classlabels_strings", ())))


def newer(node: onnx.NodeProto, given: Attributes) -> Forest:
    """TreeEnsemble: children by their place, among nodes or among leaves, and sets of members."""
    results = int(given.get("n_targets", 1))
    targets, weights = numbers(given, "leaf_targetids"), numbers(given, "leaf_weights", np.float64)
    if not 1 <= results <= MOST_RESULTS or len(targets) != len(weights):
        raise ValueError(f"{len(weights)} leaves for {results} results")
    if len(targets) and not (targets.min() >= 0 and targets.max() < results):
        raise ValueError("a leaf for a result that there is not")
    codes = numbers(given, "nodes_modes").tolist()
    if not all(0 <= code < len(MODES) for code in codes):
        raise ValueError("tests of a kind that there is not")
    count = len(codes)
    nodes = Nodes.of({**given, "nodes_modes": [MODES[code] for code in codes]}, count, members(given, codes))
    inner = [numbers(given, f"nodes_{side}leafs").astype(bool) for side in ("true", "false")]
    ends = [nodes.true, nodes.false]
    if any(len(flags) != count for flags in inner):
        raise ValueError("lists of different lengths")

    def children(at: int) -> Children:
        # Leaves stand behind all nodes.
        places = [int(end[at]) + count * int(flags[at]) for end, flags in zip(ends, inner, strict=True)]
        if min(int(end[at]) for end in ends) < 0 or any(
            place >= count and not flags[at] for place, flags in zip(places, inner, strict=True)
        ):
            raise ValueError(f"node {at} has children that are none")
        return places[0], places[1]

    def leaf(at: int) -> list[tuple[int, float]]:
        return [(int(targets[at - count]), float(weights[at - count]))]

    roots = numbers(given, "tree_roots").tolist()
    # A tree of one leaf is a node both of whose children are that leaf.
    trees = grown(roots, nodes, children, leaf, results)
    aggregate = {0: "AVERAGE", 1: "SUM", 2: "MIN", 3: "MAX"}.get(int(given.get("aggregate_function", 1)), "?")
    transforms = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    changed = {"aggregate_function": aggregate, "post_transform": transforms[int(given.get("post_transform", 0))]}
    return summed(node, {**given, **changed}, trees, np.zeros(0), results)


def members(given: Attributes, codes: list[int]) -> dict[int, list[float]]:
    """The set of each node that tests for one: NaN stands between them."""
    values = numbers(given, "membership_values", np.float64)
    ends = np.flatnonzero(np.isnan(values))
    groups = [group[~np.isnan(group)].tolist() for group in np.split(values, ends)]
    tests = [at for at, code in enumerate(codes) if MODES[code] == "BRANCH_MEMBER"]
    if len(groups) < len(tests):
        raise ValueError("fewer sets of members than tests for them")
    return dict(zip(tests, groups, strict=False))


@dataclass(frozen=True)
class Nodes:
    """The lists of all nodes."""

    modes: Sequence[str]
    features: NDArray[np.int64]
    values: NDArray[np.float64]
    true: NDArray[np.int64]
    false: NDArray[np.int64]
    missing: NDArray[np.bool_]
    members: Mapping[int, list[float]]

    @classmethod
    def of(cls, given: Attributes, count: int, sets: Mapping[int, list[float]] | None = None) -> "Nodes":
        """The lists, all of one length."""
        missing = numbers(given, "nodes_missing_value_tracks_true").astype(bool)
        values = numbers(given, "nodes_splits" if sets is not None else "nodes_values", np.float64)
        made = cls(
            list(given.get("nodes_modes", ())),
            numbers(given, "nodes_featureids"),
            values,
            numbers(given, "nodes_truenodeids"),
            numbers(given, "nodes_falsenodeids"),
            missing if len(missing) else np.zeros(count, np.bool_),
            sets or {},
        )
        lengths = {len(each) for each in (made.modes, made.features, made.values, made.true, made.false, made.missing)}
        if lengths != {count}:
            raise ValueError(f"lists of different lengths for {count} nodes")
        return made


def grown(
    roots: Iterable[int],
    nodes: Nodes,
    children: Callable[[int], Children],
    leaf: Callable[[int], Sequence[tuple[int, float]]],
    results: int,
) -> tuple[Tree, ...]:
    """The trees with these roots; every node belongs to one parent, but leaves may be shared."""
    reached: set[int] = set()
    made = []
    values = 0
    for root in roots:
        places, below_of = [root], {}
        for at, place in enumerate(places):
            if place >= len(nodes.modes) or nodes.modes[place] == LEAF_MODE:
                continue
            if place < 0 or place in reached:
                raise ValueError(f"node {place} is reached twice")
            reached.add(place)
            below_of[at] = (len(places), len(places) + 1)
            places += children(place)
        values += len(places) * results
        if values > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES} values of nodes")
        grower = Grower(len(places), results)
        for at, place in enumerate(places):
            if at not in below_of:
                for target, weight in leaf(place):
                    grower.value[at, target] += weight
                continue
            mode, value = nodes.modes[place], float(nodes.values[place])
            if mode not in MODES or (np.isnan(value) and mode != "BRANCH_MEMBER"):
                raise ValueError(f"node {place} has the mode {mode} and the value {value}")
            cuts = test(mode, value, bool(nodes.missing[place]), nodes.members.get(place, ()))
            grower.test(at, int(nodes.features[place]), cuts, below_of[at])
        made.append(grower.tree())
    if not made:
        raise ValueError("an ensemble without trees")
    # A root that is not the first node of its tree would leave some out.
    if len(reached) != sum(mode != LEAF_MODE for mode in nodes.modes):
        raise ValueError("nodes that no root leads to")
    return tuple(made)


def summed(
    node: onnx.NodeProto, given: Attributes, trees: tuple[Tree, ...], base: NDArray[np.float64], results: int
) -> Forest:
    """The forest, where leaves are added up or averaged."""
    aggregate = str(given.get("aggregate_function", "SUM"))
    if aggregate not in ("SUM", "AVERAGE"):
        refuse(node, f"with aggregate_function={aggregate}", "only sums and averages of leaves are run")
    if len(base) not in (0, results):
        raise ValueError(f"{len(base)} base values for {results} results")
    divisor = float(len(trees)) if aggregate == "AVERAGE" else 1.0
    # An average leaves what is added to it alone.
    whole = tuple((base * divisor).tolist()) if len(base) else (0.0,) * results
    return Forest(trees, whole, divisor, str(given.get("post_transform", "NONE")))
