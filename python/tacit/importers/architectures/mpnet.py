"""MPNet: BERT with one bias per head and distance between tokens, the same in all layers."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures import bert, heads, post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.post_norm import Encoder, Names
from tacit.importers.architectures.text import Tables, TextArchitecture, Written

NAMES = Names(
    query="encoder.layer.{}.attention.attn.q",
    key="encoder.layer.{}.attention.attn.k",
    value="encoder.layer.{}.attention.attn.v",
    attended="encoder.layer.{}.attention.attn.o",
    first_norm="encoder.layer.{}.attention.LayerNorm",
    wide="encoder.layer.{}.intermediate.dense",
    narrow="encoder.layer.{}.output.dense",
    second_norm="encoder.layer.{}.output.LayerNorm",
)
FIRST_POSITION = 2
BUCKETS, FARTHEST = 32, 128
"""How many biases there are, and the distance from which on they are the same."""


def check(config: Config) -> None:
    """Refuse what is no encoder of this kind."""
    post_norm.describe(config, NAMES)
    config.choice("relative_attention_num_buckets", [BUCKETS], BUCKETS)


def tables(config: Config, weights: Weights) -> Tables:
    """Words and positions; there are no token types."""
    return bert.tables(config, weights)._replace(places=bert.places(weights, FIRST_POSITION))


def bias(weights: Weights, sequence: int) -> NDArray[np.float32]:
    """What is added to scores (1, heads, queries, keys), by the distance from query to key."""
    table = weights["encoder.relative_attention_bias.weight"]
    places = np.arange(sequence)
    buckets = bucket(places[:, None] - places[None, :])
    return table[buckets].transpose(2, 0, 1)[None]


def bucket(distance: NDArray[np.int64]) -> NDArray[np.int64]:
    """The row of each distance: one for each near one, then wider and wider ones; half of them for keys to come."""
    half = BUCKETS // 2
    exact, far = half // 2, np.abs(distance)
    logarithm = np.log(np.maximum(far, 1).astype(np.float32) / exact) / np.log(FARTHEST / exact)
    large = np.minimum(exact + (logarithm * (half - exact)).astype(np.int64), half - 1)
    found: NDArray[np.int64] = np.where(far < exact, far, large) + half * (distance < 0)
    return found


def layers(graph: Graph, written: Written, x: str) -> str:
    """All layers, with the bias."""
    added = graph.constant("relative.bias", bias(graph.weights, written.sequence))

    def term(_graph: Graph, _encoder: Encoder, _layer: int) -> str:
        return added

    return post_norm.layers(graph, replace(post_norm.describe(written.config, NAMES), term=term), x)


MPNET = TextArchitecture("mpnet.", check, tables, layers, heads.classes(heads.ROBERTA))
