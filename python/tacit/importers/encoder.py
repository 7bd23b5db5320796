"""A transformer encoder as an ONNX model, written from its weights; with `onnx` and `fold`, a module that uses `onnx`.

Input `x` is float32 (N, 2, sequence): row 0 has token ids, row 1 the mask, 1 for a token and 0 for padding. Where the
embedding is public it is (N, hidden + 1, sequence): hidden states as `embed` gives them, and below them the mask.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tacit.importers.unified import DOMAIN, functions

Weights = Mapping[str, NDArray[np.float32]]
Head = Literal["mean", "cls", "hidden", "bert", "roberta", "distilbert"]

OPSET = 20
IR_VERSION = 10
MASKED = -1e4
"""Added to the scores of padding: e to this power is 0."""


@dataclass(frozen=True)
class Names:
    """What a family of models calls its weights; `{}` is the number of a layer."""

    query: str
    key: str
    value: str
    attended: str
    first_norm: str
    wide: str
    narrow: str
    second_norm: str


@dataclass(frozen=True)
class Encoder:
    """Sizes and choices of an encoder. `first_position` is the position of the first token in its table.

    Per layer `smu` has slope and smoothness of the activation `Smu`, and `relu_softmax` smoothness and epsilon of
    what is in the place of softmax; empty, it is softmax.
    """

    hidden: int
    heads: int
    layers: int
    epsilon: float
    activation: Literal["Gelu", "Relu", "Smu"]
    first_position: int
    head: Head
    names: Names
    smu: tuple[tuple[float, float], ...] = ()
    relu_softmax: tuple[tuple[float, float], ...] = ()


@dataclass
class Graph:
    """Nodes and constants as they are added."""

    weights: Weights
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def add(self, operator: str, name: str, *inputs: str, **attributes: Any) -> str:
        """A node called like its output; gives that name."""
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, value: Any) -> str:
        """Store a constant and give its name."""
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def integers(self, name: str, values: Sequence[int]) -> str:
        """A constant list of integers."""
        return self.constant(name, np.array(values, np.int64))

    def dense(self, name: str, x: str, weight: str) -> str:
        """`x` times the transposed weight, plus its bias."""
        kernel = self.constant(f"{name}.weight", self.weights[f"{weight}.weight"].T)
        product = self.add("MatMul", f"{name}.product", x, kernel)
        return self.add("Add", name, product, self.constant(f"{name}.bias", self.weights[f"{weight}.bias"]))

    def normalise(self, name: str, x: str, weight: str, epsilon: float) -> str:
        """Layer norm over the last axis."""
        stored = [self.constant(f"{name}.{role}", self.weights[f"{weight}.{role}"]) for role in ("weight", "bias")]
        return self.add("LayerNormalization", name, x, *stored, axis=-1, epsilon=epsilon)

    def heads(self, name: str, x: str, shape: Sequence[int], order: Sequence[int]) -> str:
        """Reshape, then transpose."""
        split = self.add("Reshape", f"{name}.split", x, self.integers(f"{name}.shape", shape))
        return self.add("Transpose", f"{name}.heads", split, perm=list(order))


def build(encoder: Encoder, weights: Weights, sequence: int, name: str, public: bool = False) -> onnx.ModelProto:
    """The model for `sequence` tokens; `weights` have their names without the prefix of the family.

    With `public` the client embeds its tokens.
    """
    graph = Graph(weights)
    graph.constant("first", np.int64(0))
    x = given_states(graph, encoder) if public else embed(graph, encoder, given_ids(graph), sequence)
    row = graph.constant("mask.row", np.int64(encoder.hidden if public else 1))
    mask = graph.add("Gather", "mask", "x", row, axis=1)
    penalty = penalise(graph, mask)
    for layer in range(encoder.layers):
        x = block(graph, encoder, x, penalty, layer)
    output = HEADS[encoder.head](graph, x, mask)
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", encoder.hidden + 1 if public else 2, sequence])]
    made = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    built = helper.make_graph(graph.nodes, name, ends, made, graph.constants)
    # A shape is obligatory for the checker.
    built.output[0].type.tensor_type.shape.dim.add().dim_param = "N"
    for _ in range(2 if encoder.head == "hidden" else 1):
        built.output[0].type.tensor_type.shape.dim.add()
    versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(built, opset_imports=versions, ir_version=IR_VERSION, functions=functions(OPSET))


def given_ids(graph: Graph) -> str:
    """Tokens (N, sequence) of the input."""
    row = graph.add("Gather", "ids.float", "x", "first", axis=1)
    return graph.add("Cast", "ids", row, to=TensorProto.INT64)


def given_states(graph: Graph, encoder: Encoder) -> str:
    """Hidden states (N, sequence, hidden) of the input."""
    ends = [graph.integers(f"states.{role}", [value]) for role, value in (("first", 0), ("end", encoder.hidden))]
    rows = graph.add("Slice", "states.rows", "x", *ends, graph.integers("states.axis", [1]))
    return graph.add("Transpose", "states", rows, perm=[0, 2, 1])


def embed(graph: Graph, encoder: Encoder, ids: str, sequence: int) -> str:
    """Embeddings of tokens, positions and the first token type, normalised."""
    table = graph.constant("embedding.weight", graph.weights["embeddings.word_embeddings.weight"])
    tokens = graph.add("Gather", "embedding", table, ids, axis=0)
    positions = graph.constant("embedding.positions", places(encoder, graph.weights, sequence))
    placed = graph.add("Add", "embedding.placed", tokens, positions)
    return graph.normalise("embedding.norm", placed, "embeddings.LayerNorm", encoder.epsilon)


def places(encoder: Encoder, weights: Weights, sequence: int) -> NDArray[np.float32]:
    """What positions and the first token type add to embeddings (sequence, hidden)."""
    first = encoder.first_position
    added = weights["embeddings.position_embeddings.weight"][first : first + sequence]
    if "embeddings.token_type_embeddings.weight" in weights:
        added = added + weights["embeddings.token_type_embeddings.weight"][0]
    return added


def penalise(graph: Graph, mask: str) -> str:
    """What is added to scores: 0 where the mask is 1, `MASKED` where it is 0; (N, 1, 1, sequence)."""
    absent = graph.add("Sub", "mask.absent", graph.constant("mask.one", np.float32(1)), mask)
    scaled = graph.add("Mul", "mask.scaled", absent, graph.constant("mask.penalty", np.float32(MASKED)))
    return graph.add("Unsqueeze", "mask.scores", scaled, graph.integers("mask.axes", [1, 2]))


def block(graph: Graph, encoder: Encoder, x: str, penalty: str | None, layer: int) -> str:
    """One layer: attention, then the two dense layers; each with a sum and a norm after it. None masks nothing."""
    names = {role: pattern.format(layer) for role, pattern in vars(encoder.names).items()}
    at = f"layer{layer}"
    query, key, value = projections(graph, encoder, x, at, names)
    shares = chances(graph, encoder, f"{at}.weights", scored(graph, at, query, key, penalty), layer)
    context = attended(graph, encoder, at, shares, value)
    dense = graph.dense(f"{at}.attended", context, names["attended"])
    total = graph.add("Add", f"{at}.attended.sum", dense, x)
    x = graph.normalise(f"{at}.attended.norm", total, names["first_norm"], encoder.epsilon)
    wide = activation(graph, encoder, f"{at}.activation", graph.dense(f"{at}.wide", x, names["wide"]), layer)
    narrow = graph.dense(f"{at}.narrow", wide, names["narrow"])
    total = graph.add("Add", f"{at}.narrow.sum", narrow, x)
    return graph.normalise(f"{at}.norm", total, names["second_norm"], encoder.epsilon)


def activation(graph: Graph, encoder: Encoder, name: str, x: str, layer: int) -> str:
    """What stands between the two dense layers."""
    if encoder.activation != "Smu":
        return graph.add(encoder.activation, name, x)
    slope, smoothness = encoder.smu[layer]
    return graph.add("Smu", name, x, domain=DOMAIN, slope=slope, smoothness=smoothness)


def projections(graph: Graph, encoder: Encoder, x: str, at: str, names: Mapping[str, str]) -> list[str]:
    """Query, key (transposed) and value of all heads; the factor of the scores is the query's."""
    width = encoder.hidden // encoder.heads
    split = [0, -1, encoder.heads, width]
    query, key, value = (graph.dense(f"{at}.{role}", x, names[role]) for role in ("query", "key", "value"))
    factor = graph.constant(f"{at}.query.factor", np.float32(1 / np.sqrt(width)))
    scaled = graph.add("Mul", f"{at}.query.scaled", query, factor)
    turned = (("query", scaled, [0, 2, 1, 3]), ("key", key, [0, 2, 3, 1]), ("value", value, [0, 2, 1, 3]))
    return [graph.heads(f"{at}.{role}", tensor, split, order) for role, tensor, order in turned]


def scored(graph: Graph, at: str, query: str, key: str, penalty: str | None) -> str:
    """The scores of all heads, masked."""
    scores = graph.add("MatMul", f"{at}.scores", query, key)
    return scores if penalty is None else graph.add("Add", f"{at}.scores.masked", scores, penalty)


def attended(graph: Graph, encoder: Encoder, at: str, weights: str, value: str) -> str:
    """The contexts of all heads side by side."""
    context = graph.add("MatMul", f"{at}.context", weights, value)
    turned = graph.add("Transpose", f"{at}.context.turned", context, perm=[0, 2, 1, 3])
    joined = graph.integers(f"{at}.context.shape", [0, -1, encoder.hidden])
    return graph.add("Reshape", f"{at}.context.joined", turned, joined)


def chances(graph: Graph, encoder: Encoder, name: str, scores: str, layer: int) -> str:
    """Softmax of scores, or what the encoder has in its place."""
    if not encoder.relu_softmax:
        return graph.add("Softmax", name, scores, axis=-1)
    smoothness, epsilon = encoder.relu_softmax[layer]
    return graph.add("ReluSoftmax", name, scores, domain=DOMAIN, smoothness=smoothness, epsilon=epsilon)


def hidden(_graph: Graph, x: str, _mask: str) -> str:
    """The states of all tokens (N, sequence, hidden)."""
    return x


def mean(graph: Graph, x: str, mask: str) -> str:
    """The sum over tokens (N, hidden); whoever knows how many there are divides by that."""
    row = graph.add("Unsqueeze", "pooling.mask", mask, graph.integers("pooling.axes", [1]))
    pooled = graph.add("MatMul", "pooling.sum", row, x)
    return graph.add("Squeeze", "pooled", pooled, "pooling.axes")


def cls(graph: Graph, x: str, _mask: str) -> str:
    """The state of the first token (N, hidden)."""
    return graph.add("Gather", "pooled", x, "first", axis=1)


def bert(graph: Graph, x: str, mask: str) -> str:
    """BERT's pooler and classifier (N, classes)."""
    pooled = graph.add("Tanh", "pooler.tanh", graph.dense("pooler", cls(graph, x, mask), "pooler.dense"))
    return graph.dense("classifier", pooled, "classifier")


def roberta(graph: Graph, x: str, mask: str) -> str:
    """RoBERTa's classifier of two layers (N, classes)."""
    dense = graph.dense("classifier.dense", cls(graph, x, mask), "classifier.dense")
    return graph.dense("classifier", graph.add("Tanh", "classifier.tanh", dense), "classifier.out_proj")


def distilbert(graph: Graph, x: str, mask: str) -> str:
    """DistilBERT's classifier of two layers (N, classes)."""
    dense = graph.dense("classifier.dense", cls(graph, x, mask), "pre_classifier")
    return graph.dense("classifier", graph.add("Relu", "classifier.relu", dense), "classifier")


HEADS = {"hidden": hidden, "mean": mean, "cls": cls, "bert": bert, "roberta": roberta, "distilbert": distilbert}
