"""Converters of attention and what belongs to it: products, softmax, norms, masks, embeddings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Call, Operation, Shape
from tacit.importers.layout import Masked, Stored, channels_first, from_channels_first, in_order, without_batch
from tacit.importers.masks import chooses, lies_in
from tacit.importers.source import Seen
from tacit.importers.weaver import Values, Weaver

MATRIX = {"kernel": [1, 1], "stride": [1, 1], "padding": [0] * 4, "dilation": [1, 1], "groups": 1}
"""Geometry of a convolution that is a matrix product at every position."""
MOST_CLASSES = 8192
"""Most values of a softmax."""
MOST_NORMALISED = 8192
"""Values over which the engine normalises at once."""


def dense(weaver: Weaver, call: Call, stored: Stored, weight: NDArray[Any], bias: str | None) -> Values:
    """`stored` (..., inner) times `weight` (inner, outer), the bias of which is in `call.weights`."""
    inner, outer = weight.shape
    form, shape = channels_first(stored.places), (*stored.places.shape[:-1], outer)
    read = weaver.draft.arranged(call, stored, form)
    if form.ndim == 1:
        operation: Operation = {"op": "Gemm", "weight": call.store("weight", weight.T), "bias": bias}
        return weaver.written(call, [read], operation, (outer,), in_order(shape))
    kernel = call.store("weight", weight.T.reshape(outer, inner, 1, 1))
    operation = {"op": "Conv", **MATRIX, "weight": kernel, "bias": bias}
    return weaver.written(call, [read], operation, (outer, *form.shape[1:]), from_channels_first(shape))


def gemm(weaver: Weaver, call: Call) -> Values:
    """Gemm by a constant; alpha and beta are folded."""
    if call.attributes.get("transA", 0):
        call.refuse("with transA=1", "transpose the weight (transB) instead of the activation")
    weight = call.required(1, "weight")
    weight = weight.T if call.attributes.get("transB", 0) else weight
    weight = weight * np.asarray(call.attributes.get("alpha", 1.0), weight.dtype)
    bias, stored = call.constant(2, "bias"), None
    if bias is not None:
        scaled = bias * np.asarray(call.attributes.get("beta", 1.0), bias.dtype)
        stored = call.store("bias", np.broadcast_to(scaled.ravel(), weight.shape[1:]))
    return dense(weaver, call, weaver.stored(call, call.inputs[0]), weight, stored)


def matmul(weaver: Weaver, call: Call) -> Values:
    """MatMul by a constant matrix, or of two activations with equal leading axes."""
    first = weaver.stored(call, call.inputs[0])
    if call.inputs[1] in call.constants:
        weight = call.required(1, "weight")
        if weight.ndim != 2:
            call.refuse("by a constant that is no matrix", "use a fully connected layer (Gemm)")
        return dense(weaver, call, first, weight, None)
    second, shape = weaver.stored(call, call.inputs[1]), call.output_shape
    if min(first.places.ndim, second.places.ndim) < 2:
        call.refuse("of a vector", "give both operands two axes or more")
    batch, leading = int(np.prod(shape[:-2])), shape[:-2]
    read = []
    for stored in (first, second):
        places = np.broadcast_to(stored.places, (*leading, *stored.places.shape[-2:]))
        read.append(weaver.draft.arranged(call, stored, places.reshape(matrices(batch, shape, places.shape[-2:]))))
    if first.exclusive:
        weaver.draft.first_alone.add(call.outputs[0])
    chooses = weaver.sequence > 0 and weaver.bits(weaver.values[call.inputs[0]]) is not None
    operation = {"op": "MatMul", "mask": True} if chooses else {"op": "MatMul"}
    return weaver.written(call, read, operation, matrices(batch, shape, shape[-2:]), in_order(shape))


def matrices(batch: int, shape: Shape, matrix: Sequence[int]) -> Shape:
    """The shape of `batch` matrices; of one without leading axes beside the batch, the matrix itself."""
    return tuple(matrix) if batch == 1 and len(shape) < 4 else (batch, *matrix)


def softmax(weaver: Weaver, call: Call) -> Values:
    """Softmax over the last axis."""
    stored = weaver.stored(call, call.inputs[0])
    default = -1 if weaver.opset >= 13 else 1
    if int(call.attributes.get("axis", default)) not in (-1, stored.places.ndim - 1):
        call.refuse("along another axis than the last", "transpose it first")
    if stored.places.shape[-1] > MOST_CLASSES:
        advice = f"choose the scores that it reads, whose order is the same (--result {call.inputs[0]})"
        call.refuse(f"over {stored.places.shape[-1]} values, more than {MOST_CLASSES}", advice)
    return along_last_axis(weaver, call, {"op": "Softmax"})


def along_last_axis(weaver: Weaver, call: Call, operation: Operation) -> Values:
    """An operation on rows, each of which is the last axis of one example."""
    stored = weaver.stored(call, call.inputs[0])
    shape = without_batch(stored.places.shape)
    own = weaver.draft.shapes[stored.name]
    if own[-1:] == shape[-1:] and stored.places.size == np.prod(own):
        shape = own  # scores of one head keep their axis
    read = weaver.draft.straight(call, stored, shape)
    return weaver.written(call, [read], operation, shape, in_order(stored.places.shape))


def layer_norm(weaver: Weaver, call: Call) -> Values:
    """LayerNormalization over the last axis."""
    places = weaver.stored(call, call.inputs[0]).places
    if int(call.attributes.get("axis", -1)) not in (-1, places.ndim - 1):
        call.refuse("over several axes", "normalise over the last axis")
    if any(call.outputs[1:]):
        call.refuse("whose mean is used", "use its first output only")
    factor, bias = call.required(1, "scale"), call.constant(2, "bias")
    channels = places.shape[-1:]
    roles = {"scale": factor, "bias": np.zeros(channels, np.float32) if bias is None else bias}
    names = {role: call.store(role, np.broadcast_to(value.ravel(), channels)) for role, value in roles.items()}
    return along_channels(weaver, call, {"op": "LayerNorm", "epsilon": call.attributes.get("epsilon", 1e-5), **names})


def rms_norm(weaver: Weaver, call: Call) -> Values:
    """RmsNorm of Tacit's own domain, over the last axis."""
    return along_channels(weaver, call, {"op": "LayerNorm", "epsilon": call.attributes["epsilon"], "rms": True})


def along_channels(weaver: Weaver, call: Call, operation: dict[str, Any]) -> Values:
    """A norm along the last axis of what a call reads first, which is the engine's first axis."""
    stored = weaver.stored(call, call.inputs[0])
    places = stored.places
    if not 1 < places.shape[-1] <= MOST_NORMALISED:
        advice = f"normalise over 2 to {MOST_NORMALISED} values, as with a smaller --input-shape"
        call.refuse(f"over {places.shape[-1]} values", advice)
    form = channels_first(places)
    # The engine takes factors and constants of norms of images only.
    form = form[:, None, None] if form.ndim == 1 else form
    read = weaver.draft.arranged(call, stored, form)
    return weaver.written(call, [read], operation, tuple(form.shape), from_channels_first(places.shape))


def hidden(weaver: Weaver, call: Call, name: str, mask: Masked) -> Values:
    """Scores of which some are hidden by the mask."""
    scores = weaver.draft.own_form(call, weaver.stored(call, name))
    if scores.places.shape != call.output_shape:
        call.refuse("of a mask larger than the scores", "give each score one bit of the mask")
    order = weaver.draft.stored_order(scores, mask.places)
    read = weaver.draft.arranged(call, Stored(weaver.input_name, order, name), order)
    shape = weaver.draft.shapes[scores.name]
    result = weaver.written(call, [scores.name, read], {"op": "Mask"}, shape, scores.places)
    weaver.draft.seen[call.outputs[0]] = weaver.draft.seen.get(scores.name, Seen(scores.name))
    return result


def where(weaver: Weaver, call: Call) -> Values:
    """Where by the mask, of scores and a constant that hides the others."""
    mask = weaver.values.get(call.inputs[0])
    name = chooses(mask, call) if isinstance(mask, Masked) else None
    if name is None or not isinstance(mask, Masked):
        call.refuse("by anything but the mask", "use it to hide scores: minus infinity where the mask is 0")
    return hidden(weaver, call, name, mask)


def gather(weaver: Weaver, call: Call) -> Values:
    """Rows of a constant table, chosen by the tokens of the input."""
    weight = call.required(0, "table")
    ids = weaver.stored(call, call.inputs[1])
    if not lies_in(ids, weaver.input_name, weaver.sequence, range(1)):
        call.refuse("by anything but the tokens of the input", "let tokens choose rows of a constant table only")
    if weight.ndim != 2 or int(call.attributes.get("axis", 0)) != 0:
        call.refuse("from another axis than the first of a matrix", "use a table with a row per token")
    read = weaver.draft.straight(call, ids, (ids.places.size,))
    shape = (*ids.places.shape, weight.shape[1])
    operation = {"op": "Embedding", "weight": call.store("weight", weight)}
    return weaver.written(call, [read], operation, (ids.places.size, weight.shape[1]), in_order(shape))
