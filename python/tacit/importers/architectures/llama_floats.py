"""Decoders of the Llama kind in the clear: keys and values of a beginning that both parties know, and any logits.

Weights decide what a model has: embeddings of positions (`PLACES`) in place of rotary ones, and two dense layers with a
GELU in place of gated ones.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Weights
from tacit.importers.architectures.rotation import HEAD, PLACES, WORDS

Array = NDArray[np.float32]

HEAD_BIAS = "lm_head.bias"
CUBIC = 0.044715
"""The factor of the cube in the GELU by a hyperbolic tangent, with which GPT-2 was trained."""


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


def base(config: Config) -> float:
    """The base of the frequencies of rotary positions."""
    given = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if given.get("rope_type", given.get("type", "default")) != "default":
        config.refuse("scaled rotary positions (rope_type)", "use the model as it was trained, with `default`")
    return float(given.get("rope_theta") or config.real("rope_theta", 10000.0))


def turns(config: Config, places: Iterable[int]) -> list[Array]:
    """The cosines and the sines (places, width) that turn pairs of a head's values.

    The factor of the scores is in equal parts the query's and the key's.
    """
    width = sizes(config).width
    frequencies = base(config) ** (-np.arange(0, width, 2) / width)
    angles = np.array(list(places))[:, None] * frequencies
    sine = np.sin(angles)
    both = np.concatenate([np.cos(angles)] * 2, axis=1), np.concatenate([-sine, sine], axis=1)
    return [(part * width**-0.25).astype(np.float32) for part in both]


def normed(config: Config, x: Array, weight: Array) -> Array:
    """Values (tokens, hidden) over the root of their mean square, times `weight`."""
    root = np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(config.real("rms_norm_eps", 1e-6)))
    found: Array = x / root * weight
    return found


def dense(weights: Weights, name: str, x: Array) -> Array:
    """A dense layer, with its bias if it has one."""
    product = x @ weights[f"{name}.weight"].T
    found: Array = product + weights[f"{name}.bias"] if f"{name}.bias" in weights else product
    return found


def turned(x: Array, cosine: Array, sine: Array) -> Array:
    """Heads (heads, tokens, width) turned by the angles of their positions."""
    swapped = np.concatenate(np.split(x, 2, axis=-1)[::-1], axis=-1)
    found: Array = x * cosine + swapped * sine
    return found


def begun(config: Config, weights: Weights, tokens: Sequence[int]) -> dict[str, Array]:
    """Keys and values (heads, tokens, width) of the first tokens, by the layer: `0.key`, `0.value`, ..."""
    found: dict[str, Array] = {}
    if not tokens:
        return found
    words = weights[WORDS]
    if not 0 <= min(tokens) <= max(tokens) < len(words):
        config.damaged(f"the beginning has a token that is not among the {len(words)} of the model")
    states(config, weights, tokens, found)
    return found


def states(config: Config, weights: Weights, tokens: Sequence[int], kept: dict[str, Array]) -> Array:
    """States (tokens, hidden) behind the last norm, of tokens that follow those whose keys and values are `kept`.

    Their own keys and values are added to `kept`, by the layer (see `begun`).
    """
    x: Array = weights[WORDS][list(tokens)].astype(np.float32)
    start = kept["0.key"].shape[1] if kept else 0
    end = start + len(tokens)
    if PLACES in weights:
        x = x + weights[PLACES][start:end]
        cosine, sine = (np.full((len(tokens), sizes(config).width), angle, np.float32) for angle in (1.0, 0.0))
        cosine = cosine * np.float32(sizes(config).width ** -0.25)
    else:
        cosine, sine = turns(config, range(start, end))
    later = np.triu(np.full((len(tokens), end), -np.inf, np.float32), 1 + start)
    for layer in range(config.whole("num_hidden_layers")):
        at = f"layers.{layer}"
        read = normed(config, x, weights[f"{at}.input_layernorm.weight"])
        query, key, value = (heads(config, dense(weights, f"{at}.self_attn.{role}_proj", read)) for role in "qkv")
        query, key = turned(query, cosine, sine), turned(key, cosine, sine)
        earlier = [kept[f"{layer}.{role}"] for role in ("key", "value")] if start else [key[:, :0], value[:, :0]]
        key, value = np.concatenate([earlier[0], key], axis=1), np.concatenate([earlier[1], value], axis=1)
        kept[f"{layer}.key"], kept[f"{layer}.value"] = key, value
        scores = query @ key.transpose(0, 2, 1) + later
        power = np.exp(scores - scores.max(axis=-1, keepdims=True))
        context = (power / power.sum(axis=-1, keepdims=True)) @ value
        joined = context.transpose(1, 0, 2).reshape(len(tokens), -1)
        x = x + dense(weights, f"{at}.self_attn.o_proj", joined)
        read = normed(config, x, weights[f"{at}.post_attention_layernorm.weight"])
        x = x + dense(weights, f"{at}.mlp.down_proj", active(weights, f"{at}.mlp", read))
    return normed(config, x, weights["norm.weight"])


def active(weights: Weights, at: str, read: Array) -> Array:
    """What the last dense layer of a block reads: a gated product, or a GELU."""
    wide = dense(weights, f"{at}.up_proj", read)
    if f"{at}.gate_proj.weight" not in weights:
        found: Array = wide / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + CUBIC * wide**3))).astype(np.float32)
        return found
    gate = dense(weights, f"{at}.gate_proj", read)
    return np.asarray(gate / (1 + np.exp(-gate)) * wide, np.float32)


def heads(config: Config, x: Array) -> Array:
    """States (tokens, heads * width) by heads (heads, tokens, width), groups as often as they are read."""
    of = sizes(config)
    split = x.reshape(len(x), -1, of.width).transpose(1, 0, 2)
    return np.repeat(split, of.heads // len(split), axis=0)


def logits(config: Config, weights: Weights, tokens: Sequence[int], kept: dict[str, Array] | None = None) -> Array:
    """A number for each token (tokens, vocabulary) that may come after each of `tokens`.

    The tokens follow those whose keys and values are `kept`, and theirs are added; without it they are the first.
    """
    kernel = HEAD if HEAD in weights else WORDS
    found: Array = states(config, weights, tokens, {} if kept is None else kept) @ weights[kernel].T
    return found + weights[HEAD_BIAS] if HEAD_BIAS in weights else found
