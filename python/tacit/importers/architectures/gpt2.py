"""GPT-2: a decoder with layer norms, learned positions and dense layers with biases, read as one of the Llama kind.

A layer norm of states whose mean is zero is an RMS norm, and the mean of what is added to states can be taken out of
the weights that add it. What the norm adds is part of the biases behind it (Ashkboos et al., "SliceGPT", ICLR 2024,
section 3.2). Everything else is what `llama` writes for weights of these names; clients add positions to the embedding
of a token.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Weights
from tacit.importers.architectures.llama import heads, layers
from tacit.importers.architectures.llama_floats import sizes
from tacit.importers.architectures.rotation import HEAD, PLACES, WORDS, Rotated
from tacit.importers.architectures.text import Tables, TextArchitecture

Array = NDArray[np.float32]

UNUSUAL = (
    ("scale_attn_by_inverse_layer_idx", "scores that are divided by the number of their layer"),
    ("add_cross_attention", "attention to another model's states"),
)


def check(config: Config) -> None:
    """Refuse what this architecture does not have."""
    sizes(config)
    config.activation("activation_function", "gelu_new")
    for name, what in UNUSUAL:
        if config.get(name):
            config.refuse(f"{what} ({name})", "use a model without")
    if config.get("scale_attn_weights", True) is not True:
        config.refuse("scores that are not scaled (scale_attn_weights)", "use a model with")
    if not config.architecture().endswith("LMHeadModel"):
        config.refuse(f"architecture {config.architecture()}", "use the model for the next token, GPT2LMHeadModel")


def prepared(config: Config, weights: Weights) -> Weights:
    """The weights of a decoder of the Llama kind that says the same, with states that are turned."""
    return Rotated(converted(config, weights), config.whole("hidden_size"))


def converted(config: Config, weights: Weights) -> dict[str, Array]:
    """The weights by their names in a decoder of the Llama kind, with states whose mean is zero."""
    words, width = weights["wte.weight"], config.whole("hidden_size")
    found = {WORDS: centred(words), PLACES: centred(weights["wpe.weight"])}
    for layer in range(config.whole("num_hidden_layers")):
        at, old = f"layers.{layer}", f"h.{layer}"
        kernel, bias = read(weights, f"{old}.attn.c_attn", f"{old}.ln_1")
        for place, role in enumerate("qkv"):
            rows = slice(place * width, (place + 1) * width)
            found[f"{at}.self_attn.{role}_proj.weight"] = kernel[rows]
            found[f"{at}.self_attn.{role}_proj.bias"] = bias[rows]
        kernel, bias = read(weights, f"{old}.mlp.c_fc", f"{old}.ln_2")
        found |= {f"{at}.mlp.up_proj.weight": kernel, f"{at}.mlp.up_proj.bias": bias}
        for name, source in (("self_attn.o_proj", "attn.c_proj"), ("mlp.down_proj", "mlp.c_proj")):
            found[f"{at}.{name}.weight"] = centred(weights[f"{old}.{source}.weight"]).T
            found[f"{at}.{name}.bias"] = centred(weights[f"{old}.{source}.bias"])
        for name, source in (("input_layernorm", "ln_1"), ("post_attention_layernorm", "ln_2")):
            found[f"{at}.{name}.weight"] = weights[f"{old}.{source}.weight"]
    head = weights.get(HEAD, words)
    return found | {
        "norm.weight": weights["ln_f.weight"],
        HEAD: head,
        "lm_head.bias": head @ weights["ln_f.bias"],
    }


def centred(values: Array) -> Array:
    """Values less the mean of their last axis."""
    found: Array = values - values.mean(axis=-1, keepdims=True)
    return found


def read(weights: Weights, name: str, norm: str) -> tuple[Array, Array]:
    """A dense layer (outputs, inputs) behind a norm, and its bias with what the norm adds."""
    kernel = weights[f"{name}.weight"].T
    return kernel, weights[f"{name}.bias"] + kernel @ weights[f"{norm}.bias"]


def tables(_config: Config, weights: Weights) -> Tables:
    """Embeddings of tokens, and of their positions."""
    return Tables(weights[WORDS], weights[PLACES], None, 0.0)


def above(_config: Config) -> int:
    """Nothing stands between the embedding of a token and its mask."""
    return 0


GPT2 = TextArchitecture(
    "transformer.", check, tables, layers, heads, decodes=True, prepare=prepared, stepped=above, only_steps=True
)
