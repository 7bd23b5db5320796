"""Language models with random weights, as directories of Hugging Face, for measurements of cost.

`.venv/bin/python -m tacit_lab.random_decoders SHAPE -o FOLDER [--layers N]` writes config.json, model.safetensors and
tokenizer.json of a model whose widths are those of SHAPE. Tokens are bytes, and the other words of the vocabulary stand
for nothing. Weights are normal and keep states of one size, under a fixed seed. What a private token costs does not
depend on weights; what such a model writes has no meaning. With fewer `--layers` than the shape has, large models fit
into a small machine: a token costs the same for each layer, so that models of one and of two layers say what all cost.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Array = NDArray[np.float32]
PLACES = 1024
"""Positions that a model with learned ones knows."""


class Shape(NamedTuple):
    """Widths of a decoder: those of GPT-2 have no `groups`, and gated layers and rotary positions otherwise."""

    hidden: int
    wide: int
    layers: int
    heads: int
    groups: int | None
    words: int

    @property
    def gated(self) -> bool:
        """Whether it is of the Llama kind."""
        return self.groups is not None


SHAPES = {
    "gpt2-small": Shape(768, 3072, 12, 12, None, 50257),
    "smollm2-135m": Shape(576, 1536, 30, 9, 3, 49152),
    "llama-1b": Shape(2048, 8192, 16, 32, 8, 128256),
}


def write(shape: Shape, folder: Path) -> Path:
    """A directory of a model of this shape; needs the packages `tokenizers` and `safetensors`."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(shape), indent=1) + "\n", encoding="utf-8")
    save_file(dict(weights(shape)), folder / "model.safetensors")
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def config(shape: Shape) -> dict[str, object]:
    """What config.json says."""
    ends = {"bos_token_id": 1, "eos_token_id": 1, "vocab_size": shape.words}
    if not shape.gated:
        sizes = {"n_embd": shape.hidden, "n_head": shape.heads, "n_layer": shape.layers, "n_positions": PLACES}
        return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "layer_norm_epsilon": 1e-5, **sizes, **ends}
    sizes = {
        "hidden_size": shape.hidden,
        "intermediate_size": shape.wide,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.groups or shape.heads,
    }
    kind = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": True}
    return {**kind, "rms_norm_eps": 1e-5, "max_position_embeddings": PLACES, **sizes, **ends}


def weights(shape: Shape) -> Iterator[tuple[str, Array]]:
    """All weights by their names in files of Hugging Face: norms near 1, dense layers that keep sizes."""
    random = np.random.default_rng(0)

    def normal(*sizes: int, deviation: float) -> Array:
        return random.standard_normal(sizes, np.float32) * np.float32(deviation)

    family = llama if shape.gated else gpt2
    yield from family(shape, normal)


def llama(shape: Shape, normal: Callable[..., Array]) -> Iterator[tuple[str, Array]]:
    """Weights of the Llama kind."""
    groups = shape.hidden // shape.heads * (shape.groups or shape.heads)
    square = {"q": shape.hidden, "k": groups, "v": groups, "o": shape.hidden}
    yield "model.embed_tokens.weight", normal(shape.words, shape.hidden, deviation=1.0)
    yield "model.norm.weight", near_one(shape, normal)
    for layer in range(shape.layers):
        at = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{at}.{norm}.weight", near_one(shape, normal)
        for role, rows in square.items():
            yield f"{at}.self_attn.{role}_proj.weight", dense(normal, rows, shape.hidden)
        for role in ("gate", "up"):
            yield f"{at}.mlp.{role}_proj.weight", dense(normal, shape.wide, shape.hidden)
        yield f"{at}.mlp.down_proj.weight", dense(normal, shape.hidden, shape.wide)


def gpt2(shape: Shape, normal: Callable[..., Array]) -> Iterator[tuple[str, Array]]:
    """Weights of GPT-2; those of dense layers are (given, made)."""
    yield "transformer.wte.weight", normal(shape.words, shape.hidden, deviation=1.0)
    yield "transformer.wpe.weight", normal(PLACES, shape.hidden, deviation=0.1)
    blocks = [f"h.{layer}" for layer in range(shape.layers)]
    for norm in ("ln_f", *(f"{block}.{name}" for block in blocks for name in ("ln_1", "ln_2"))):
        yield f"transformer.{norm}.weight", near_one(shape, normal)
        yield f"transformer.{norm}.bias", normal(shape.hidden, deviation=0.1)
    layers = (
        ("attn.c_attn", shape.hidden, 3 * shape.hidden),
        ("attn.c_proj", shape.hidden, shape.hidden),
        ("mlp.c_fc", shape.hidden, shape.wide),
        ("mlp.c_proj", shape.wide, shape.hidden),
    )
    for block in blocks:
        for name, given, made in layers:
            yield f"transformer.{block}.{name}.weight", np.ascontiguousarray(dense(normal, made, given).T)
            yield f"transformer.{block}.{name}.bias", normal(made, deviation=0.1)


def near_one(shape: Shape, normal: Callable[..., Array]) -> Array:
    """Factors of a norm."""
    return np.float32(1) + normal(shape.hidden, deviation=0.1)


def dense(normal: Callable[..., Array], made: int, given: int) -> Array:
    """A layer (made, given) that keeps the size of its input."""
    return normal(made, given, deviation=given**-0.5)


def byte_tokenizer() -> "Tokenizer":
    """A tokenizer whose tokens are bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES, metavar="SHAPE", help="one of " + ", ".join(SHAPES))
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="the directory to write")
    parser.add_argument("--layers", type=int, metavar="N", help="so many layers instead of all")
    arguments = parser.parse_args()
    shape = SHAPES[arguments.shape]
    if arguments.layers is not None:
        if not 0 < arguments.layers <= shape.layers:
            parser.error(f"--layers must be 1 to {shape.layers}, which {arguments.shape} has")
        shape = shape._replace(layers=arguments.layers)
    folder = write(shape, arguments.output)
    size = (folder / "model.safetensors").stat().st_size
    sys.stdout.write(f"{folder}: {size / 1e6:.0f} MB\n")


if __name__ == "__main__":
    main()
