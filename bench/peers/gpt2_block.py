"""A block of a decoder as GPT-2 has it, with random weights, over all tokens of a prompt at once."""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tacit.importers.architectures.graph import IR_VERSION, OPSET, Graph
from tacit_lab.heorg.sentences import BERT_BASE

EPSILON = 1e-5
FORBIDDEN = -32.0
"""This is added to the scores of later tokens; softmax then gives them less than the last place of either system."""
Values = NDArray[np.float32]


def weights() -> dict[str, Values]:
    """Dense layers that keep sizes, norms near 1; GPT-2-small has the widths of BERT-base."""
    random = np.random.default_rng(0)
    found: dict[str, Values] = {}
    hidden, wide = BERT_BASE.hidden, BERT_BASE.wide
    square = dict.fromkeys(("query", "key", "value", "attended"), (hidden, hidden))
    for name, (made, given) in {**square, "wide": (wide, hidden), "narrow": (hidden, wide)}.items():
        found[f"{name}.weight"] = (random.standard_normal((made, given)) / np.sqrt(given)).astype(np.float32)
        found[f"{name}.bias"] = (0.1 * random.standard_normal(made)).astype(np.float32)
    for name in ("first", "second"):
        found[f"{name}.weight"] = (1 + 0.1 * random.standard_normal(hidden)).astype(np.float32)
        found[f"{name}.bias"] = (0.1 * random.standard_normal(hidden)).astype(np.float32)
    return found


def block(tokens: int) -> onnx.ModelProto:
    """From states (N, hidden, tokens) to states (N, tokens, hidden): norms come first, and no token sees later ones."""
    graph, hidden, heads = Graph(weights()), BERT_BASE.hidden, BERT_BASE.heads
    split = [0, -1, heads, hidden // heads]
    x = graph.add("Transpose", "states", "x", perm=[0, 2, 1])
    normal = graph.normalise("first.norm", x, "first", EPSILON)
    query, key, value = (graph.dense(name, normal, name) for name in ("query", "key", "value"))
    factor = graph.constant("factor", np.float32(1 / np.sqrt(hidden // heads)))
    query = graph.heads("query.parts", graph.add("Mul", "query.scaled", query, factor), split, [0, 2, 1, 3])
    key = graph.heads("key.parts", key, split, [0, 2, 3, 1])
    value = graph.heads("value.parts", value, split, [0, 2, 1, 3])
    later = graph.constant("later", np.triu(np.full((1, 1, tokens, tokens), FORBIDDEN, np.float32), 1))
    scores = graph.add("Add", "scores.masked", graph.add("MatMul", "scores", query, key), later)
    context = graph.add("MatMul", "context", graph.add("Softmax", "chances", scores, axis=-1), value)
    joined = graph.add("Transpose", "context.turned", context, perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", "context.joined", joined, graph.integers("context.shape", [0, -1, hidden]))
    x = graph.add("Add", "attended.sum", graph.dense("attended", joined, "attended"), x)
    normal = graph.normalise("second.norm", x, "second", EPSILON)
    wide = graph.add("Gelu", "activation", graph.dense("wide", normal, "wide"))
    output = graph.add("Add", "result", graph.dense("narrow", wide, "narrow"), x)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", hidden, tokens])
    made = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["N", tokens, hidden])
    built = helper.make_graph(graph.nodes, "gpt2-block", [given], [made], list(graph.constants.values()))
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
