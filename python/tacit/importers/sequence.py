"""Models of sequences (transformers): attention, norms and masks, stored channels first.

Dense layers are 1x1 convolutions on `[channels, positions, 1]`. What other modules convert is
converted by them, on tensors in the model's own order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import NamedTuple

from tacit.importers.affine import add, gelu, in_place, multiply
from tacit.importers.attention import gather, gemm, layer_norm, matmul, rms_norm, softmax, where
from tacit.importers.axes import concat, pad, reduce_mean, usual
from tacit.importers.call import Call, Shape
from tacit.importers.draft import Draft
from tacit.importers.fuse import fuse
from tacit.importers.guard import guarded
from tacit.importers.layout import Stored, in_order, without_batch
from tacit.importers.masks import BITWISE, REARRANGING
from tacit.importers.operators import CONVERTERS
from tacit.importers.source import Seen, Source, State
from tacit.importers.unified import relu_softmax, smooth_maximum
from tacit.importers.weaver import Values, Weaver

IN_PLACE = {
    *("Ceil", "Clip", "Cos", "Dropout", "Elu", "Erf", "Exp", "Floor", "HardSigmoid", "HardSwish", "Identity"),
    *("LeakyRelu", "Log", "Mish", "Neg", "Pow", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Silu", "Sin"),
    *("Softplus", "Softsign", "Sqrt", "Tanh"),
}
"""Operators of one activation that work element by element, wherever these lie."""
FORMULAS = {"Erf", "IsNaN", "Reciprocal", "Sqrt"}
"""Operators of formulas that are recognised as a whole; alone, most of them are tables."""


class Ends(NamedTuple):
    """Input, its shape without the batch, and output of a model.

    A `masked` input is hidden states (H, S) above `masks` rows of a mask (S each). `states` are pairs: a further
    input, a vector, and the tensor that it is after an example.
    """

    input_name: str
    shape: Shape
    output: str
    masked: bool = False
    states: tuple[tuple[str, str], ...] = ()
    masks: int = 1


def import_sequence(name: str, ends: Ends, calls: Sequence[Call], sizes: Mapping[str, Shape], opset: int) -> Source:
    """The source graph of `calls`, for the `ends` of the model.

    `sizes` have the batch of one. Raises `UnsupportedError` naming the node that cannot be run.
    """
    weaver, calls = begin(ends, calls, sizes, opset)
    for call in calls:
        convert(weaver, call)
    last = calls[-1]
    result = weaver.stored(last, ends.output)
    written = weaver.draft.straight(last, result, without_batch(result.places.shape))
    states = []
    for before, after in ends.states:
        shape = weaver.draft.shapes[before]
        states.append(State(before, shape, weaver.draft.straight(last, weaver.stored(last, after), shape)))
    source = weaver.draft.source(name, ends.input_name, written, ends.output, states)
    return replace(source, masked=ends.masked, masks=ends.masks)


def begin(ends: Ends, calls: Sequence[Call], sizes: Mapping[str, Shape], opset: int) -> tuple[Weaver, list[Call]]:
    """The state before the first node, and the nodes with formulas that are recognised as a whole in one."""
    input_name, shape, output, masked, states, masks = ends
    needed = [output, *(after for _, after in states)]
    calls = fuse(calls, needed)
    readers = Counter(read for call in calls for read in call.inputs) + Counter(needed)
    draft = Draft({input_name: shape} | {before: sizes[before][1:] for before, _ in states})
    weaver = Weaver(
        input_name, shape[-2:] if masked or looks_up(calls) else (0, 0), opset, sizes, readers, draft, masks=masks
    )
    weaver.values[input_name] = Stored(input_name, in_order((1, *shape)), input_name)
    for before, _ in states:
        weaver.values[before] = Stored(before, in_order(sizes[before]), before)
    return weaver, calls


def looks_up(calls: Sequence[Call]) -> bool:
    """Whether a model chooses rows of a constant table: then its input has tokens and their mask."""
    return any(
        call.operator == "Gather" and call.inputs[0] in call.constants and call.inputs[1] not in call.constants
        for call in calls
    )


def convert(weaver: Weaver, call: Call) -> None:
    """Convert one node: what moves elements, then what is made of the mask, then everything else."""
    with guarded(call.name, call.operator):
        if not weaver.rearranged(call) and not weaver.bitwise(call):
            weaver.values.update(CONVERSIONS.get(call.operator, other)(weaver, call))


def other(weaver: Weaver, call: Call) -> Values:
    """A node that another module converts: its inputs in the model's own order, without the batch."""
    if call.operator not in CONVERTERS:
        call.refuse("is no part of a formula that this version knows", "simplify the export")
    if call.operator in IN_PLACE:
        return in_place(weaver, call, call.inputs[0], CONVERTERS[call.operator])
    names = [name for name in call.inputs if name and name not in call.constants]
    shapes = {name: size[1:] for name, size in weaver.sizes.items() if size[:1] == (1,)}
    if call.operator == "Concat" and not all(name in shapes for name in (*names, call.outputs[0])):
        # The first axis is no batch: all of them count, behind a batch that the model does not have.
        axis = int(call.attributes["axis"])
        call = replace(call, attributes={**call.attributes, "axis": axis + (axis >= 0)})
        shapes = dict(weaver.sizes)
    read = {}
    for name in names:
        if name not in shapes:
            call.refuse(f"on `{name}`, which is no activation of shape (batch, ...)", "keep the batch apart")
        read[name] = weaver.draft.straight(call, weaver.stored(call, name), shapes[name] or (1,))
    if any(name not in shapes for name in call.outputs if name):
        call.refuse("gives a tensor without the batch in front", "keep the batch as the first dimension")
    shapes |= {read[name]: shapes[name] for name in names}
    local = replace(call, inputs=[read.get(name, name) for name in call.inputs], shapes=shapes)
    converted = CONVERTERS[call.operator](local)
    nodes = [local.last([read[name] for name in names], converted)] if isinstance(converted, dict) else converted
    for node in nodes:
        weaver.draft.put(node, shapes.get(node.output, ()))
    weaver.draft.weights.update(local.weights)
    made = [name for name in call.outputs if name in weaver.draft.nodes]
    weaver.draft.seen.update({name: Seen(name) for name in made})
    alone = {name: weaver.readers.get(name, 0) == 1 for name in made}
    return {name: Stored(name, in_order(weaver.sizes[name]), name, alone[name]) for name in made}


def beside_usual(convert: Callable[[Weaver, Call], Values]) -> Callable[[Weaver, Call], Values]:
    """`convert` for tensors with more axes than usual or without a batch, and `other` for all others."""

    @wraps(convert)
    def converted(weaver: Weaver, call: Call) -> Values:
        return other(weaver, call) if usual(weaver, call) else convert(weaver, call)

    return converted


CONVERSIONS: Mapping[str, Callable[[Weaver, Call], Values]] = {
    "Add": add,
    "Concat": beside_usual(concat),
    "Div": multiply,
    "Gather": gather,
    "Gelu": gelu,
    "Gemm": gemm,
    "LayerNormalization": layer_norm,
    "MatMul": matmul,
    "Mul": multiply,
    "Pad": beside_usual(pad),
    "ReduceMean": beside_usual(reduce_mean),
    "ReluSoftmax": relu_softmax,
    "RmsNorm": rms_norm,
    "Smu": smooth_maximum,
    "Softmax": softmax,
    "Sub": add,
    "Where": where,
}
OPERATORS = FORMULAS | REARRANGING | BITWISE | CONVERSIONS.keys()
"""What is converted here and nowhere else, or here in another way."""
