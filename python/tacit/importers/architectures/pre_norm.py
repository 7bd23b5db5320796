"""Transformer encoders with a norm before attention and before the two dense layers of each layer."""

from dataclasses import dataclass

import numpy as np

from tacit.importers.architectures import post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph
from tacit.importers.architectures.post_norm import Names

QUICK = 1.702
"""The factor of CLIP's `quick_gelu`: x times the sigmoid of 1.702 x."""


@dataclass(frozen=True)
class PreNorm:
    """Sizes and choices of an encoder; `biased` says whether queries, keys and values have biases."""

    hidden: int
    heads: int
    layers: int
    epsilon: float
    activation: str
    names: Names
    biased: bool = True
    quick: bool = False


def describe(config: Config, names: Names, epsilon: float) -> PreNorm:
    """What the configuration says, checked."""
    config.encodes()
    hidden, heads = config.divided("hidden_size", "num_attention_heads")
    quick = config.get("hidden_act", "gelu") == "quick_gelu"
    return PreNorm(
        hidden,
        heads,
        config.whole("num_hidden_layers"),
        epsilon=config.real("layer_norm_eps", epsilon),
        activation="Gelu" if quick else config.activation("hidden_act"),
        names=names,
        biased=bool(config.get("qkv_bias", True)),
        quick=quick,
    )


def layers(graph: Graph, encoder: PreNorm, x: str) -> str:
    """All layers; nothing is masked."""
    for layer in range(encoder.layers):
        x = block(graph, encoder, x, layer)
    return x


def block(graph: Graph, encoder: PreNorm, x: str, layer: int) -> str:
    """One layer."""
    names, at = encoder.names.of(layer), f"layer{layer}"
    normed = graph.normalise(f"{at}.first.norm", x, names.first_norm, encoder.epsilon)
    context = attention(graph, encoder, normed, at, names)
    x = graph.add("Add", f"{at}.attended.sum", x, graph.dense(f"{at}.attended", context, names.attended))
    normed = graph.normalise(f"{at}.second.norm", x, names.second_norm, encoder.epsilon)
    return graph.add("Add", f"{at}.sum", x, two_layers(graph, encoder, normed, at, names))


def attention(graph: Graph, encoder: PreNorm, x: str, at: str, names: Names) -> str:
    """The contexts of all heads side by side."""
    split = [0, -1, encoder.heads, encoder.hidden // encoder.heads]
    found = {role: getattr(names, role) for role in ("query", "key", "value")}
    flat = {role: graph.dense(f"{at}.{role}", x, weight, encoder.biased) for role, weight in found.items()}
    factor = graph.constant("query.factor", np.float32((encoder.hidden // encoder.heads) ** -0.5))
    flat["query"] = graph.add("Mul", f"{at}.query.scaled", flat["query"], factor)
    orders = {"query": [0, 2, 1, 3], "key": [0, 2, 3, 1], "value": [0, 2, 1, 3]}
    turned = {role: graph.heads(f"{at}.{role}", flat[role], split, order) for role, order in orders.items()}
    scores = post_norm.scored(graph, at, turned["query"], turned["key"], {})
    shares = graph.add("Softmax", f"{at}.weights", scores, axis=-1)
    return post_norm.attended(graph, encoder.hidden, at, shares, turned["value"])


def two_layers(graph: Graph, encoder: PreNorm, x: str, at: str, names: Names) -> str:
    """The dense layers and what stands between them.

    The factor of `quick_gelu` is the first one's, and its inverse the second one's, around x times its sigmoid.
    """
    if not encoder.quick:
        wide = graph.add(encoder.activation, f"{at}.activation", graph.dense(f"{at}.wide", x, names.wide))
        return graph.dense(f"{at}.narrow", wide, names.narrow)
    weights, factor = graph.weights, np.float32(QUICK)
    first = [weights[f"{names.wide}.{role}"] * factor for role in ("weight", "bias")]
    wide = graph.linear(f"{at}.wide", x, first[0], first[1])
    active = graph.add("Mul", f"{at}.activation", wide, graph.add("Sigmoid", f"{at}.sigmoid", wide))
    kernel, bias = (weights[f"{names.narrow}.{role}"] for role in ("weight", "bias"))
    return graph.linear(f"{at}.narrow", active, kernel / factor, bias)
