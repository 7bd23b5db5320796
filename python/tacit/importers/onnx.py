"""ONNX to the source graph; with `fold`, the only module that imports `onnx`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.call import Call, Shape
from tacit.importers.casts import as_float32, read_integers
from tacit.importers.classical import refusals, to_onnx
from tacit.importers.extents import fix_sizes
from tacit.importers.fold import infer_sizes, named, simplify
from tacit.importers.huggingface import is_directory_of_model, read_directory
from tacit.importers.kinds import remedy
from tacit.importers.layout import MOST_AXES
from tacit.importers.operators import CONVERTERS
from tacit.importers.packed import model_name, packed, unpack
from tacit.importers.rewrite import REWRITES, rewrite
from tacit.importers.selection import select
from tacit.importers.sequence import OPERATORS, Ends, import_sequence
from tacit.importers.source import WHOLE, Selection, Source
from tacit.importers.tokens import fix_tokens, length_of, reads_tokens
from tacit.importers.unified import DOMAIN

OPSETS = range(7, 26)
KNOWN = CONVERTERS.keys() | OPERATORS | REWRITES.keys()
Constants = dict[str, NDArray[Any]]


class Signature(NamedTuple):
    """The model's single input and output; `batched` is false when the file fixes the batch at 1."""

    input_name: str
    input_shape: Shape
    output_name: str
    batched: bool


def import_onnx(path: Path, sequence: int | None = None, public: bool = False, selection: Selection = WHOLE) -> Source:
    """Read an ONNX file, or a directory of Hugging Face for inputs of `sequence` tokens.

    With `public` clients embed their tokens: the model begins after that. `selection` says which part of a file is
    wanted; what the importer chose by itself is in the `notes` of the source.

    Raises `MisuseError` when the file is no valid ONNX model and `UnsupportedError`, naming the
    node and the operator, when it holds something Tacit cannot run.
    """
    notes: list[str] = []
    model = read(path, sequence, public, selection, notes)
    signature = sign(model)
    simplify(model, signature.input_name)
    refuse_unknown(model.graph.node)
    rewrite(model, signature.input_name)
    return replace(import_graph(path, model, signature, public), notes=tuple(notes), selection=selection)


def import_graph(path: Path, model: onnx.ModelProto, signature: Signature, public: bool) -> Source:
    """The source graph of a model that is simplified already."""
    graph_name = model.graph.name or model_name(path)
    if not model.graph.node:
        raise UnsupportedError("the model computes nothing; give a model with at least one operator")
    constants: Constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    sizes = infer_sizes(model, signature.input_name)
    if is_sequence(model.graph.node, constants, sizes):
        calls = [called(node.name, node, sizes, constants) for node in model.graph.node]
        return import_sequence(graph_name, Ends(*signature[:3], public), calls, sizes, opset_of(model))
    return import_plain(graph_name, model, signature, constants)


def import_plain(graph_name: str, model: onnx.ModelProto, signature: Signature, constants: Constants) -> Source:
    """A model all of whose tensors are stored as the model has them."""
    shapes = infer_shapes(model, signature)
    weights: dict[str, NDArray[np.float32]] = {}
    nodes = []
    for node in model.graph.node:
        call = prepare(node.name, node, shapes, constants)
        converted = CONVERTERS[node.op_type](call)
        if isinstance(converted, dict):
            converted = [call.last([tensor for tensor in call.inputs if tensor and tensor not in constants], converted)]
        nodes.extend(converted)
        weights.update(call.weights)
        written = {step.output for step in converted}
        for unused in set(node.output) - written:
            shapes.pop(unused, None)
    internal = frozenset(node.output for node in nodes) - shapes.keys()
    return Source(graph_name, *signature[:3], tuple(nodes), weights, internal)


def is_sequence(
    nodes: Iterable[onnx.NodeProto], constants: Constants, sizes: Mapping[str, Shape] = MappingProxyType({})
) -> bool:
    """Whether a model has operators of transformers, products of two activations, or tensors beside (1, ...) of four.

    Those have more axes, or another first axis than a batch of one.
    """
    return any(
        node.op_type not in CONVERTERS
        or (node.op_type == "MatMul" and constants.keys().isdisjoint(node.input))
        or any(len(sizes[name]) > MOST_AXES + 1 or sizes[name][:1] != (1,) for name in node.output if name in sizes)
        for node in nodes
    )


def read(
    path: Path,
    sequence: int | None = None,
    public: bool = False,
    selection: Selection = WHOLE,
    notes: list[str] | None = None,
) -> onnx.ModelProto:
    """Load and check a model for inputs of `sequence` tokens if it reads tokens.

    It is a file, plain or compressed, or a directory; the opset must be one the converters were written for. Of a
    file only what `selection` needs is kept, and what was chosen without being asked for is added to `notes`.
    """
    if is_directory_of_model(path):
        if selection != WHOLE:
            raise MisuseError(
                f"{path} is a directory of Hugging Face, whose result is known: leave --result and --input-shape out"
            )
        return read_directory(path, needed(path, sequence), public)
    if public:
        raise MisuseError(f"{path} is no directory of Hugging Face: --public-embedding needs one")
    model = load(path)
    notes = [] if notes is None else notes
    to_onnx(model)
    as_float32(model)
    select(model, selection, notes)
    for error in refusals(model):
        raise error
    read_integers(model)
    if not reads_tokens(model):
        fix_sizes(model, selection.shapes, notes)
        return model
    if selection.shapes:
        raise MisuseError(f"{path} reads text: say how many tokens an input has by --sequence, not --input-shape")
    return fix_tokens(model, needed(path, sequence or length_of(model)))


def needed(path: Path, sequence: int | None) -> int:
    """The number of tokens, which someone must say."""
    if sequence is None:
        raise MisuseError(f"{path} reads text: say how many tokens an input has (--sequence 32)")
    return sequence


def load(path: Path) -> onnx.ModelProto:
    """Load and check a file, and give its nodes names that are unique."""
    known = remedy(path) if path.exists() and not packed(path) else None
    if known:
        raise MisuseError(f"{path} {known}")
    try:
        model = onnx.load_model_from_string(unpack(path)) if packed(path) else onnx.load(path, format="protobuf")
        onnx.checker.check_model(model)
    except FileNotFoundError:
        raise MisuseError(f"{path} does not exist") from None
    except DecodeError as error:
        raise MisuseError(f"{path} is no ONNX model, or not all of one: copy or export it again") from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        reason = str(error).strip().splitlines()
        raise MisuseError(f"{path} is not a valid ONNX model: {reason[0] if reason else 'empty'}") from error
    version = opset_of(model)
    if version not in OPSETS and (version or any(not node.domain for node in model.graph.node)):
        advice = f"convert or export it at an opset from {OPSETS[0]} to {OPSETS[-1]}"
        raise UnsupportedError(f"{path} uses opset {version}; {advice}")
    for name, node in named(model.graph.node):
        node.name = name
    return model


def opset_of(model: onnx.ModelProto) -> int:
    """Version of ONNX's own operators."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    return int(versions.get("", versions.get("ai.onnx", 0)))


def sign(model: onnx.ModelProto) -> Signature:
    """The one float32 input (batch first, dynamic or 1) and the one output."""
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [entry for entry in graph.input if entry.name not in stored]
    if len(inputs) != 1:
        names = ", ".join(f"`{entry.name}`" for entry in inputs)
        what = f"the result needs {len(inputs)} inputs" + (f" ({names})" if names else "")
        raise UnsupportedError(f"{what}; export the model with one input, or choose a result of one (--result NAME)")
    (entry,) = inputs
    tensor = entry.type.tensor_type
    for end in (entry, graph.output[0]):
        if end.type.tensor_type.elem_type != TensorProto.FLOAT:
            kind = TensorProto.DataType.Name(end.type.tensor_type.elem_type)
            advice = "; or choose another result (--result NAME)" if end is graph.output[0] else ""
            raise UnsupportedError(f"`{end.name}` is of type {kind}; export the model in float32{advice}")
    dimensions = list(tensor.shape.dim)
    sizes = [d.dim_value if d.HasField("dim_value") else 0 for d in dimensions]
    return Signature(entry.name, tuple(sizes[1:]), graph.output[0].name, sizes[:1] == [0])


def infer_shapes(model: onnx.ModelProto, signature: Signature) -> dict[str, Shape]:
    """Shapes of all activations for a batch of one, batch dropped."""
    sizes = infer_sizes(model, signature.input_name)
    return {name: size[1:] for name, size in sizes.items() if len(size) >= 2 and size[0] == 1 and min(size) >= 1}


def refuse(name: str, what: str, instead: str) -> NoReturn:
    """Raise `UnsupportedError` in the words of the Rust side."""
    error = UnsupportedError(f"node `{name}`: {what}; {instead}")
    error.node = name
    raise error


def refuse_unknown(nodes: Iterable[onnx.NodeProto]) -> None:
    """Refuse the first node that no converter reads, and count the others by operator."""
    unknown = [(node.name, operator(node)) for node in nodes if operator(node) not in KNOWN]
    if not unknown:
        return
    (name, first), *others = unknown
    kinds = Counter(kind for _, kind in others)
    what = f"operator {first} is not supported"
    if others:
        which = "is one other node" if len(others) == 1 else f"are {len(others)} other nodes"
        what += f", nor {which} ({', '.join(f'{kind}: {count}' for kind, count in kinds.items())})"
    advice = "rewrite the layer, simplify the export, or choose an earlier result (--result NAME)"
    refuse(name, what, f"supported are {', '.join(sorted(KNOWN))}; {advice}")


def operator(node: onnx.NodeProto) -> str:
    """The operator's name, with its domain if that is not ONNX's own or Tacit's."""
    return node.op_type if node.domain in ("", "ai.onnx", DOMAIN) else f"{node.domain}.{node.op_type}"


def prepare(name: str, node: onnx.NodeProto, shapes: Mapping[str, Shape], constants: Constants) -> Call:
    """The node as its converter reads it; refuses tensors without a batch."""
    if all(tensor in constants for tensor in node.input):
        refuse(name, f"{node.op_type} of constants only", "fold constants before the import")
    for tensor in [*node.input, node.output[0]]:
        if tensor and tensor not in constants and tensor not in shapes:
            what = f"{node.op_type} on `{tensor}`, which is no activation of shape (batch, ...)"
            refuse(name, what, "keep the batch as the first dimension and every other size fixed")
    return called(name, node, shapes, constants)


def called(name: str, node: onnx.NodeProto, shapes: Mapping[str, Shape], constants: Constants) -> Call:
    """The node without ONNX's classes."""
    attributes = {a.name: text(helper.get_attribute_value(a)) for a in node.attribute}
    return Call(name, node.op_type, list(node.input), attributes, shapes, constants, list(node.output))


def text(value: Any) -> Any:
    """Attribute strings come as bytes."""
    return value.decode() if isinstance(value, bytes) else value


def expose(
    path: Path,
    tensors: Iterable[str],
    sequence: int | None = None,
    public: bool = False,
    selection: Selection = WHOLE,
) -> tuple[bytes, Signature]:
    """The model, serialised, with the activations `tensors` added to its outputs; and its signature."""
    model = read(path, sequence, public, selection)
    signature = sign(model)
    known = {signature.input_name, *(name for node in model.graph.node for name in node.output)}
    tensors = list(tensors)
    if not known.issuperset(tensors):
        # The import rewrote nodes. What it computed from shapes holds for a batch of one.
        shaped = any(node.op_type in ("Shape", "Size") for node in model.graph.node)
        simplify(model, signature.input_name)
        sizes = infer_sizes(model, signature.input_name)
        shaped |= any(sizes.get(name, (1,))[:1] != (1,) for node in model.graph.node for name in node.output)
        rewrite(model, signature.input_name)
        signature = signature._replace(batched=signature.batched and not shaped)
    present = {signature.input_name, signature.output_name}
    added = [name for name in tensors if name not in present]
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in added)
    return model.SerializeToString(), signature
