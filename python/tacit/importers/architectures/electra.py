"""ELECTRA: BERT whose embeddings may be narrower than its states."""

from tacit.importers.architectures import bert, heads, post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.text import Tables, TextArchitecture, Written


def tables(config: Config, weights: Weights) -> Tables:
    """Embeddings of the width `embedding_size`."""
    table = bert.words(config, weights, config.whole("embedding_size", 128))
    return Tables(table, bert.places(weights, 0), "embeddings.LayerNorm", config.real("layer_norm_eps", 1e-12))


def layers(graph: Graph, written: Written, x: str) -> str:
    """The projection where the sizes differ, then all layers."""
    if written.config.whole("embedding_size", 128) != written.config.whole("hidden_size"):
        x = graph.dense("embedding.projected", x, "embeddings_project")
    return post_norm.layers(graph, post_norm.describe(written.config), x)


ELECTRA = TextArchitecture(
    "electra.",
    bert.check,
    tables,
    layers,
    heads.classes(heads.Classifier("classifier.dense", "Gelu", "classifier.out_proj")),
)
