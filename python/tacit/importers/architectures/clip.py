"""The half of CLIP that reads pictures; the half that reads texts sees only what stands before each token."""

from tacit.importers.architectures import pre_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph
from tacit.importers.architectures.image import ImageArchitecture, all_states, patches, placed, shape
from tacit.importers.architectures.post_norm import Names

NAMES = Names(
    query="encoder.layers.{}.self_attn.q_proj",
    key="encoder.layers.{}.self_attn.k_proj",
    value="encoder.layers.{}.self_attn.v_proj",
    attended="encoder.layers.{}.self_attn.out_proj",
    first_norm="encoder.layers.{}.layer_norm1",
    wide="encoder.layers.{}.mlp.fc1",
    narrow="encoder.layers.{}.mlp.fc2",
    second_norm="encoder.layers.{}.layer_norm2",
)
EPSILON = 1e-5


def quick(config: Config) -> Config:
    """The configuration, whose activation is `quick_gelu` unless it says otherwise."""
    return Config(config.folder, {"hidden_act": "quick_gelu", "patch_size": 32, **config.fields})


def check(config: Config) -> None:
    """Refuse what is no encoder of this kind."""
    pre_norm.describe(quick(config), NAMES, EPSILON)
    shape(quick(config))


def layers(graph: Graph, config: Config) -> str:
    """Everything but the last norm, which is the head's."""
    config = quick(config)
    encoder = pre_norm.describe(config, NAMES, EPSILON)
    flat = patches(graph, config, "embeddings.patch_embedding", biased=False)
    weights = graph.weights
    token, positions = weights["embeddings.class_embedding"], weights["embeddings.position_embedding.weight"]
    tokens = placed(graph, flat, [token], positions)
    # The name is spelt so in all published weights.
    normed = graph.normalise("tokens.norm", tokens, "pre_layrnorm", encoder.epsilon)
    return pre_norm.layers(graph, encoder, normed)


def projection(graph: Graph, config: Config, x: str) -> str:
    """The embedding of the picture (N, projection_dim): a norm and a projection of the first token."""
    normed = graph.normalise(
        "last.norm", graph.row("pooled", x, 0), "post_layernorm", config.real("layer_norm_eps", EPSILON)
    )
    return graph.dense("projected", normed, "visual_projection", biased=False)


CLIP_VISION = ImageArchitecture(
    "vision_model.",
    check,
    layers,
    {"CLIPVisionModel": all_states, "CLIPVisionModelWithProjection": projection},
    {"CLIPVisionModel": 3},
)
