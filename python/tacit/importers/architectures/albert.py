"""ALBERT: all layers have the same weights, and narrow embeddings are projected to the hidden size."""

from tacit.importers.architectures import bert, heads, post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.post_norm import Encoder, Names
from tacit.importers.architectures.text import Tables, TextArchitecture, Written

LAYER = "encoder.albert_layer_groups.0.albert_layers.0"
NAMES = Names(
    query=f"{LAYER}.attention.query",
    key=f"{LAYER}.attention.key",
    value=f"{LAYER}.attention.value",
    attended=f"{LAYER}.attention.dense",
    first_norm=f"{LAYER}.attention.LayerNorm",
    wide=f"{LAYER}.ffn",
    narrow=f"{LAYER}.ffn_output",
    second_norm=f"{LAYER}.full_layer_layer_norm",
)


def describe(config: Config) -> Encoder:
    """The encoder; one group of one layer is all that published models have."""
    for name in ("num_hidden_groups", "inner_group_num"):
        config.choice(name, [1], 1)
    return post_norm.describe(config, NAMES)


def check(config: Config) -> None:
    """Refuse groups of layers."""
    describe(config)


def tables(config: Config, weights: Weights) -> Tables:
    """Embeddings of the width `embedding_size`."""
    table = bert.words(config, weights, config.whole("embedding_size", 128))
    return Tables(table, bert.places(weights, 0), "embeddings.LayerNorm", config.real("layer_norm_eps", 1e-12))


def layers(graph: Graph, written: Written, x: str) -> str:
    """The projection, then all layers."""
    projected = graph.dense("embedding.projected", x, "encoder.embedding_hidden_mapping_in")
    return post_norm.layers(graph, describe(written.config), projected)


ALBERT = TextArchitecture(
    "albert.", check, tables, layers, heads.classes(heads.Classifier("pooler", "Tanh", "classifier", "pooler.dense"))
)
