"""MPNet: BERT with one bias per head and distance between tokens, the same in all layers."""

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
FARTHEST = 128
"""Distances from here on have the same bias."""


def check(config: Config) -> None:
    """Refuse what is no encoder of this kind."""
    post_norm.describe(config, NAMES)


def tables(config: Config, weights: Weights) -> Tables:
    """Words and positions; there are no token types."""
    return bert.tables(config, weights)._replace(places=bert.places(weights, FIRST_POSITION))


def bias(config: Config, weights: Weights, sequence: int) -> NDArray[np.float32]:
    """What is added to scores (1, heads, queries, keys), by the distance from query to key."""
    table = weights["encoder.relative_attention_bias.weight"]
    places = np.arange(sequence)
    buckets = bucket(places[:, None] - places[None, :], config.whole("relative_attention_num_buckets", 32))
    return table[buckets].transpose(2, 0, 1)[None]


def bucket(distance: NDArray[np.int64], buckets: int) -> NDArray[np.int64]:
    """The row of each distance: one for each near one, then wider and wider ones; half of them for keys to come."""
    half = buckets // 2
    exact, far = half // 2, np.abs(distance)
    logarithm = np.log(np.maximum(far, 1).astype(np.float32) / exact) / np.log(FARTHEST / exact)
    large = np.minimum(exact + (logarithm * (half - exact)).astype(np.int64), half - 1)
    return np.where(far < exact, far, large) + half * (distance < 0)


def layers(graph: Graph, written: Written, x: str) -> str:
    """All layers, with the bias."""
    added = graph.constant("relative.bias", bias(written.config, graph.weights, written.sequence))

    def term(_graph: Graph, _encoder: Encoder, _layer: int) -> str:
        return added

    return post_norm.layers(graph, post_norm.describe(written.config, NAMES), written, x, term)


MPNET = TextArchitecture("mpnet.", check, tables, layers, heads.classes(heads.ROBERTA))
