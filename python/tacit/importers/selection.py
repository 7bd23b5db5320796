"""Which part of an ONNX model is compiled: its result, the nodes that this needs, and the inputs that these read."""

import difflib
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

import onnx
from onnx import TensorProto, helper, shape_inference

from tacit.errors import MisuseError
from tacit.importers.fold import keep, live, outer, without_weights
from tacit.importers.source import Selection

FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
CHOOSING = {"ArgMax", "TopK", "ZipMap"}
"""Operators that turn scores into labels."""
FOLLOWING = {"ArrayFeatureExtractor", "Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"}
"""Operators that exporters write between a label and what it was chosen by."""
MONOTONE = {"LogSoftmax", "Softmax"}
"""Operators that leave the order of scores as it is, and that clients can apply to results themselves."""
SHOWING = FOLLOWING - {"ArrayFeatureExtractor"}
"""Operators behind which all scores are still there, in their order."""
HIDDEN = ("attention", "hidden", "past", "pooler", "present", "state", "token_embeddings")
"""Parts of the names of outputs that are seldom a model's result."""
MOST_NAMES = 20


@dataclass(frozen=True)
class Candidate:
    """A tensor that may be the result; `instead` is the output of the model that it stands for, perhaps a `label`."""

    name: str
    instead: str
    label: bool = False

    @property
    def rank(self) -> int:
        """The smaller, the better: logits, probabilities, anything else, scores that only a label needs."""
        name = self.name.lower()
        if self.label:
            return 4
        if any(part in name for part in HIDDEN):
            return 3
        return 0 if "logit" in name else 1 if "prob" in name or "score" in name else 2


def select(model: onnx.ModelProto, selection: Selection, notes: list[str]) -> None:
    """Let the results, and what states are after an example, be the only outputs; leave out what they do not need.

    What was chosen without being asked for is added to `notes`. Raises `MisuseError` for a result that no node writes.
    """
    kinds, afters = types(model), [after for _, after in selection.states]
    makers = written(model)
    chosen = named(selection.result, makers)
    for name in (*chosen, *afters):
        if name not in makers:
            raise MisuseError(unknown(model, name, kinds))
    if not chosen:
        chosen = [automatic(model, kinds, afters, notes)]
    declared = {entry.name: entry for entry in model.graph.output}
    outputs = [
        declared.get(name) or helper.make_tensor_value_info(name, kinds.get(name, TensorProto.FLOAT), None)
        for name in dict.fromkeys([*chosen, *afters])
    ]
    outputs = [onnx.ValueInfoProto.FromString(output.SerializeToString()) for output in outputs]
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    keep(model, live(model))
    drop_inputs(model)


def named(result: str | None, makers: Container[str]) -> list[str]:
    """The results that a text names, with commas between; a name of the model may have a comma itself."""
    if result is None:
        return []
    return [result] if result in makers else [name.strip() for name in result.split(",")]


def types(model: onnx.ModelProto) -> dict[str, int]:
    """The types of all tensors that are known; what is no tensor has none."""
    light = without_weights(model)
    try:
        graph = shape_inference.infer_shapes(light).graph
    except shape_inference.InferenceError:
        graph = light.graph
    entries = [*graph.input, *graph.value_info, *graph.output, *model.graph.output]
    return {
        entry.name: entry.type.tensor_type.elem_type
        for entry in entries
        if entry.type.HasField("tensor_type") and entry.type.tensor_type.elem_type
    }


def written(model: onnx.ModelProto) -> dict[str, onnx.NodeProto]:
    """The node that writes each tensor."""
    return {name: node for node in model.graph.node for name in node.output if name}


def automatic(model: onnx.ModelProto, kinds: Mapping[str, int], afters: Container[str], notes: list[str]) -> str:
    """The output that is most likely the result: floats rather than labels, scores rather than hidden states.

    What a state is after an example, one of `afters`, is none.
    """
    outputs = [entry.name for entry in model.graph.output if entry.name not in afters]
    if not outputs:
        raise MisuseError("the model has no output; name the tensor that is its result (--result NAME)")
    makers = written(model)
    found = [candidate for name in outputs if (candidate := scores(name, kinds, makers)) is not None]
    direct = [candidate for candidate in found if candidate.name == candidate.instead]
    best = min(direct or found or [Candidate(outputs[0], outputs[0])], key=lambda candidate: candidate.rank)
    others = [described(name, kinds) for name in outputs if name not in (best.name, best.instead)]
    left = f"; left out: {', '.join(others)}" if others else ""
    normalised = softmax_of(best.name, makers)
    if normalised is not None:
        function, read = normalised.op_type, str(normalised.input[0])
        notes.append(
            f"the result is `{read}`, and `{best.name}` is its {function}, which clients compute themselves{left} "
            f"(--result {best.name} computes it in private, --result NAME chooses another)"
        )
        return read
    if others or best.name != best.instead:
        place = "" if best.name == best.instead else f", which `{best.instead}` is made of"
        notes.append(f"the result is `{best.name}`{place}{left} (--result NAME chooses another)")
    return best.name


def softmax_of(name: str, makers: Mapping[str, onnx.NodeProto]) -> onnx.NodeProto | None:
    """The softmax, or its logarithm, whose rows a result shows, if a tensor that a node writes is what it reads."""
    node = makers.get(name)
    while node is not None and node.op_type in SHOWING:
        node = makers.get(node.input[0])
    return node if node is not None and node.op_type in MONOTONE and node.input[0] in makers else None


def scores(name: str, kinds: Mapping[str, int], makers: Mapping[str, onnx.NodeProto]) -> Candidate | None:
    """The output itself if it has floats; what a label is chosen by; None for anything else."""
    node = makers.get(name)
    if kinds.get(name) in FLOATS:
        return Candidate(name, name)
    read, chosen, label = name, False, False
    while node is not None and node.op_type in CHOOSING | FOLLOWING:
        if chosen and node.op_type not in ("Cast", "Identity"):
            break
        chosen |= node.op_type in CHOOSING
        label |= node.op_type in ("ArgMax", "TopK")
        read = node.input[1 if node.op_type == "ArrayFeatureExtractor" else 0]
        node = makers.get(read)
    if label and node is not None and node.op_type in MONOTONE:
        read = node.input[0]
    return Candidate(read, name, label) if chosen and kinds.get(read) in FLOATS else None


def described(name: str, kinds: Mapping[str, int]) -> str:
    """An output and its type, if that is something else than floats."""
    kind = kinds.get(name)
    if kind is None:
        return f"`{name}` (no tensor)"
    return f"`{name}`" if kind in FLOATS else f"`{name}` ({TensorProto.DataType.Name(kind)})"


def unknown(model: onnx.ModelProto, name: str, kinds: Mapping[str, int]) -> str:
    """What to say of a result that no node writes: the names of what there is."""
    outputs = [entry.name for entry in model.graph.output]
    inner = [tensor for tensor in written(model) if tensor not in outputs and kinds.get(tensor) in (None, *FLOATS)]
    near = difflib.get_close_matches(name, inner, MOST_NAMES) or inner[-MOST_NAMES:]
    shown = [tensor for tensor in inner if tensor in near]
    rest = f", and {len(inner) - len(shown)} more" if len(inner) > len(shown) else ""
    text = f"no node of the model writes `{name}`; its outputs are {listing(outputs)}"
    return f"{text}, and other tensors are {listing(shown)}{rest}" if shown else text


def listing(names: Iterable[str]) -> str:
    """Names for people."""
    return ", ".join(f"`{name}`" for name in names)


def drop_inputs(model: onnx.ModelProto) -> None:
    """Leave out the inputs and constants that no node reads; of a model that reads none, nothing."""
    graph = model.graph
    used = {name for node in graph.node for name in node.input} | {entry.name for entry in graph.output}
    used |= {name for node in graph.node for name in outer(node)}
    stored = {tensor.name for tensor in graph.initializer}
    if not any(entry.name in used - stored for entry in graph.input):
        return
    for entries in (graph.input, graph.initializer):
        unused = [index for index, entry in enumerate(entries) if entry.name not in used]
        for index in reversed(unused):
            del entries[index]
