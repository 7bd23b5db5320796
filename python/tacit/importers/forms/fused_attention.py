"""Attention and embeddings in one operator become products, softmaxes, look-ups and norms."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto

from tacit.importers.forms.fused import BEFORE, Plain, Rule, normalised
from tacit.importers.forms.graph import given, settings

HIDING = -10000.0
"""What is added to scores that nothing may come of, where a node does not say."""
WHERE_SINCE = 9
OWN_SETTINGS = {
    *("is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap", "softmax_precision"),
}
"""The attributes of ONNX's own Attention that are read, or that say nothing here."""
HEADS = (0, 2, 1, 3)


class Heads(NamedTuple):
    """What attention reads: queries, keys and values, each `(batch, heads, positions, size)`."""

    query: str
    key: str
    value: str
    scale: float


def split(graph: Plain, node: onnx.NodeProto, x: str, heads: int) -> str:
    """Write `(batch, positions, heads * size)` as `(batch, heads, positions, size)`."""
    apart = graph.put(node, "Reshape", [x, graph.numbers(node, 0, 0, heads, graph.last(node, x) // heads)])
    return graph.put(node, "Transpose", [apart], perm=list(HEADS))


def joined(graph: Plain, node: onnx.NodeProto, x: str, length: int) -> None:
    """Write `(batch, heads, positions, size)` as `(batch, positions, length)`, the output of a node."""
    turned = graph.put(node, "Transpose", [x], perm=list(HEADS))
    graph.put(node, "Reshape", [turned, graph.numbers(node, 0, 0, length)], node.output[0])


def attended(graph: Plain, node: onnx.NodeProto, heads: Heads, added: list[str], output: str = "") -> str:
    """Write a softmax of scaled products of queries and keys, with tensors added, times values."""
    keys = graph.put(node, "Transpose", [heads.key], perm=[0, 1, 3, 2])
    products = graph.put(node, "MatMul", [heads.query, keys])
    scores = graph.put(node, "Mul", [products, graph.floats(node, heads.scale)])
    for penalty in added:
        scores = graph.put(node, "Add", [scores, penalty])
    shares = graph.put(node, "Softmax", [scores], axis=-1 if graph.opset >= 13 else 3)
    return graph.put(node, "MatMul", [shares, heads.value], output)


def padding(graph: Plain, node: onnx.NodeProto, mask: str, hiding: float) -> str:
    """Write what a mask of positions adds to scores: nothing where it is 1."""
    mask = graph.masks.get(mask) or counted(graph, mask) or mask
    rank = graph.rank(node, mask)
    if rank not in (2, 3):
        graph.refuse(node, "with a mask that is not of positions: (batch, positions)", BEFORE)
    rows = graph.put(node, "Cast", [mask], to=TensorProto.FLOAT)
    axes = [1, 2] if rank == 2 else [1]
    if graph.opset >= 13:
        rows = graph.put(node, "Unsqueeze", [rows, graph.numbers(node, *axes)])
    else:
        rows = graph.put(node, "Unsqueeze", [rows], axes=axes)
    absent = graph.put(node, "Sub", [graph.floats(node, 1.0), rows])
    return graph.put(node, "Mul", [absent, graph.floats(node, hiding)])


def counted(graph: Plain, lengths: str) -> str | None:
    """The mask whose ones were counted to say how many positions there are; the others are behind them."""
    makers = [node for node in graph.nodes if lengths in node.output and node.op_type == "ReduceSum"]
    return makers[0].input[0] if makers else None


def causal(graph: Plain, node: onnx.NodeProto, scores_like: tuple[str, str], hiding: float) -> str:
    """Write what hides later positions: the lengths come from the positions of queries and keys."""
    lengths = []
    for name in scores_like:
        shape = graph.put(node, "Shape", [name])
        lengths.append(graph.put(node, "Gather", [shape, graph.constant(node, np.array(2, np.int64))]))
    first, step = (graph.constant(node, np.array(value, np.int64)) for value in (0, 1))
    rows, columns = (graph.put(node, "Range", [first, length, step]) for length in lengths)
    rows = graph.put(node, "Reshape", [rows, graph.numbers(node, -1, 1)])
    later = graph.put(node, "Less", [rows, columns])
    return graph.put(node, "Mul", [graph.put(node, "Cast", [later], to=TensorProto.FLOAT), graph.floats(node, hiding)])


def scale_of(node: onnx.NodeProto, size: int) -> float:
    """What scores are multiplied by."""
    return float(settings(node).get("scale", 0) or 1 / math.sqrt(size))


def refuse_states(graph: Plain, node: onnx.NodeProto, *places: int) -> None:
    """Refuse a node that reads or writes states of earlier tokens."""
    if any(given(node, place) for place in places) or any(node.output[1:]):
        graph.refuse(node, "with states of earlier tokens", "export the model without a cache (use_cache=False)")


def attention(graph: Plain, node: onnx.NodeProto) -> None:
    """Attention of tokens to each other, with its projections."""
    refuse_states(graph, node, 4, 6)
    attributes = settings(node)
    if attributes.get("do_rotary", 0):
        graph.refuse(node, "with do_rotary", BEFORE)
    weight, heads = graph.required(node, 1, "weight"), int(attributes["num_heads"])
    bias = graph.required(node, 2, "bias") if given(node, 2) else np.zeros(weight.shape[1], weight.dtype)
    sizes = [int(size) for size in attributes.get("qkv_hidden_sizes", [weight.shape[1] // 3] * 3)]
    ends = np.cumsum([0, *sizes])
    parts = []
    for start, end in pairwise(ends):
        x = graph.put(node, "MatMul", [node.input[0], graph.constant(node, weight[:, start:end])])
        x = graph.put(node, "Add", [x, graph.constant(node, bias[start:end])])
        apart = graph.put(node, "Reshape", [x, graph.numbers(node, 0, 0, heads, int(end - start) // heads)])
        parts.append(graph.put(node, "Transpose", [apart], perm=list(HEADS)))
    read = Heads(parts[0], parts[1], parts[2], scale_of(node, sizes[0] // heads))
    joined(graph, node, attended(graph, node, read, penalties(graph, node, read, 3)), sizes[2])


def penalties(graph: Plain, node: onnx.NodeProto, read: Heads, mask: int) -> list[str]:
    """Write what is added to scores: of a mask, of later positions, and a bias."""
    hiding = float(settings(node).get("mask_filter_value", HIDING))
    added = [padding(graph, node, node.input[mask], hiding)] if given(node, mask) else []
    if settings(node).get("unidirectional", 0):
        added.append(causal(graph, node, (read.query, read.key), hiding))
    bias = given(node, 5)
    return [*added, bias] if bias else added


def multi_head_attention(graph: Plain, node: onnx.NodeProto) -> None:
    """Attention of queries to keys, which are projected already."""
    refuse_states(graph, node, 6, 7, 8, 9)
    heads = int(settings(node)["num_heads"])
    names = [given(node, place) for place in range(3)]
    if not all(names) or any(graph.rank(node, name) != 3 for name in names):
        graph.refuse(node, "with packed queries, keys and values", BEFORE)
    sizes = [graph.last(node, name) for name in names]
    if given(node, 3):
        bias = graph.required(node, 3, "bias")
        ends = np.cumsum([0, *sizes])
        for k, name in enumerate(names):
            names[k] = graph.put(node, "Add", [name, graph.constant(node, bias[ends[k] : ends[k + 1]])])
    parts = []
    for name, size in zip(names, sizes, strict=True):
        apart = graph.put(node, "Reshape", [name, graph.numbers(node, 0, 0, heads, size // heads)])
        parts.append(graph.put(node, "Transpose", [apart], perm=list(HEADS)))
    read = Heads(parts[0], parts[1], parts[2], scale_of(node, sizes[0] // heads))
    joined(graph, node, attended(graph, node, read, penalties(graph, node, read, 4)), sizes[2])


def embedding(graph: Plain, node: onnx.NodeProto) -> None:
    """The sum of embeddings of words, positions and segments, and a layer norm of it."""
    ids, mask = node.input[0], given(node, 7)
    words = graph.put(node, "Gather", [node.input[2], ids])
    if given(node, 8):
        places = graph.put(node, "Gather", [node.input[3], node.input[8]])
    else:
        shape = graph.put(node, "Shape", [ids])
        length = graph.put(node, "Gather", [shape, graph.numbers(node, 1)])
        places = graph.put(node, "Slice", [node.input[3], graph.numbers(node, 0), length, graph.numbers(node, 0)])
    total = graph.put(node, "Add", [words, places])
    if given(node, 1):
        total = graph.put(node, "Add", [total, graph.put(node, "Gather", [node.input[4], node.input[1]])])
    if len(node.output) > 2 and node.output[2]:
        total = graph.put(node, "Identity", [total], node.output[2])
    if mask and len(node.output) > 1 and node.output[1]:
        graph.masks[node.output[1]] = mask
    normalised(graph, node, total, node.input[5], given(node, 6))


def own_attention(graph: Plain, node: onnx.NodeProto) -> None:
    """Attention of queries to keys, as ONNX has it since opset 23."""
    refuse_states(graph, node, 4, 5, 6)
    attributes = settings(node)
    unknown = sorted(attributes.keys() - OWN_SETTINGS)
    if unknown:
        graph.refuse(node, f"with {', '.join(unknown)}", "leave it out, or export the model at opset 23")
    if float(attributes.get("softcap", 0.0)):
        graph.refuse(node, "with softcap", "use softcap=0")
    query, key, value = node.input[:3]
    wide = graph.rank(node, query) == 3
    if wide:
        many, few = int(attributes["q_num_heads"]), int(attributes["kv_num_heads"])
        length = graph.last(node, value) // few * many
        query, key, value = (split(graph, node, name, many if name == query else few) for name in (query, key, value))
    else:
        many, few = graph.shape(node, query)[1], graph.shape(node, key)[1]
    key, value = (repeated(graph, node, name, many, few) for name in (key, value))
    read = Heads(query, key, value, scale_of(node, graph.last(node, query)))
    added = [own_mask(graph, node, node.input[3])] if given(node, 3) else []
    if attributes.get("is_causal", 0):
        added.append(causal(graph, node, (read.query, read.key), HIDING))
    if wide:
        joined(graph, node, attended(graph, node, read, added), length)
    else:
        attended(graph, node, read, added, node.output[0])


def repeated(graph: Plain, node: onnx.NodeProto, x: str, many: int, few: int) -> str:
    """Write keys or values of few heads for many heads of queries, each for several next to one another."""
    if many == few:
        return x
    if not few or many % few:
        graph.refuse(node, f"with {many} heads of queries and {few} of keys", "let one be a multiple of the other")
    places = np.arange(many) // (many // few)
    return graph.put(node, "Gather", [x, graph.numbers(node, *places.tolist())], axis=1)


def own_mask(graph: Plain, node: onnx.NodeProto, mask: str) -> str:
    """Write what a mask adds to scores: itself, or a penalty where it is false."""
    if graph.kind(mask) != TensorProto.BOOL:
        return mask
    known = graph.value(mask)
    if known is not None and not known.any(axis=-1).all():
        graph.refuse(node, "with a query that no key is shown to", "show each query at least one key")
    zero, penalty = graph.floats(node, 0.0), graph.floats(node, HIDING)
    return graph.put(node, "Where", [mask, zero, penalty])


def rotary(graph: Plain, node: onnx.NodeProto) -> None:
    """RotaryEmbedding by constant tables of all positions, halves turned together."""
    attributes = settings(node)
    if attributes.get("interleaved", 0) or attributes.get("rotary_embedding_dim", 0):
        graph.refuse(node, "that is interleaved or of a part of a head", "use halves of whole heads")
    cosine, sine = (graph.required(node, place, "table") for place in (1, 2))
    if given(node, 3):
        places = graph.required(node, 3, "list of positions")
        cosine, sine = cosine[places], sine[places]
    x, wide = node.input[0], graph.rank(node, node.input[0]) == 3
    length = graph.last(node, x)
    if wide:
        x = split(graph, node, x, int(attributes["num_heads"]))
    half = cosine.shape[-1]
    first, second = graph.put_all(node, "Split", [x, graph.numbers(node, half, half)], 2, axis=3)
    names = [graph.constant(node, np.expand_dims(table, 1)) for table in (cosine, sine)]
    products = [[graph.put(node, "Mul", [part, name]) for name in names] for part in (first, second)]
    real = graph.put(node, "Sub", [products[0][0], products[1][1]])
    imaginary = graph.put(node, "Add", [products[0][1], products[1][0]])
    turned = graph.put(node, "Concat", [real, imaginary], "" if wide else node.output[0], axis=3)
    if wide:
        joined(graph, node, turned, length)


ATTENTION: Mapping[str, Rule] = {
    "Attention": attention,
    "EmbedLayerNormalization": embedding,
    "MultiHeadAttention": multi_head_attention,
}
OWN_ATTENTION: Mapping[str, Rule] = {"Attention": own_attention, "RotaryEmbedding": rotary}
