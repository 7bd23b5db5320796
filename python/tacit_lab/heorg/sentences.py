"""Networks of the shape of BERT-base with random weights: what the workload `BERT` costs, whatever it answers.

The finetuned weights of that workload are not free to ship. Inputs are hidden states (N, hidden, tokens), about 1 in
size, as they come from the embedding, which the client looks up; nothing is masked.
"""

from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tacit.importers.architectures.graph import IR_VERSION, OPSET, Graph
from tacit.importers.architectures.post_norm import BERT, Encoder, block

POOLER, CLASSIFIER = "pooler.dense", "classifier"


class Shape(NamedTuple):
    """Widths of states and of the wider dense layer, and the number of heads."""

    hidden: int
    heads: int
    wide: int


BERT_BASE, MINILM = Shape(768, 12, 3072), Shape(384, 12, 1536)


def weights(shape: Shape, layers: int, labels: int, seed: int) -> dict[str, NDArray[np.float32]]:
    """Dense layers that keep sizes, norms near 1; with `labels` above 0 a pooler and a classifier for so many."""
    random = np.random.default_rng(seed)
    found: dict[str, NDArray[np.float32]] = {}

    def dense(name: str, made: int, given: int) -> None:
        found[f"{name}.weight"] = (random.standard_normal((made, given)) / np.sqrt(given)).astype(np.float32)
        found[f"{name}.bias"] = (0.1 * random.standard_normal(made)).astype(np.float32)

    for layer in range(layers):
        names = BERT.of(layer)
        for name in (names.query, names.key, names.value, names.attended):
            dense(name, shape.hidden, shape.hidden)
        dense(names.wide, shape.wide, shape.hidden)
        dense(names.narrow, shape.hidden, shape.wide)
        for name in (names.first_norm, names.second_norm):
            found[f"{name}.weight"] = (1 + 0.1 * random.standard_normal(shape.hidden)).astype(np.float32)
            found[f"{name}.bias"] = (0.1 * random.standard_normal(shape.hidden)).astype(np.float32)
    if labels:
        dense(POOLER, shape.hidden, shape.hidden)
        dense(CLASSIFIER, labels, shape.hidden)
    return found


def network(shape: Shape, layers: int, tokens: int, labels: int = 0, seed: int = 0) -> onnx.ModelProto:
    """Layers over states (N, hidden, tokens): the states of all tokens, or logits (N, labels) of the first."""
    encoder = Encoder(shape.hidden, shape.heads, layers, 1e-12, "Gelu", BERT)
    graph = Graph(weights(shape, layers, labels, seed))
    output = graph.add("Transpose", "states", "x", perm=[0, 2, 1])
    for layer in range(layers):
        output = block(graph, encoder, output, None, layer)
    made: list[str | int] = ["N", tokens, shape.hidden]
    if labels:
        first = graph.add("Gather", "first", output, graph.constant("first.token", np.int64(0)), axis=1)
        pooled = graph.add("Tanh", "pooled", graph.dense("pooler", first, POOLER))
        output, made = graph.dense("logits", pooled, CLASSIFIER), ["N", labels]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", shape.hidden, tokens])
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, made)
    constants = list(graph.constants.values())
    built = helper.make_graph(graph.nodes, f"encoder-{shape.hidden}-{tokens}", [given], [result], constants)
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def states(shape: Shape, tokens: int, count: int) -> NDArray[np.float32]:
    """Random inputs (count, hidden, tokens)."""
    return np.random.default_rng(1).standard_normal((count, shape.hidden, tokens)).astype(np.float32)
