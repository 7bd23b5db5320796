"""ModernBERT: norms before each half of a layer, rotary positions, gated dense layers, mostly without biases."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures import post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.heads import Head, Kind, cls
from tacit.importers.architectures.text import MASKED, PENALTY, Tables, TextArchitecture, Written

LOCAL, GLOBAL = "sliding_attention", "full_attention"
BASES = {LOCAL: ("local_rope_theta", 10000.0), GLOBAL: ("global_rope_theta", 160000.0)}


def kinds(config: Config) -> list[str]:
    """Whether each layer attends to neighbours only, or to all tokens."""
    count, every = config.whole("num_hidden_layers"), config.whole("global_attn_every_n_layers", 3)
    found = config.get("layer_types", [LOCAL if layer % every else GLOBAL for layer in range(count)])
    if len(found) != count or not set(found) <= {LOCAL, GLOBAL}:
        config.refuse("layer_types in config.json", f"name {LOCAL} or {GLOBAL} for each layer")
    return list(found)


def check(config: Config) -> None:
    """Refuse what is no encoder of this kind."""
    config.divided("hidden_size", "num_attention_heads")
    config.activation("hidden_activation")
    for kind in set(kinds(config)):
        base(config, kind)


def base(config: Config, kind: str) -> float:
    """The base of the frequencies of rotary positions in layers of a kind."""
    old, usual = BASES[kind]
    given = config.get("rope_parameters", {}).get(kind) or {}
    if given.get("rope_type", "default") != "default" or config.get("rope_scaling"):
        config.refuse("scaled rotary positions (rope_type)", "use the model as it was trained, with `default`")
    shared = config.real("global_rope_theta", usual) if old in config.fields else usual
    return float(given.get("rope_theta") or config.real(old, shared))


def tables(config: Config, weights: Weights) -> Tables:
    """Embeddings of tokens; positions come later."""
    words = weights["embeddings.tok_embeddings.weight"]
    return Tables(words, None, "embeddings.norm", config.real("norm_eps", 1e-5), bool(config.get("norm_bias", False)))


def rotary(config: Config, kind: str, sequence: int, width: int) -> list[NDArray[np.float32]]:
    """What states and states with their halves swapped are multiplied with (sequence, width)."""
    frequencies = base(config, kind) ** (-np.arange(0, width, 2) / width)
    angles = np.arange(sequence)[:, None] * frequencies
    sine = np.sin(angles)
    both = np.concatenate([np.cos(angles)] * 2, axis=1), np.concatenate([-sine, sine], axis=1)
    return [part.astype(np.float32) for part in both]


def rotated(graph: Graph, at: str, x: str, kind: str, width: int) -> str:
    """Heads (N, heads, sequence, width), each pair of elements turned by the angle of its position."""
    ends = [graph.integers(f"rotary.{role}", [value]) for role, value in (("0", 0), ("1", width // 2), ("2", width))]
    axis = graph.integers("rotary.axis", [3])
    halves = [graph.add("Slice", f"{at}.half{half}", x, *ends[half : half + 2], axis) for half in range(2)]
    swapped = graph.add("Concat", f"{at}.swapped", *halves[::-1], axis=-1)
    straight = graph.add("Mul", f"{at}.cosine", x, f"rotary.{kind}.cosine")
    return graph.add("Add", f"{at}.rotated", straight, graph.add("Mul", f"{at}.sine", swapped, f"rotary.{kind}.sine"))


def projected(graph: Graph, x: str, weight: str, names: Sequence[str], biased: bool) -> list[str]:
    """Dense layers that are stored as one, by their names."""
    kernels = np.split(graph.weights[f"{weight}.weight"], len(names))
    biases = np.split(graph.weights[f"{weight}.bias"], len(names)) if biased else [None] * len(names)
    stored = zip(names, kernels, biases, strict=True)
    return [graph.linear(name, x, kernel, bias) for name, kernel, bias in stored]


def attention(graph: Graph, config: Config, layer: int, x: str, kind: str) -> str:
    """What attention adds to the states."""
    hidden, count = config.divided("hidden_size", "num_attention_heads")
    at, width, biased = f"layer{layer}", hidden // count, bool(config.get("attention_bias", False))
    roles = ("query", "key", "value")
    flat = projected(graph, x, f"layers.{layer}.attn.Wqkv", [f"{at}.{role}" for role in roles], biased)
    split = [
        graph.heads(f"{at}.{role}", part, [0, -1, count, width], [0, 2, 1, 3])
        for role, part in zip(roles, flat, strict=True)
    ]
    query, key = (
        rotated(graph, f"{at}.{role}", part, kind, width) for role, part in zip(roles, split[:2], strict=False)
    )
    turned = graph.add("Transpose", f"{at}.key.turned", key, perm=[0, 1, 3, 2])
    near = "window" if kind == LOCAL and "window" in graph.constants else None
    scores = post_norm.scored(graph, at, query, turned, {"near": near, "masked": PENALTY})
    shares = graph.add("Softmax", f"{at}.weights", scores, axis=-1)
    context = post_norm.attended(graph, hidden, at, shares, split[2])
    return graph.dense(f"{at}.attended", context, f"layers.{layer}.attn.Wo", biased)


def gated(graph: Graph, config: Config, layer: int, x: str) -> str:
    """What the gated dense layers add to the states."""
    at, biased = f"layer{layer}", bool(config.get("mlp_bias", False))
    wide, gate = projected(graph, x, f"layers.{layer}.mlp.Wi", [f"{at}.wide", f"{at}.gate"], biased)
    active = graph.add(config.activation("hidden_activation"), f"{at}.activation", wide)
    product = graph.add("Mul", f"{at}.gated", active, gate)
    return graph.dense(f"{at}.narrow", product, f"layers.{layer}.mlp.Wo", biased)


def layers(graph: Graph, written: Written, x: str) -> str:
    """All layers and the last norm."""
    config, sequence = written.config, written.sequence
    sorts = kinds(config)
    reach = window(config, sequence)
    if reach is not None:
        graph.constant("window", reach)
    hidden, count = config.divided("hidden_size", "num_attention_heads")
    for kind in set(sorts):
        for role, value in zip(("cosine", "sine"), rotary(config, kind, sequence, hidden // count), strict=True):
            # The factor of the scores is in equal parts the query's and the key's.
            graph.constant(f"rotary.{kind}.{role}", value * np.float32((hidden // count) ** -0.25))
    for layer, kind in enumerate(sorts):
        normed = x if layer == 0 else norm(graph, config, f"layer{layer}.first", x, f"layers.{layer}.attn_norm")
        added = attention(graph, config, layer, normed, kind)
        x = graph.add("Add", f"layer{layer}.attended.sum", x, added)
        normed = norm(graph, config, f"layer{layer}.second", x, f"layers.{layer}.mlp_norm")
        x = graph.add("Add", f"layer{layer}.sum", x, gated(graph, config, layer, normed))
    return norm(graph, config, "last", x, "final_norm")


def window(config: Config, sequence: int) -> NDArray[np.float32] | None:
    """What is added to scores (sequence, sequence) in layers that attend to neighbours; None if all are in reach."""
    reach, places = config.whole("local_attention", 128) // 2, np.arange(sequence)
    far = np.abs(places[:, None] - places[None, :]) > reach
    return np.where(far, np.float32(MASKED), np.float32(0)) if far.any() else None


def norm(graph: Graph, config: Config, name: str, x: str, weight: str) -> str:
    """A norm over states."""
    biased = bool(config.get("norm_bias", False))
    return graph.normalise(f"{name}.norm", x, weight, config.real("norm_eps", 1e-5), biased)


def own_heads(config: Config) -> dict[Kind, Head]:
    """All classifiers have a dense layer, an activation and a norm before them."""

    def each(graph: Graph, x: str, _mask: str) -> str:
        inner = graph.dense("head.dense", x, "head.dense", bool(config.get("classifier_bias", False)))
        active = graph.add(config.activation("classifier_activation"), "head.activation", inner)
        return graph.dense("classifier", norm(graph, config, "head", active, "head.norm"), "classifier")

    def first(graph: Graph, x: str, mask: str) -> str:
        if config.get("classifier_pooling", "cls") != "cls":
            advice = "train it with classifier_pooling `cls`, or compile the encoder alone and classify its embeddings"
            config.refuse("a classifier of the mean (classifier_pooling)", advice)
        return each(graph, cls(graph, x, mask), mask)

    return {"classes": first, "tokens": each, "spans": each}


MODERNBERT = TextArchitecture("model.", check, tables, layers, own_heads)
