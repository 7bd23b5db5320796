"""BERT, RoBERTa, XLM-RoBERTa, CamemBERT and DistilBERT."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures import heads, post_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights
from tacit.importers.architectures.post_norm import Fields, Names
from tacit.importers.architectures.text import Tables, TextArchitecture, Written

DISTILBERT_NAMES = Names(
    query="transformer.layer.{}.attention.q_lin",
    key="transformer.layer.{}.attention.k_lin",
    value="transformer.layer.{}.attention.v_lin",
    attended="transformer.layer.{}.attention.out_lin",
    first_norm="transformer.layer.{}.sa_layer_norm",
    wide="transformer.layer.{}.ffn.lin1",
    narrow="transformer.layer.{}.ffn.lin2",
    second_norm="transformer.layer.{}.output_layer_norm",
)
DISTILBERT_FIELDS = Fields("dim", "n_heads", "n_layers", "activation")


def check(config: Config) -> None:
    """Refuse what is no encoder of this kind."""
    post_norm.describe(config)


def tables(config: Config, weights: Weights) -> Tables:
    """Words, positions from 0 and the first token type."""
    return Tables(
        words(config, weights, config.whole("hidden_size")),
        places(weights, 0),
        "embeddings.LayerNorm",
        config.real("layer_norm_eps", 1e-12),
    )


def tables_behind_padding(config: Config, weights: Weights) -> Tables:
    """The same, but the first token's position is the one behind that of the padding."""
    first = config.whole("pad_token_id", 1, least=0) + 1
    return tables(config, weights)._replace(places=places(weights, first))


def words(config: Config, weights: Weights, width: int) -> NDArray[np.float32]:
    """The embeddings of tokens, of the width that the configuration says."""
    table = weights["embeddings.word_embeddings.weight"]
    if table.ndim != 2 or table.shape[1] != width:
        config.damaged(f"the word embeddings have shape {list(table.shape)}, unlike config.json")
    return table


def places(weights: Weights, first: int) -> NDArray[np.float32]:
    """What positions from `first` on and the first token type add to embeddings."""
    added = weights["embeddings.position_embeddings.weight"][first:]
    if "embeddings.token_type_embeddings.weight" in weights:
        added = added + weights["embeddings.token_type_embeddings.weight"][0]
    return added


def layers(graph: Graph, written: Written, x: str) -> str:
    """All layers."""
    return post_norm.layers(graph, post_norm.describe(written.config), x)


def distilbert_layers(graph: Graph, written: Written, x: str) -> str:
    """All layers, by DistilBERT's names."""
    encoder = post_norm.describe(written.config, DISTILBERT_NAMES, DISTILBERT_FIELDS)
    return post_norm.layers(graph, encoder, x)


def distilbert_tables(config: Config, weights: Weights) -> Tables:
    """Words and positions; DistilBERT's norms have an epsilon of their own."""
    return Tables(words(config, weights, config.whole("dim")), places(weights, 0), "embeddings.LayerNorm", 1e-12)


def check_distilbert(config: Config) -> None:
    """Refuse what is no encoder of this kind."""
    post_norm.describe(config, DISTILBERT_NAMES, DISTILBERT_FIELDS)


BERT = TextArchitecture("bert.", check, tables, layers, heads.classes(heads.BERT))
ROBERTA = replace(BERT, prefix="roberta.", tables=tables_behind_padding, heads=heads.classes(heads.ROBERTA))
DISTILBERT = TextArchitecture(
    "distilbert.",
    check_distilbert,
    distilbert_tables,
    distilbert_layers,
    heads.classes(heads.Classifier("pre_classifier", "Relu", "classifier")),
)
