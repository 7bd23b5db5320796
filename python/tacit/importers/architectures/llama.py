"""Llama, SmolLM2 and Qwen2: decoders with RMS norms, rotary positions, groups of heads and gated dense layers.

A decoder reads the tokens behind a beginning that both parties know, with padding after them, and gives a number for
each token that may come next. Keys and values of the beginning are constants: the server computes them in the clear.
States are turned, and the factors of norms are part of the weights behind them (`rotation`); the head reads the state
of the last token only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures import post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.heads import Head, Kind
from tacit.importers.architectures.llama_floats import Sizes, base, begun, sizes, turns
from tacit.importers.architectures.llama_step import (
    above,
    at_once,
    evening,
    kept,
    named,
    part,
    positions,
    turning,
    unit,
)
from tacit.importers.architectures.modernbert import rotated
from tacit.importers.architectures.rotation import HEAD, PLACES, Rotated
from tacit.importers.architectures.text import PENALTY, Tables, TextArchitecture, Written

ALL = "all"
"""The rotary positions of all tokens."""
END = 1e30
"""What no activation reaches."""
GATED_BITS = 2
"""Gated products have a few values that are a thousand times as large as most, and need more bits than activations."""
SELECT = "mask"
"""The row of the input that has a 1 at the last token (N, sequence)."""


class Extent(NamedTuple):
    """Heads, keys and values of the beginning and its tokens, and queries of a head.

    A step has heads of keys only, with the queries of a group. Its `context` is how many positions states have before
    it, of others 0, and `unit` how large 1 is among cosines. Without `rotary` positions are part of the embedding.
    """

    heads: Sizes
    known: Weights
    beginning: int
    rows: int
    context: int = 0
    unit: float = 1.0
    rotary: bool = True

    @property
    def each(self) -> int:
        """Queries of a group of heads at one position."""
        return self.heads.heads // self.heads.groups

    def before(self, layer: int, role: str, factor: float = 1.0) -> NDArray[np.float32] | None:
        """Keys or values (1, beginning, groups * width) of a step's beginning times `factor`, if it has any."""
        if not self.known:
            return None
        heads = self.known[f"{layer}.{role}"][:: self.each]
        return (heads.transpose(1, 0, 2).reshape(1, heads.shape[1], -1) * factor).astype(np.float32)


def check(config: Config) -> None:
    """Refuse what this architecture does not have."""
    sizes(config)
    config.choice("hidden_act", ["silu", "swish"], "silu")
    base(config)
    if config.get("use_sliding_window"):
        config.refuse("attention to neighbours only (use_sliding_window)", "use a model that attends to all tokens")
    if not config.architecture().endswith("ForCausalLM"):
        config.refuse(f"architecture {config.architecture()}", "use the model for the next token, ...ForCausalLM")


def turned(config: Config, weights: Weights) -> Weights:
    """Weights of states that are turned, and of norms without factors."""
    return Rotated(weights, config.whole("hidden_size"))


def tables(_config: Config, weights: Weights) -> Tables:
    """Embeddings of tokens, as the weights have them."""
    return Tables(weights["embed_tokens.weight"], None, None, 0.0)


def norm(graph: Graph, config: Config, name: str, x: str) -> str:
    """Values over the root of their mean square; the layers that read them have the norm's factors (`Rotated`)."""
    square = graph.add("Mul", f"{name}.square", x, x)
    mean = graph.add("ReduceMean", f"{name}.mean", square, graph.integers("norm.axes", [-1]), keepdims=1)
    epsilon = graph.constant("norm.epsilon", np.float32(config.real("rms_norm_eps", 1e-6)))
    root = graph.add("Sqrt", f"{name}.root", graph.add("Add", f"{name}.above", mean, epsilon))
    return rounded(graph, name, graph.add("Div", name, x, root))


def dense(graph: Graph, name: str, x: str, weight: str) -> str:
    """A dense layer, with a bias where there is one."""
    return graph.dense(name, x, weight, biased=f"{weight}.bias" in graph.weights)


def rounded(graph: Graph, at: str, x: str) -> str:
    """What is as it was, but for the compiler: it rounds here to the bits of an activation."""
    ends = [graph.constant(f"rounded.{role}", np.float32(end)) for role, end in (("low", -END), ("high", END))]
    return graph.add("Clip", f"{at}.rounded", x, *ends)


def repeated(graph: Graph, at: str, x: str, of: Sizes) -> str:
    """Heads of keys or values (N, groups, ...), each as often as queries read it."""
    if of.heads == of.groups:
        return x
    each = np.repeat(np.arange(of.groups), of.heads // of.groups)
    return graph.add("Gather", f"{at}.repeated", x, graph.constant("groups", each.astype(np.int64)), axis=1)


def by_head(graph: Graph, name: str, x: str, weight: NDArray[np.float32], rows: int) -> str:
    """`x` (N, heads, rows, inner) times the `weight` (heads, inner, outer) of each head: (N, heads, rows, outer)."""
    heads, inner, outer = weight.shape
    turned = graph.add("Transpose", f"{name}.turned", x, perm=[0, 1, 3, 2])
    flat = graph.add(
        "Reshape", f"{name}.flat", turned, graph.integers(f"{name}.flat.shape", [0, heads * inner, rows, 1])
    )
    kernel = graph.constant(f"{name}.weight", weight.transpose(0, 2, 1).reshape(heads * outer, inner, 1, 1))
    product = graph.add("Conv", f"{name}.product", flat, kernel, group=heads, kernel_shape=[1, 1])
    shape = graph.integers(f"{name}.shape", [0, heads, outer, rows])
    return graph.add("Transpose", name, graph.add("Reshape", f"{name}.split", product, shape), perm=[0, 1, 3, 2])


def windowed(graph: Graph, layer: int, x: str, of: Extent) -> tuple[str, str, str]:
    """Queries, keys and values (N, heads, sequence, width) of all tokens of an input."""
    at, source, heads = f"layer{layer}", f"layers.{layer}.self_attn", of.heads
    found = {}
    for role, count in (("query", heads.heads), ("key", heads.groups), ("value", heads.groups)):
        flat = dense(graph, f"{at}.{role}", x, f"{source}.{role[0]}_proj")
        found[role] = graph.heads(f"{at}.{role}", flat, [0, -1, count, heads.width], [0, 2, 1, 3])
    for role in ("query", "key"):
        found[role] = rotated(graph, f"{at}.{role}", found[role], ALL, heads.width)
    found = {role: rounded(graph, f"{at}.{role}", part) for role, part in found.items()}
    key, value = (repeated(graph, f"{at}.{role}", found[role], heads) for role in ("key", "value"))
    return found["query"], key, value


def stepped(graph: Graph, layer: int, x: str, of: Extent) -> tuple[str, str, str]:
    """Queries (1, groups, queries of a group, width) of one token, and keys and values (1, groups, positions, width).

    Queries and keys are turned at once, which takes the rounds of one.
    """
    at, source, heads = f"layer{layer}", f"layers.{layer}.self_attn", of.heads
    weight, bias = turning(graph.weights, source, of.unit, heads)
    flat = graph.linear(f"{at}.turning", x, weight, bias)
    every = heads.heads + heads.groups
    split = graph.add(
        "Reshape", f"{at}.turning.heads", flat, graph.integers("turning.heads", [1, every, 1, heads.width])
    )
    placed = at_once(graph, f"{at}.turning", split, heads) if of.rotary else split
    turned = rounded(graph, f"{at}.turning", placed)
    query = part(graph, f"{at}.query", turned, (0, heads.heads))
    key = part(graph, f"{at}.key", turned, (heads.heads, every))
    value = rounded(graph, f"{at}.value", dense(graph, f"{at}.value", x, f"{source}.v_proj"))
    by_group = graph.integers("query.groups", [1, heads.groups, of.each, heads.width])
    query = graph.add("Reshape", f"{at}.query.groups", query, by_group)
    known = of.before(layer, "key", 1 / evening(graph.weights, source)), of.before(layer, "value")
    key = kept(graph, named(at, "key"), (key, known[0]), heads, of.context)
    value = kept(graph, named(at, "value"), (value, known[1]), heads, of.context)
    return query, key, value


def attention(graph: Graph, layer: int, x: str, of: Extent) -> str:
    """What attention adds to the states."""
    at, source = f"layer{layer}", f"layers.{layer}.self_attn"
    query, key, value = stepped(graph, layer, x, of) if of.context else windowed(graph, layer, x, of)
    turned = graph.add("Transpose", f"{at}.key.turned", key, perm=[0, 1, 3, 2])
    scores = graph.add("MatMul", f"{at}.scores", query, turned)
    if of.beginning:
        keys = of.known[f"{layer}.key"].transpose(0, 2, 1)
        known = by_head(graph, f"{at}.scores.beginning", query, keys, of.rows)
        scores = graph.add("Concat", f"{at}.scores.joined", known, scores, axis=-1)
    hidden = graph.add("Add", f"{at}.scores.masked", scores, PENALTY)
    shares = graph.add("Softmax", f"{at}.weights", hidden, axis=-1)
    context = contexts(graph, layer, shares, value, of)
    return dense(graph, f"{at}.attended", context, f"{source}.o_proj")


def contexts(graph: Graph, layer: int, shares: str, value: str, of: Extent) -> str:
    """The values that heads attend to, side by side."""
    at, hidden = f"layer{layer}", of.heads.heads * of.heads.width
    if not of.beginning and not of.context:
        return post_norm.attended(graph, hidden, at, shares, value)
    total = attended(graph, layer, shares, value, of)
    if of.context:
        # Heads of a group are next to each other, as in the state.
        return graph.add("Reshape", f"{at}.context.joined", total, graph.integers("context.shape", [1, 1, hidden]))
    turned = graph.add("Transpose", f"{at}.context.turned", total, perm=[0, 2, 1, 3])
    return graph.add("Reshape", f"{at}.context.joined", turned, graph.integers("context.shape", [0, -1, hidden]))


def attended(graph: Graph, layer: int, shares: str, value: str, of: Extent) -> str:
    """The values that heads attend to, in the form of the heads."""
    at = f"layer{layer}"
    if not of.beginning:
        return rounded(graph, f"{at}.context", graph.add("MatMul", f"{at}.context", shares, value))
    axis, middle = graph.integers("beginning.axis", [3]), graph.integers("beginning.end", [of.beginning])
    ends = graph.integers("beginning.first", [0]), middle, graph.integers("tokens.end", [1 << 30])
    known, own = (
        graph.add("Slice", f"{at}.weights.{role}", shares, start, end, axis)
        for role, start, end in (("beginning", *ends[:2]), ("tokens", *ends[1:]))
    )
    first = by_head(graph, f"{at}.context.beginning", known, of.known[f"{layer}.value"], of.rows)
    total = graph.add("Add", f"{at}.context.sum", graph.add("MatMul", f"{at}.context", own, value), first)
    return rounded(graph, f"{at}.context", total)


def gated(graph: Graph, layer: int, x: str) -> str:
    """What the dense layers add to the states: gated ones, or two with an activation between them."""
    at, source = f"layer{layer}", f"layers.{layer}.mlp"
    if f"{source}.gate_proj.weight" not in graph.weights:
        active = graph.add("Gelu", f"{at}.activation", dense(graph, f"{at}.wide", x, f"{source}.up_proj"))
        return dense(graph, f"{at}.narrow", active, f"{source}.down_proj")
    gate = dense(graph, f"{at}.gate", x, f"{source}.gate_proj")
    wide = dense(graph, f"{at}.wide", x, f"{source}.up_proj")
    active = graph.add("Mul", f"{at}.activation", gate, graph.add("Sigmoid", f"{at}.sigmoid", gate))
    product = rounded(graph, f"{at}.gated", graph.add("Mul", f"{at}.gated", active, wide))
    for name in (active, f"{at}.gated", product):
        graph.widened(name, GATED_BITS)
    return dense(graph, f"{at}.narrow", product, f"{source}.down_proj")


def layers(graph: Graph, written: Written, x: str) -> str:
    """All layers and the last norm: the state of the last token (N, 1, hidden)."""
    config, sequence, beginning = written.config, written.sequence, len(written.beginning)
    of, context, rotary = sizes(config), written.context, PLACES not in graph.weights
    known = begun(config, graph.weights, written.beginning)
    if context and rotary:
        positions(graph, config.whole("hidden_size"), of.width)
    elif rotary:
        for role, value in zip(("cosine", "sine"), turns(config, range(beginning, beginning + sequence)), strict=True):
            graph.constant(f"rotary.{ALL}.{role}", value)
    one = unit(graph.weights) if context and rotary else 1.0
    # Keys and values of the beginning are next to those of a state.
    extent = Extent(of, known, 0 if context else beginning, sequence, context, one, rotary)
    for layer in range(config.whole("num_hidden_layers")):
        at = f"layer{layer}"
        added = attention(graph, layer, norm(graph, config, f"{at}.first.norm", x), extent)
        x = graph.add("Add", f"{at}.attended.sum", x, added)
        x = graph.add("Add", f"{at}.sum", x, gated(graph, layer, norm(graph, config, f"{at}.second.norm", x)))
    last = norm(graph, config, "last.norm", x)
    if context:
        return last
    row = graph.add("Unsqueeze", "last.row", SELECT, graph.integers("last.axes", [1]))
    return graph.add("MatMul", "last.state", row, last)


def heads(_config: Config) -> dict[Kind, Head]:
    """What is its own: numbers for the token that comes next."""

    def following(graph: Graph, x: str, _mask: str) -> str:
        return dense(graph, "next", graph.row("last", x, 0), HEAD.removesuffix(".weight"))

    return {"next": following}


LLAMA = TextArchitecture("model.", check, tables, layers, heads, decodes=True, prepare=turned, stepped=above)
"""Also Qwen2, whose queries, keys and values have biases."""
