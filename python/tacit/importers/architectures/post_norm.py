"""Transformer encoders as BERT has them: a norm after attention and after the two dense layers of each layer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.errors import MisuseError
from tacit.importers.architectures.config import Activation, Config
from tacit.importers.architectures.graph import Graph
from tacit.importers.architectures.text import PENALTY
from tacit.importers.unified import DOMAIN


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

    def of(self, layer: int) -> "Names":
        """The names in one layer."""
        return Names(**{role: pattern.format(layer) for role, pattern in vars(self).items()})


BERT = Names(
    query="encoder.layer.{}.attention.self.query",
    key="encoder.layer.{}.attention.self.key",
    value="encoder.layer.{}.attention.self.value",
    attended="encoder.layer.{}.attention.output.dense",
    first_norm="encoder.layer.{}.attention.output.LayerNorm",
    wide="encoder.layer.{}.intermediate.dense",
    narrow="encoder.layer.{}.output.dense",
    second_norm="encoder.layer.{}.output.LayerNorm",
)


@dataclass(frozen=True)
class Fields:
    """What a family of configurations calls its sizes."""

    hidden: str = "hidden_size"
    heads: str = "num_attention_heads"
    layers: str = "num_hidden_layers"
    activation: str = "hidden_act"


@dataclass(frozen=True)
class Encoder:
    """Sizes and choices of an encoder.

    Per layer `smu` has slope and smoothness of the activation `Smu`, and `relu_softmax` smoothness and epsilon of
    what is in the place of softmax; empty, it is softmax. Scores are divided by the root of the width of a head times
    `parts`; `term` writes what is added to them.
    """

    hidden: int
    heads: int
    layers: int
    epsilon: float
    activation: Activation
    names: Names
    smu: tuple[tuple[float, float], ...] = ()
    relu_softmax: tuple[tuple[float, float], ...] = ()
    parts: int = 1
    term: "Term | None" = None

    @property
    def factor(self) -> float:
        """The factor of the scores."""
        return float(1 / np.sqrt(self.hidden // self.heads * self.parts))


Term = Callable[[Graph, Encoder, int], str]
"""Writes what is added to the scores of a layer (N, heads, sequence, sequence), given its number.

Tensors `layer0.query.scaled` and `layer0.key` (N, sequence, hidden) are there already.
"""


def describe(config: Config, names: Names = BERT, fields: Fields | None = None, parts: int = 1) -> Encoder:
    """What the configuration says, checked."""
    fields = fields or Fields()
    config.encodes()
    config.choice("position_embedding_type", ["absolute"], "absolute")
    hidden, heads = config.divided(fields.hidden, fields.heads)
    layers, activation = config.whole(fields.layers), config.activation(fields.activation)
    replaced = config.choice("attention", ["softmax", "relu-softmax"], "softmax") == "relu-softmax"
    return Encoder(
        hidden,
        heads,
        layers,
        epsilon=config.real("layer_norm_eps", 1e-12),
        activation=activation,
        names=names,
        smu=numbers(config, "smu", layers) if activation == "Smu" else (),
        relu_softmax=numbers(config, "relu_softmax", layers) if replaced else (),
        parts=parts,
    )


def numbers(config: Config, name: str, layers: int) -> tuple[tuple[float, float], ...]:
    """Two numbers per layer."""
    try:
        pairs = tuple((float(first), float(second)) for first, second in config.fields[name])
    except (KeyError, TypeError, ValueError):
        pairs = ()
    if len(pairs) != layers:
        folder = config.folder
        raise MisuseError(f"{folder}: `{name}` in config.json is no list of two numbers for each of {layers} layers")
    return pairs


def layers(graph: Graph, encoder: Encoder, x: str) -> str:
    """All layers, masked."""
    for layer in range(encoder.layers):
        x = block(graph, encoder, x, PENALTY, layer)
    return x


def block(graph: Graph, encoder: Encoder, x: str, penalty: str | None, layer: int) -> str:
    """One layer: attention, then the two dense layers; each with a sum and a norm after it. None masks nothing."""
    names, at = encoder.names.of(layer), f"layer{layer}"
    query, key, value = projections(graph, encoder, x, at, names)
    term = None if encoder.term is None else encoder.term(graph, encoder, layer)
    scores = scored(graph, at, query, key, {"related": term, "masked": penalty})
    shares = chances(graph, encoder, f"{at}.weights", scores, layer)
    context = attended(graph, encoder.hidden, at, shares, value)
    dense = graph.dense(f"{at}.attended", context, names.attended)
    total = graph.add("Add", f"{at}.attended.sum", dense, x)
    x = graph.normalise(f"{at}.attended.norm", total, names.first_norm, encoder.epsilon)
    wide = activation(graph, encoder, f"{at}.activation", graph.dense(f"{at}.wide", x, names.wide), layer)
    narrow = graph.dense(f"{at}.narrow", wide, names.narrow)
    total = graph.add("Add", f"{at}.narrow.sum", narrow, x)
    return graph.normalise(f"{at}.norm", total, names.second_norm, encoder.epsilon)


def activation(graph: Graph, encoder: Encoder, name: str, x: str, layer: int) -> str:
    """What stands between the two dense layers."""
    if encoder.activation != "Smu":
        return graph.add(encoder.activation, name, x)
    slope, smoothness = encoder.smu[layer]
    return graph.add("Smu", name, x, domain=DOMAIN, slope=slope, smoothness=smoothness)


def projections(graph: Graph, encoder: Encoder, x: str, at: str, names: Names) -> list[str]:
    """Query, key (transposed) and value of all heads; the factor of the scores is the query's."""
    split = [0, -1, encoder.heads, encoder.hidden // encoder.heads]
    found: Mapping[str, str] = {role: getattr(names, role) for role in ("query", "key", "value")}
    query, key, value = (graph.dense(f"{at}.{role}", x, weight) for role, weight in found.items())
    factor = graph.constant(f"{at}.query.factor", np.float32(encoder.factor))
    scaled = graph.add("Mul", f"{at}.query.scaled", query, factor)
    turned = (("query", scaled, [0, 2, 1, 3]), ("key", key, [0, 2, 3, 1]), ("value", value, [0, 2, 1, 3]))
    return [graph.heads(f"{at}.{role}", tensor, split, order) for role, tensor, order in turned]


def scored(graph: Graph, at: str, query: str, key: str, added: Mapping[str, str | None]) -> str:
    """The scores of all heads, and what is added to them, by a name; None adds nothing."""
    scores = graph.add("MatMul", f"{at}.scores", query, key)
    for role, term in added.items():
        if term is not None:
            scores = graph.add("Add", f"{at}.scores.{role}", scores, term)
    return scores


def attended(graph: Graph, hidden: int, at: str, weights: str, value: str) -> str:
    """The contexts of all heads side by side."""
    context = graph.add("MatMul", f"{at}.context", weights, value)
    turned = graph.add("Transpose", f"{at}.context.turned", context, perm=[0, 2, 1, 3])
    return graph.add("Reshape", f"{at}.context.joined", turned, graph.integers(f"{at}.context.shape", [0, -1, hidden]))


def chances(graph: Graph, encoder: Encoder, name: str, scores: str, layer: int) -> str:
    """Softmax of scores, or what the encoder has in its place."""
    if not encoder.relu_softmax:
        return graph.add("Softmax", name, scores, axis=-1)
    smoothness, epsilon = encoder.relu_softmax[layer]
    return graph.add("ReluSoftmax", name, scores, domain=DOMAIN, smoothness=smoothness, epsilon=epsilon)
