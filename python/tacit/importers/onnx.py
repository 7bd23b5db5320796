"""ONNX to the source graph; with `fold`, the only module that imports `onnx`."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from tacit.importers.architectures.graph import EXTRA_BITS, MASKS
from tacit.importers.call import Call, Shape
from tacit.importers.casts import as_float32, read_integers
from tacit.importers.classical import refusals, to_onnx
from tacit.importers.ends import RESULTS, flatten_states, input_parts, join, kept, result_parts
from tacit.importers.extents import fix_sizes
from tacit.importers.external import check_model, load_with_weights
from tacit.importers.fold import infer_sizes, named, simplify
from tacit.importers.forms.functions import inline
from tacit.importers.forms.fused import adopt
from tacit.importers.forms.plain import plain
from tacit.importers.guard import guarded
from tacit.importers.huggingface import is_directory_of_model, read_directory, read_images, reads_pictures
from tacit.importers.kinds import remedy
from tacit.importers.operators import CONVERTERS
from tacit.importers.packed import model_name, packed, unpack
from tacit.importers.rewrite import REWRITES, rewrite
from tacit.importers.selection import select
from tacit.importers.sequence import FORMULAS, OPERATORS, Ends, import_sequence
from tacit.importers.source import MOST_AXES, WHOLE, Part, Remarks, Selection, Source, State
from tacit.importers.time_axis import time_in_front
from tacit.importers.tokens import fix_tokens, length_of, reads_tokens
from tacit.importers.unified import DOMAIN
from tacit.importers.values import fix_values

OPSETS = range(7, 26)
MOST_EXTRA_BITS = 6
BLOCKED = "com.microsoft.nchwc."
"""The domain of operators that onnxruntime writes at ORT_ENABLE_ALL, for the processor that it runs on."""
KNOWN = CONVERTERS.keys() | OPERATORS | REWRITES.keys()
Constants = dict[str, NDArray[Any]]


class Signature(NamedTuple):
    """The model's single input and output; `batched` is false when the file fixes the batch at 1.

    `states` are pairs: a further input, which is kept from one example to the next, and the output that it is then.
    `inputs` and `outputs` are the parts that have units, where there are any.
    """

    input_name: str
    input_shape: Shape
    output_name: str
    batched: bool
    states: tuple[tuple[str, str], ...] = ()
    inputs: tuple[Part, ...] = ()
    outputs: tuple[Part, ...] = ()


def import_onnx(path: Path, sequence: int | None = None, public: bool = False, selection: Selection = WHOLE) -> Source:
    """Read an ONNX file, or a directory of Hugging Face for inputs of `sequence` tokens.

    With `public` clients embed their tokens: the model begins after that. `selection` says which part of a file is
    wanted; what the importer chose by itself is in the `notes` of the source.

    Raises `MisuseError` when the file is no valid ONNX model and `UnsupportedError`, naming the
    node and the operator, when it holds something Tacit cannot run.
    """
    remarks = Remarks()
    model = read(path, sequence, public, selection, remarks)
    signature = sign(model, selection)
    simplify(model, signature.input_name)
    ends = parts(model, signature, selection)
    refuse_unknown(model.graph.node)
    rewrite(model, signature.input_name)
    source = import_graph(path, model, signature, public)
    inputs, outputs = ends
    if not outputs and source.output_shape and len(model_shape(model, signature)) > MOST_AXES:
        outputs = (Part(signature.output_name, model_shape(model, signature)),)
    written = {node.output for node in source.nodes}
    extra = {name: bits for name, bits in extra_bits_of(model).items() if name in written}
    source = replace(source, inputs=inputs, outputs=outputs, extra_bits=extra)
    return replace(source, notes=tuple(remarks.notes), selection=selection, bounds=remarks.bounds)


def parts(
    model: onnx.ModelProto, signature: Signature, selection: Selection
) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The inputs and the results that were joined into one."""
    shapes = infer_sizes(model, signature.input_name)
    for before, after in selection.states:
        have, want = shapes.get(after, ()), shapes.get(before, ())
        if have and np.prod(have) != np.prod(want):
            shown = f"`{after}` of shape {list(have)}"
            raise MisuseError(f"{shown} is no next value of state `{before}` {list(want)}; name another (--state)")
    joined = [node for node in model.graph.node if node.output[0] == RESULTS]
    names = [name.removeprefix(f"{RESULTS}.").removesuffix(".scaled") for node in joined for name in node.input]
    return input_parts(shapes, selection), result_parts(names, shapes, selection)


def model_shape(model: onnx.ModelProto, signature: Signature) -> Shape:
    """Shape of the result without its batch, as far as it is known."""
    return infer_sizes(model, signature.input_name).get(signature.output_name, ())[1:]


def import_graph(path: Path, model: onnx.ModelProto, signature: Signature, public: bool) -> Source:
    """The source graph of a model that is simplified already."""
    graph_name = model.graph.name or model_name(path)
    if not model.graph.node:
        raise UnsupportedError("the model computes nothing; give a model with at least one operator")
    constants: Constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    sizes = infer_sizes(model, signature.input_name)
    if is_sequence(model.graph.node, constants, sizes):
        calls = [called(node.name, node, sizes, constants) for node in model.graph.node]
        ends = Ends(*signature[:3], public, signature.states, masks_of(model))
        return import_sequence(graph_name, ends, calls, sizes, opset_of(model))
    return import_plain(graph_name, model, signature, constants)


def masks_of(model: onnx.ModelProto) -> int:
    """How many rows of the input are masks, of a model that reads text."""
    return next(
        (int(entry.value) for entry in model.metadata_props if entry.key == MASKS and entry.value.isdecimal()), 1
    )


def extra_bits_of(model: onnx.ModelProto) -> dict[str, int]:
    """By tensor how many bits more than activations it has, of a model that was written from a directory."""
    told = next((entry.value for entry in model.metadata_props if entry.key == EXTRA_BITS), "{}")
    try:
        found = json.loads(told)
        return {str(name): int(bits) for name, bits in found.items() if 0 < int(bits) <= MOST_EXTRA_BITS}
    except (ValueError, TypeError, AttributeError):
        raise MisuseError(f"the entry {EXTRA_BITS} of the model is no JSON object of numbers; remove it") from None


def import_plain(graph_name: str, model: onnx.ModelProto, signature: Signature, constants: Constants) -> Source:
    """A model all of whose tensors are stored as the model has them."""
    shapes = infer_shapes(model, signature)
    weights: dict[str, NDArray[np.float32]] = {}
    nodes = []
    for node in model.graph.node:
        call = prepare(node.name, node, shapes, constants)
        with guarded(node.name, node.op_type):
            converted = CONVERTERS[node.op_type](call)
        if isinstance(converted, dict):
            converted = [call.last([tensor for tensor in call.inputs if tensor and tensor not in constants], converted)]
        nodes.extend(converted)
        weights.update(call.weights)
        written = {step.output for step in converted}
        for unused in set(node.output) - written:
            shapes.pop(unused, None)
    internal = frozenset(node.output for node in nodes) - shapes.keys()
    states = tuple(State(before, shapes[before], after) for before, after in signature.states)
    return Source(graph_name, *signature[:3], tuple(nodes), weights, internal, states=states)


def is_sequence(
    nodes: Iterable[onnx.NodeProto], constants: Constants, sizes: Mapping[str, Shape] = MappingProxyType({})
) -> bool:
    """Whether a model has operators of transformers, products of two activations, time, or tensors of another form.

    That is more axes than the engine has, or another first axis than a batch of one.
    """
    nodes = list(nodes)
    return has_time_in_front(nodes, sizes) or any(
        node.op_type in FORMULAS
        or node.op_type not in CONVERTERS
        or (node.op_type == "MatMul" and constants.keys().isdisjoint(node.input))
        or (node.op_type == "Div" and node.input[1] not in constants)
        or any(len(sizes[name]) > MOST_AXES + 1 or sizes[name][:1] != (1,) for name in node.output if name in sizes)
        for node in nodes
    )


def has_time_in_front(nodes: Sequence[onnx.NodeProto], sizes: Mapping[str, Shape]) -> bool:
    """Whether the batch is not the first axis somewhere, as around recurrent layers, but of the result it is."""
    result = sizes.get(nodes[-1].output[0], ()) if nodes else ()
    moves = (list(entry.ints) for node in nodes if node.op_type == "Transpose" for entry in node.attribute)
    return result[:1] == (1,) and any(order[0] != 0 for order in moves)


def read(
    path: Path,
    sequence: int | None = None,
    public: bool = False,
    selection: Selection = WHOLE,
    remarks: Remarks | None = None,
) -> onnx.ModelProto:
    """Load and check a model for inputs of `sequence` tokens if it reads tokens.

    It is a file, plain or compressed, or a directory; the opset must be one the converters were written for. Of a
    file only what `selection` needs is kept, and what was chosen without being asked for, and what the file states
    of its tensors, is added to `remarks`.
    """
    if is_directory_of_model(path):
        states = () if selection.context else selection.states
        if replace(selection, beginning=(), context=0, states=states) != WHOLE:
            raise MisuseError(
                f"{path} is a directory of Hugging Face, whose ends are known: leave --result and --input-... out"
            )
        if reads_pictures(path):
            if public or sequence is not None:
                raise MisuseError(f"{path} reads pictures: leave --sequence and --public-embedding out")
            return read_images(path)
        model = read_directory(path, needed(path, sequence), public, selection.beginning, selection.context)
        flatten_states(model, selection)
        return model
    if public:
        raise MisuseError(f"{path} is no directory of Hugging Face: --public-embedding needs one")
    model = load(path)
    remarks = remarks or Remarks()
    fix_values(model, selection.values)
    to_onnx(model)
    as_float32(model)
    select(model, selection, remarks.notes)
    left = flatten_states(model, selection)
    plain(model, left, remarks)
    for error in [*refusals(model), *time_in_front(model)]:
        raise error
    read_integers(model)
    if not reads_tokens(model):
        fix_sizes(model, left.shapes, remarks.notes)
        join(model, selection, remarks.notes)
        remarks.notes[:] = dict.fromkeys(remarks.notes)
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
        model = onnx.load_model_from_string(unpack(path)) if packed(path) else load_with_weights(path)
        adopt(model)
        check_model(model)
        model = inline(model)
    except FileNotFoundError:
        raise MisuseError(f"{path} does not exist") from None
    except DecodeError as error:
        raise MisuseError(f"{path} is no ONNX model, or not all of one: copy or export it again") from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        reason = str(error).strip().splitlines()
        what = f"{path} is not a valid ONNX model: {reason[0] if reason else 'empty'}"
        raise MisuseError(f"{what}; export it again, or copy it again if it was whole") from error
    version = opset_of(model)
    if version not in OPSETS and (version or any(not node.domain for node in model.graph.node)):
        advice = f"convert or export it at an opset from {OPSETS[0]} to {OPSETS[-1]}"
        raise UnsupportedError(f"{path} uses opset {version}; {advice}")
    try:
        for name, node in named(model.graph.node):
            node.name = name
    except UnicodeDecodeError as error:
        raise MisuseError(f"{path} has names that are no text: copy or export it again") from error
    return model


def opset_of(model: onnx.ModelProto) -> int:
    """Version of ONNX's own operators."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    return int(versions.get("", versions.get("ai.onnx", 0)))


def sign(model: onnx.ModelProto, selection: Selection = WHOLE) -> Signature:
    """The one float32 input (batch first, dynamic or 1) and the one output, and the states."""
    graph, states = model.graph, kept(selection)
    apart = {tensor.name for tensor in graph.initializer} | {before for before, _ in states}
    inputs = [entry for entry in graph.input if entry.name not in apart]
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
    batched = sizes[:1] == [0] and not states
    return Signature(entry.name, tuple(sizes[1:]), graph.output[0].name, batched, states)


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
    if first.startswith(BLOCKED):
        refuse(name, f"operator {first} is made for one processor", "save the model at ORT_ENABLE_EXTENDED instead")
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
) -> tuple[onnx.ModelProto, Signature]:
    """The model with the activations `tensors` added to its outputs; and its signature."""
    model = read(path, sequence, public, selection)
    signature = sign(model, selection)
    known = {signature.input_name, *(before for before, _ in signature.states)}
    known.update(name for node in model.graph.node for name in node.output)
    if selection.units:
        single = onnx.ModelProto.FromString(model.SerializeToString())
        simplify(single, signature.input_name)
        inputs, outputs = parts(single, signature, selection)
        signature = signature._replace(inputs=inputs, outputs=outputs)
    tensors = list(tensors)
    if not known.issuperset(tensors):
        # The import rewrote nodes. What it computed from shapes holds for a batch of one.
        shaped = any(node.op_type in ("Shape", "Size") for node in model.graph.node)
        simplify(model, signature.input_name)
        sizes = infer_sizes(model, signature.input_name)
        shaped |= any(sizes.get(name, (1,))[:1] != (1,) for node in model.graph.node for name in node.output)
        rewrite(model, signature.input_name)
        signature = signature._replace(batched=signature.batched and not shaped)
    present = {signature.input_name, signature.output_name, *(name for pair in signature.states for name in pair)}
    added = [name for name in tensors if name not in present]
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in added)
    return model, signature
