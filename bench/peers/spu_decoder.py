"""A token of a language model as SPU computes it, in JAX: one step behind keys and values that are shared.

Written as a careful user of SPU would: factors of norms are part of the weights, positions are public, and SiLU is ReLU
minus a polynomial near zero.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from spu_functions import softmax

Array = Any
SILU_END = 8.0
"""From here on SiLU is taken to be ReLU; they differ by 0.003."""
SILU_TERMS = 8


class Step(NamedTuple):
    """What a step needs beside its input, keys and values, and weights: all of it is public."""

    layers: int
    heads: int
    groups: int
    width: int
    epsilon: float
    cosine: Array
    sine: Array


def silu_polynomial() -> list[float]:
    """Coefficients by a / `SILU_END`, constant first, of ReLU(a) - SiLU(a) up to `SILU_END`, of least squares."""
    nodes = (1 - np.cos(np.pi * (np.arange(400) + 0.5) / 400)) / 2
    tails = SILU_END * nodes / (1 + np.exp(SILU_END * nodes))
    return [float(term) for term in np.polynomial.polynomial.polyfit(nodes, tails, SILU_TERMS)]


def silu(x: Array) -> Array:
    """ReLU minus a polynomial of |x| near zero: two comparisons and four products."""
    c = silu_polynomial()
    positive = jnp.maximum(x, 0)
    a = (2 * positive - x) / SILU_END
    square = a * a
    cube = square * a
    fourth = square * square
    low = c[0] + c[1] * a + c[2] * square + c[3] * cube
    high = c[4] + c[5] * a + c[6] * square + c[7] * cube
    return positive - jnp.where(a < 1, low + fourth * (high + c[8] * fourth), 0)


def normed(x: Array, epsilon: float) -> Array:
    """Values over the root of their mean square."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + epsilon)


def turned(x: Array, step: Step) -> Array:
    """Heads (heads, width) turned by the angles of the position."""
    half = step.width // 2
    return x * step.cosine + jnp.concatenate([x[:, half:], x[:, :half]], axis=1) * step.sine


def attended(step: Step, query: Array, keys: Array, values: Array) -> Array:
    """What the heads (heads, width) of `query` gather of keys and values (groups, tokens, width)."""
    grouped = query.reshape(step.groups, step.heads // step.groups, step.width)
    shares = softmax(jnp.matmul(grouped, jnp.swapaxes(keys, 1, 2)))
    return jnp.matmul(shares, values).reshape(1, step.heads * step.width)


def step_of(path: Path) -> tuple[Callable[..., Array], list[Any]]:
    """The step of a file of `decoder_files.py` as a function, and its arguments.

    They are the embedding (1, hidden) of the token, keys and values (groups, tokens, width) by the layer, and weights.
    The result (1,) is the number of the best next token.
    """
    with np.load(path, allow_pickle=False) as archive:
        facts = json.loads(str(archive["facts"]))
        step = Step(**facts, cosine=archive["cosine"], sine=archive["sine"])
        x = archive["x"]
        kept, weights = (
            {name: archive[name] for name in archive.files if name.startswith(of)} for of in ("kept", "w.")
        )

    def run(x: Array, kept: Mapping[str, Array], weights: Mapping[str, Array]) -> Array:
        for layer in range(step.layers):
            at = f"w.{layer}"
            read = normed(x, step.epsilon)
            query, key, value = ((read @ weights[f"{at}.{role}"]).reshape(-1, step.width) for role in "qkv")
            query, key = turned(query, step), turned(key, step)
            keys = jnp.concatenate([kept[f"kept.{layer}.key"], key[:, None]], axis=1)
            values = jnp.concatenate([kept[f"kept.{layer}.value"], value[:, None]], axis=1)
            x = x + attended(step, query, keys, values) @ weights[f"{at}.o"]
            read = normed(x, step.epsilon)
            x = x + (silu(read @ weights[f"{at}.gate"]) * (read @ weights[f"{at}.up"])) @ weights[f"{at}.down"]
        return jnp.argmax(normed(x, step.epsilon) @ weights["w.head"], axis=-1)

    return run, [x, kept, weights]
