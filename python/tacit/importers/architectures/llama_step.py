"""One step of a decoder of the Llama kind: one token, and keys and values of earlier ones that nobody sees.

Keys and values are states of the model: shares at both parties, which stay from one input of a session to the next.
A state has the last `context` positions, the newest one last. A step appends its own and forgets the oldest, which
moves shares and computes nothing. Which positions count is a mask of the client's, so that the server does not learn
how many there are, and so that a new prompt needs no new session.

Input `x` is float32 (N, width + 2 * head width + beginning + context + 1, 1): the embedding of the token, the cosines
and the sines of its position, each `unit` times what they are, and a mask of the beginning, of the states, and of the
token itself, which is always 1.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.llama_floats import Sizes, sizes

WORDS = "embed_tokens.weight"


def above(config: Config) -> int:
    """Rows of an input between the embedding of its token and its mask: cosines and sines."""
    return 2 * sizes(config).width


def unit(weights: Weights) -> float:
    """How large 1 is among cosines and sines of an input: as large as the largest value of an embedding."""
    return float(np.abs(weights[WORDS].astype(np.float16)).max())


def states(config: Config) -> tuple[tuple[str, str], ...]:
    """Keys and values of all layers before a step, and those after it."""
    layers = range(config.whole("num_hidden_layers"))
    return tuple(named(f"layer{layer}", role) for layer in layers for role in ("key", "value"))


def named(at: str, role: str) -> tuple[str, str]:
    """Names of the keys or the values of a layer before a step and after it."""
    return f"{at}.{role}.before", f"{at}.{role}.after"


def positions(graph: Graph, first: int, width: int) -> None:
    """Name the cosines and the sines (N, 1, 1, width) in the rows of the input from `first` on."""
    for place, role in enumerate(("cosine", "sine")):
        start = first + place * width
        ends = [graph.integers(f"rotary.{role}.{end}", [at]) for end, at in (("from", start), ("to", start + width))]
        rows = graph.add("Slice", f"rotary.{role}.rows", "x", *ends, graph.integers("rotary.rows.axis", [1]))
        shape = graph.integers("rotary.rows.shape", [0, 1, 1, width])
        graph.add("Reshape", f"rotary.all.{role}", rows, shape)


def turning(weight: NDArray[np.float32], one: float, width: int) -> NDArray[np.float32]:
    """Weights of queries or keys that cosines and sines of an input multiply, where `one` stands for 1.

    The factor of the scores is in equal parts the query's and the key's.
    """
    found: NDArray[np.float32] = (weight * (width**-0.25 / one)).astype(np.float32)
    return found


def kept(graph: Graph, at: str, role: str, new: str, of: Sizes, context: int) -> str:
    """Keys or values (1, groups, context + 1, width): those of the state, and `new` (1, groups, 1, width)."""
    before, after = named(at, role)
    row = of.groups * of.width
    graph.state(before, (1, context, row), after)
    flat = graph.add("Reshape", f"{at}.{role}.row", new, graph.integers("kept.row", [1, 1, row]))
    every = graph.add("Concat", f"{at}.{role}.all", before, flat, axis=1)
    ends = [graph.integers(f"kept.{end}", [value]) for end, value in (("from", 1), ("to", context + 1))]
    graph.add("Slice", after, every, *ends, graph.integers("kept.axis", [1]))
    return graph.heads(f"{at}.{role}.kept", every, [1, context + 1, of.groups, of.width], [0, 2, 1, 3])
