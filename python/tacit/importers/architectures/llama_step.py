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

Array = NDArray[np.float32]

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


def evening(weights: Weights, source: str) -> float:
    """What queries are multiplied by and keys divided by, so that the largest of both are about as large."""
    kernels = [weights[f"{source}.{role}_proj.weight"] for role in "qk"]
    query, key = (float(np.linalg.norm(kernel, axis=1).max()) for kernel in kernels)
    return float(np.sqrt(key / query)) if min(query, key) > 0 else 1.0


def turning(weights: Weights, source: str, one: float, of: Sizes) -> tuple[Array, Array | None]:
    """Weights and biases of queries above keys, which cosines and sines multiply in which `one` stands for 1.

    The factor of the scores, and what makes queries about as large as keys (`evening`), is part of the weights: scores
    stay what they are.
    """
    even = evening(weights, source)
    factors = [factor * of.width**-0.25 / one for factor in (even, 1 / even)]

    def both(kind: str) -> Array:
        parts = [weights[f"{source}.{role}_proj.{kind}"] * factor for role, factor in zip("qk", factors, strict=True)]
        return np.concatenate(parts).astype(np.float32)

    return both("weight"), both("bias") if f"{source}.q_proj.bias" in weights else None


def at_once(graph: Graph, at: str, x: str, of: Sizes) -> str:
    """Heads (1, heads, 1, width) of one token, turned by the angles of its position: one product for all of them."""
    heads = of.heads + of.groups
    axis, middle = graph.integers("turning.axis", [3]), graph.integers("turning.half", [of.width // 2])
    ends = [graph.integers("turning.0", [0]), middle, graph.integers("turning.width", [of.width])]
    halves = [graph.add("Slice", f"{at}.half{half}", x, *ends[half : half + 2], axis) for half in range(2)]
    swapped = graph.add("Concat", f"{at}.swapped", *halves[::-1], axis=3)
    shape = graph.integers("turning.shape", [1, heads, 1, of.width])
    angles = [graph.add("Expand", f"{at}.{role}", f"rotary.all.{role}", shape) for role in ("cosine", "sine")]
    factors = graph.add("Concat", f"{at}.factors", *angles, axis=1)
    product = graph.add("Mul", f"{at}.product", graph.add("Concat", f"{at}.both", x, swapped, axis=1), factors)
    return graph.add(
        "Add", f"{at}.sum", *(part(graph, f"{at}.part{i}", product, (i * heads, i * heads + heads)) for i in (0, 1))
    )


def part(graph: Graph, name: str, x: str, ends: tuple[int, int]) -> str:
    """Some of the heads."""
    places = [graph.integers(f"heads.{end}", [end]) for end in ends]
    return graph.add("Slice", name, x, *places, graph.integers("heads.axis", [1]))


def kept(graph: Graph, names: tuple[str, str], made: tuple[str, Array | None], of: Sizes, context: int) -> str:
    """Keys or values (1, groups, beginning + context + 1, width): of the beginning, the state, and one position.

    `names` are those of the state and of what it is after a step; `made` are what is new, and those of the beginning
    (1, beginning, groups * width), which the server adds to its shares.
    """
    (before, after), (new, known) = names, made
    row = of.groups * of.width
    graph.state(before, (1, context, row), after)
    flat = graph.add("Reshape", f"{before}.row", new, graph.integers("kept.row", [1, 1, row]))
    every = graph.add("Concat", f"{before}.own", before, flat, axis=1)
    axis = graph.integers("kept.axis", [1])
    ends = [graph.integers(f"kept.{end}", [value]) for end, value in (("from", 1), ("to", context + 1))]
    graph.add("Slice", after, every, *ends, axis)
    beginning = 0 if known is None else known.shape[1]
    if known is not None:
        wider = graph.add("Pad", f"{before}.wider", before, graph.integers("kept.wider", [0, beginning, 0, 0, 0, 0]))
        ends = [graph.integers(f"kept.{end}", [at]) for end, at in (("first", 0), ("beginning", beginning))]
        zeros = graph.add("Slice", f"{before}.zeros", wider, *ends, axis)
        constants = graph.add("Add", f"{before}.beginning", zeros, graph.constant(f"{before}.known", known))
        every = graph.add("Concat", f"{before}.every", constants, every, axis=1)
    return graph.heads(f"{before}.all", every, [1, beginning + context + 1, of.groups, of.width], [0, 2, 1, 3])
