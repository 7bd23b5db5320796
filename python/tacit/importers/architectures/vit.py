"""ViT and DeiT: patches behind a class token, and layers with norms in front."""

import numpy as np

from tacit.importers.architectures import pre_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph
from tacit.importers.architectures.image import (
    CLASSIFIER,
    ImageArchitecture,
    all_states,
    first_classifier,
    patches,
    placed,
    shape,
)
from tacit.importers.architectures.post_norm import Names

NAMES = Names(
    query="encoder.layer.{}.attention.attention.query",
    key="encoder.layer.{}.attention.attention.key",
    value="encoder.layer.{}.attention.attention.value",
    attended="encoder.layer.{}.attention.output.dense",
    first_norm="encoder.layer.{}.layernorm_before",
    wide="encoder.layer.{}.intermediate.dense",
    narrow="encoder.layer.{}.output.dense",
    second_norm="encoder.layer.{}.layernorm_after",
)
EPSILON = 1e-12


def check(config: Config) -> None:
    """Refuse what is no encoder of this kind."""
    pre_norm.describe(config, NAMES, EPSILON)
    shape(config)


def layers(graph: Graph, config: Config) -> str:
    """Everything, for models with one token in front, or with DeiT's two."""
    encoder = pre_norm.describe(config, NAMES, EPSILON)
    flat = patches(graph, config, "embeddings.patch_embeddings.projection")
    names = ["embeddings.cls_token"]
    if config.get("model_type") == "deit":
        names.append("embeddings.distillation_token")
    tokens = placed(
        graph, flat, [graph.weights[name] for name in names], graph.weights["embeddings.position_embeddings"]
    )
    return graph.normalise("last.norm", pre_norm.layers(graph, encoder, tokens), "layernorm", encoder.epsilon)


def teacher(graph: Graph, _config: Config, x: str) -> str:
    """The mean of two classifiers, of the class token and of the distilled one: one dense layer on both."""
    both = [graph.row(f"pooled{place}", x, place) for place in range(2)]
    names = ("cls_classifier", "distillation_classifier")
    kernels, biases = ([graph.weights[f"{name}.{role}"] for name in names] for role in ("weight", "bias"))
    joined = graph.add("Concat", "pooled", *both, axis=1)
    half = np.float32(0.5)
    return graph.linear("classifier", joined, np.concatenate(kernels, axis=1) * half, (biases[0] + biases[1]) * half)


HEADS = {"Model": all_states, CLASSIFIER: first_classifier}
VIT = ImageArchitecture("vit.", check, layers, HEADS, {"Model": 3})
DEIT = ImageArchitecture("deit.", check, layers, HEADS | {f"{CLASSIFIER}WithTeacher": teacher}, {"Model": 3})
