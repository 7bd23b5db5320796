"""Llama, SmolLM2 and Qwen2: decoders with RMS norms, rotary positions, groups of heads and gated dense layers.

A decoder reads a prompt whose last token is at the last position, with padding before it, and gives a number for each
token that may come next. Rotary positions are relative, so that padding before the prompt changes nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures import post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.heads import Head, Kind
from tacit.importers.architectures.modernbert import rotated
from tacit.importers.architectures.text import MASKED, PENALTY, Tables, TextArchitecture, Written

ROTARY = "all"
LATER = "later"


class Sizes(NamedTuple):
    """Heads of queries, heads of keys and values, and the width of a head."""

    heads: int
    groups: int
    width: int


def sizes(config: Config) -> Sizes:
    """What the configuration says of heads."""
    heads = config.whole("num_attention_heads")
    groups = config.whole("num_key_value_heads", heads)
    if heads % groups:
        config.damaged("num_attention_heads is no multiple of num_key_value_heads in config.json")
    width = config.whole("head_dim", config.whole("hidden_size") // heads)
    if width % 2:
        config.damaged(f"heads of {width} values cannot be turned by pairs: head_dim in config.json must be even")
    return Sizes(heads, groups, width)


def check(config: Config) -> None:
    """Refuse what this architecture does not have."""
    sizes(config)
    config.choice("hidden_act", ["silu", "swish"], "silu")
    base(config)
    if config.get("use_sliding_window"):
        config.refuse("attention to neighbours only (use_sliding_window)", "use a model that attends to all tokens")


def base(config: Config) -> float:
    """The base of the frequencies of rotary positions."""
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if given.get("rope_type", given.get("type", "default")) != "default":
        config.refuse("scaled rotary positions (rope_type)", "use the model as it was trained, with `default`")
    return float(given.get("rope_theta") or config.real("rope_theta", 10000.0))


def tables(_config: Config, weights: Weights) -> Tables:
    """Embeddings of tokens, as they are."""
    return Tables(weights["embed_tokens.weight"], None, None, 0.0)


def turns(config: Config, sequence: int) -> list[NDArray[np.float32]]:
    """The cosines and the sines (sequence, width) that turn pairs of a head's values, by positions."""
    width = sizes(config).width
    frequencies = base(config) ** (-np.arange(0, width, 2) / width)
    angles = np.arange(sequence)[:, None] * frequencies
    sine = np.sin(angles)
    both = np.concatenate([np.cos(angles)] * 2, axis=1), np.concatenate([-sine, sine], axis=1)
    return [part.astype(np.float32) for part in both]


def norm(graph: Graph, config: Config, name: str, x: str, weight: str) -> str:
    """Values over the root of their mean square, times a factor each."""
    square = graph.add("Mul", f"{name}.square", x, x)
    mean = graph.add("ReduceMean", f"{name}.mean", square, graph.integers("norm.axes", [-1]), keepdims=1)
    epsilon = graph.constant("norm.epsilon", np.float32(config.real("rms_norm_eps", 1e-6)))
    root = graph.add("Sqrt", f"{name}.root", graph.add("Add", f"{name}.above", mean, epsilon))
    ratio = graph.add("Div", f"{name}.ratio", x, root)
    return graph.add("Mul", name, ratio, graph.constant(f"{name}.weight", graph.weights[f"{weight}.weight"]))


def repeated(graph: Graph, at: str, x: str, of: Sizes) -> str:
    """Heads of keys or values (N, groups, ...), each as often as queries read it."""
    if of.heads == of.groups:
        return x
    each = np.repeat(np.arange(of.groups), of.heads // of.groups)
    return graph.add("Gather", f"{at}.repeated", x, graph.constant("groups", each.astype(np.int64)), axis=1)


def attention(graph: Graph, config: Config, layer: int, x: str) -> str:
    """What attention adds to the states."""
    at, of, source = f"layer{layer}", sizes(config), f"layers.{layer}.self_attn"
    found = {}
    for role, count in (("query", of.heads), ("key", of.groups), ("value", of.groups)):
        weight = f"{source}.{role[0]}_proj"
        flat = graph.dense(f"{at}.{role}", x, weight, biased=f"{weight}.bias" in graph.weights)
        found[role] = graph.heads(f"{at}.{role}", flat, [0, -1, count, of.width], [0, 2, 1, 3])
    for role in ("query", "key"):
        found[role] = rotated(graph, f"{at}.{role}", found[role], ROTARY, of.width)
    key, value = (repeated(graph, f"{at}.{role}", found[role], of) for role in ("key", "value"))
    turned = graph.add("Transpose", f"{at}.key.turned", key, perm=[0, 1, 3, 2])
    scores = post_norm.scored(graph, at, found["query"], turned, {"later": LATER, "masked": PENALTY})
    shares = graph.add("Softmax", f"{at}.weights", scores, axis=-1)
    context = post_norm.attended(graph, of.heads * of.width, at, shares, value)
    return graph.dense(f"{at}.attended", context, f"{source}.o_proj", biased=f"{source}.o_proj.bias" in graph.weights)


def gated(graph: Graph, layer: int, x: str) -> str:
    """What the gated dense layers add to the states."""
    at, source = f"layer{layer}", f"layers.{layer}.mlp"
    gate = graph.dense(f"{at}.gate", x, f"{source}.gate_proj", biased=False)
    wide = graph.dense(f"{at}.wide", x, f"{source}.up_proj", biased=False)
    active = graph.add("Mul", f"{at}.activation", gate, graph.add("Sigmoid", f"{at}.sigmoid", gate))
    product = graph.add("Mul", f"{at}.gated", active, wide)
    return graph.dense(f"{at}.narrow", product, f"{source}.down_proj", biased=False)


def layers(graph: Graph, written: Written, x: str) -> str:
    """All layers and the last norm."""
    config, sequence = written.config, written.sequence
    # The factor of the scores is in equal parts the query's and the key's.
    factor = np.float32(sizes(config).width ** -0.25)
    for role, value in zip(("cosine", "sine"), turns(config, sequence), strict=True):
        graph.constant(f"rotary.{ROTARY}.{role}", value * factor)
    later = np.triu(np.full((sequence, sequence), MASKED, np.float32), 1)
    graph.constant(LATER, later)
    for layer in range(config.whole("num_hidden_layers")):
        at, source = f"layer{layer}", f"layers.{layer}"
        normed = norm(graph, config, f"{at}.first.norm", x, f"{source}.input_layernorm")
        x = graph.add("Add", f"{at}.attended.sum", x, attention(graph, config, layer, normed))
        normed = norm(graph, config, f"{at}.second.norm", x, f"{source}.post_attention_layernorm")
        x = graph.add("Add", f"{at}.sum", x, gated(graph, layer, normed))
    return norm(graph, config, "last.norm", x, "norm")


def heads(_config: Config) -> dict[Kind, Head]:
    """What is its own: numbers for the token that comes next, by the embedding where the two are one."""

    def following(graph: Graph, x: str, _mask: str) -> str:
        last = graph.row("last", x, -1)
        kernel = "lm_head.weight" if "lm_head.weight" in graph.weights else "embed_tokens.weight"
        return graph.linear("next", last, graph.weights[kernel], None)

    return {"next": following}


LLAMA = TextArchitecture("model.", check, tables, layers, heads)
"""Also Qwen2, whose queries, keys and values have biases."""
