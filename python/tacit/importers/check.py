"""Every reason at once why a model cannot be imported, where the import itself stops at the first."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

from tacit.errors import MisuseError, TacitError, UnsupportedError
from tacit.importers.call import Call, Shape
from tacit.importers.casts import as_float32, read_integers
from tacit.importers.classical import refusals, to_onnx
from tacit.importers.ends import flatten_states, join
from tacit.importers.extents import computed, demand_sizes, fix_sizes
from tacit.importers.fold import infer_sizes, simplify
from tacit.importers.forms.control import FIX
from tacit.importers.forms.plain import has_plain_form, plain
from tacit.importers.guard import guarded
from tacit.importers.huggingface import is_directory_of_model
from tacit.importers.onnx import (
    KNOWN,
    Constants,
    Signature,
    called,
    import_onnx,
    infer_shapes,
    is_sequence,
    load,
    operator,
    opset_of,
    prepare,
    sign,
)
from tacit.importers.operators import CONVERTERS
from tacit.importers.rewrite import rewrite
from tacit.importers.selection import select
from tacit.importers.sequence import Ends, begin, convert
from tacit.importers.source import WHOLE, Remarks, Selection
from tacit.importers.time_axis import time_in_front
from tacit.importers.tokens import reads_tokens
from tacit.importers.values import fix_values

MOST_NAMES = 5
STATIC = {"Constant", "Shape", "Size"}
"""Operators whose results are known before there is an input."""
OTHERWISE = "rewrite the layer, or choose an earlier result (--result NAME)"
REMEDIES: Mapping[str, str] = {
    "ArgMax": "leave it to the client: choose the scores it reads as the result (--result NAME)",
    "If": FIX,
    "Loop": FIX,
    "NonMaxSuppression": "leave it to the client: choose the boxes and scores it reads as the result (--result NAME)",
    "Scan": FIX,
    "TopK": "leave it to the client: choose the scores it reads as the result (--result NAME)",
}


@dataclass
class Problems:
    """What was found: errors, each with a remedy in its words, and what the importer chose."""

    errors: list[TacitError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def caught(self) -> Iterator[None]:
        """Keep an error of the block instead of raising it."""
        try:
            yield
        except TacitError as error:
            self.add(error)

    def add(self, error: TacitError) -> None:
        """Keep an error that says something new."""
        if str(error) not in map(str, self.errors):
            self.errors.append(error)

    def listed(self) -> list[dict[str, Any]]:
        """The errors as `--json` shows them."""
        return [{"node": getattr(error, "node", None), "message": str(error)} for error in self.errors]


def check(path: Path, sequence: int | None = None, public: bool = False, selection: Selection = WHOLE) -> Problems:
    """All problems of a model, for inputs of `sequence` tokens if it reads text; none if it can be imported."""
    problems = Problems()
    model = None
    if not is_directory_of_model(path):
        with problems.caught():
            model = load(path)
    if model is not None and not reads_tokens(model):
        check_graph(model, selection, problems)
    if not problems.errors:
        problems.notes.clear()
        with problems.caught():
            problems.notes += import_onnx(path, sequence, public, selection).notes
    return problems


def check_graph(model: onnx.ModelProto, selection: Selection, problems: Problems) -> None:
    """The ends, then the operators, then each node by itself."""
    with problems.caught():
        fix_values(model, selection.values)
    to_onnx(model)
    as_float32(model)
    try:
        select(model, selection, problems.notes)
    except MisuseError as error:
        problems.add(error)
        select(model, WHOLE, [])
    for refusal in time_in_front(model):
        problems.add(refusal)
    left = selection
    with problems.caught():
        left = flatten_states(model, selection)
    with problems.caught():
        plain(model, left, Remarks(problems.notes))
    with problems.caught():
        read_integers(model)
    with problems.caught():
        fix_sizes(model, left.shapes, problems.notes)
    for entry in computed(model):
        with problems.caught():
            demand_sizes(entry)
    signature = None
    with problems.caught():
        if not problems.errors:
            join(model, selection, problems.notes)
        signature = sign(model, selection)
    if signature is not None and not problems.errors:
        with problems.caught():
            simplify(model, signature.input_name)
    whole = signature is not None and not problems.errors
    for refusal in [*refusals(model), *unsupported(model)]:
        problems.add(refusal)
    if signature is not None and whole:
        refused: list[UnsupportedError] = []
        with problems.caught():
            rewrite(model, signature.input_name, refused)
        for refusal in refused:
            problems.add(refusal)
        check_nodes(model, signature, problems)


def unsupported(model: onnx.ModelProto) -> list[UnsupportedError]:
    """One error for each operator that no converter reads, with the names of its nodes."""
    explained = {getattr(error, "node", None) for error in refusals(model)}
    unread: dict[str, list[str]] = {}
    static = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type in STATIC or (node.input and all(name in static for name in node.input if name)):
            static.update(node.output)
        elif operator(node) not in KNOWN and node.name not in explained and not has_plain_form(node):
            unread.setdefault(operator(node), []).append(node.name)
    errors = []
    for kind, names in unread.items():
        shown = ", ".join(f"`{name}`" for name in names[:MOST_NAMES])
        rest = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        nodes = "node" if len(names) == 1 else "nodes"
        errors.append(UnsupportedError(f"{nodes} {shown}{rest}: operator {kind} is not supported; {remedy(kind)}"))
        errors[-1].node = names[0]
    return errors


def remedy(kind: str) -> str:
    """What to do about an operator."""
    if "TreeEnsemble" in kind:
        return (
            "decision trees run alone: compile the estimator itself, or a graph without other layers before the trees"
        )
    return REMEDIES.get(kind, OTHERWISE)


def check_nodes(model: onnx.ModelProto, signature: Signature, problems: Problems) -> None:
    """Convert each node whose inputs could be converted, and keep what is refused."""
    constants: Constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    known = [node for node in model.graph.node if operator(node) in KNOWN]
    sizes = None
    with problems.caught():
        sizes = infer_sizes(model, signature.input_name)
    if sizes is None or not known:
        return
    if not is_sequence(known, constants, sizes):
        check_plain(model, signature, constants, problems)
    elif len(known) == len(model.graph.node):
        calls = [called(node.name, node, sizes, constants) for node in known]
        check_sequence(calls, Ends(*signature[:3], states=signature.states), sizes, opset_of(model), problems)


def check_plain(model: onnx.ModelProto, signature: Signature, constants: Constants, problems: Problems) -> None:
    """Nodes one after another; what reads a result that does not exist is not looked at."""
    shapes = infer_shapes(model, signature)
    lost: set[str] = set()
    for node in model.graph.node:
        if lost.intersection(node.input):
            lost.update(node.output)
        elif operator(node) not in KNOWN:
            lost.update(name for name in node.output if name not in shapes)
        else:
            with problems.caught():
                with guarded(node.name, node.op_type):
                    CONVERTERS[node.op_type](prepare(node.name, node, shapes, constants))
                continue
            lost.update(name for name in node.output if name not in shapes)


def check_sequence(
    calls: Sequence[Call], ends: Ends, sizes: Mapping[str, Shape], opset: int, problems: Problems
) -> None:
    """Nodes one after another, in the way of sequence models."""
    weaver, calls = begin(ends, calls, sizes, opset)
    lost: set[str] = set()
    for call in calls:
        if not lost.intersection(call.inputs):
            with problems.caught():
                convert(weaver, call)
                continue
        lost.update(call.outputs)
