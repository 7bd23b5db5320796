"""Small decoders with random weights, as directories of Hugging Face and as GGUF files."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.reading import Reading
from tacit.data.text import Text
from tacit.model import Model
from tacit_lab.random_decoders import byte_tokenizer

WIDTH, HEADS, GROUPS, INNER, VOCABULARY, LAYERS = 32, 4, 2, 64, 256, 2
PREFIX, SUFFIX = "Q: ", "\nA:"
Weights = dict[str, NDArray[np.float32]]


def config(**changed: Any) -> dict[str, Any]:
    """The configuration of a decoder of two layers, whose tokens are bytes."""
    fields = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": GROUPS,
        "rms_norm_eps": 1e-5,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 128,
        "pad_token_id": 0,
    }
    return {**fields, **changed}


def weights(biased: bool = False, seed: int = 0) -> Weights:
    """Random weights, without the family's prefix."""
    rng = np.random.default_rng(seed)

    def matrix(*shape: int) -> NDArray[np.float32]:
        return (rng.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)

    keys = WIDTH // HEADS * GROUPS
    found = {"embed_tokens.weight": matrix(VOCABULARY, WIDTH) * 4, "norm.weight": rng.uniform(0.5, 2, WIDTH)}
    for layer in range(LAYERS):
        at = f"layers.{layer}"
        found |= {f"{at}.{name}.weight": rng.uniform(0.5, 2, WIDTH) for name in NORMS}
        for role, rows in (("q", WIDTH), ("k", keys), ("v", keys)):
            found[f"{at}.self_attn.{role}_proj.weight"] = matrix(rows, WIDTH) * 2
            if biased:
                found[f"{at}.self_attn.{role}_proj.bias"] = rng.normal(size=rows)
        found[f"{at}.self_attn.o_proj.weight"] = matrix(WIDTH, WIDTH)
        found |= {f"{at}.mlp.{role}_proj.weight": matrix(INNER, WIDTH) for role in ("gate", "up")}
        found[f"{at}.mlp.down_proj.weight"] = matrix(WIDTH, INNER)
    return {name: np.asarray(value, np.float32) for name, value in found.items()}


NORMS = ("input_layernorm", "post_attention_layernorm")


def directory(folder: Path, biased: bool = False, **changed: Any) -> Path:
    """A directory of Hugging Face with a decoder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(**changed)), encoding="utf-8")
    save_file({f"model.{name}": value for name, value in weights(biased).items()}, folder / "model.safetensors")
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def compiled(folder: Path, context: int) -> Model:
    """The model `tiny.tacit` of the directory `tiny` in a folder: it reads token by token, and rounds exactly."""
    reading = Reading(prefix=PREFIX, suffix=SUFFIX, context=context)
    compile_model(directory(folder / "tiny"), folder / "tiny.tacit", options=Options(rounding="exact", reading=reading))
    return Model(folder / "tiny.tacit")


def text_of(model: Model) -> Text:
    """How the model's prompts become inputs."""
    assert model.text is not None
    return model.text


def text(value: str) -> bytes:
    """A text as GGUF files have it."""
    content = value.encode()
    return struct.pack("<Q", len(content)) + content


def value(content: Any) -> bytes:
    """A value with its type."""
    if isinstance(content, str):
        return struct.pack("<I", 8) + text(content)
    if isinstance(content, int):
        return struct.pack("<II", 4, content)
    if isinstance(content, float):
        return struct.pack("<If", 6, content)
    kind = 5 if content and isinstance(content[0], int) else 8
    parts = [text(one) if kind == 8 else struct.pack("<i", one) for one in content]
    return struct.pack("<IIQ", 9, kind, len(content)) + b"".join(parts)


def gguf(path: Path, values: dict[str, Any], tensors: dict[str, tuple[tuple[int, ...], int, bytes]]) -> Path:
    """A GGUF file of values, and of tensors of a shape, a type and their bytes."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(text(name) + value(content) for name, content in values.items())
    start, body = 0, b""
    for name, (shape, kind, content) in tensors.items():
        sizes = b"".join(struct.pack("<Q", size) for size in reversed(shape))
        head += text(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", kind, start)
        body += content + b"\0" * (-len(content) % 32)
        start = len(body)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + body)
    return path


def gpt2_config(**changed: Any) -> dict[str, Any]:
    """The configuration of a GPT-2 of two layers, whose tokens are bytes."""
    fields = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": WIDTH,
        "n_head": HEADS,
        "n_layer": LAYERS,
        "n_positions": 24,
        "layer_norm_epsilon": 1e-5,
        "vocab_size": VOCABULARY,
        "bos_token_id": 1,
        "eos_token_id": 1,
    }
    return {**fields, **changed}


def gpt2_weights(seed: int = 0) -> Weights:
    """Random weights, without the family's prefix; those of dense layers are (inputs, outputs)."""
    rng = np.random.default_rng(seed)

    def matrix(*shape: int) -> NDArray[np.float32]:
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    def norm(name: str) -> Weights:
        return {f"{name}.weight": rng.uniform(0.5, 2, WIDTH), f"{name}.bias": rng.normal(size=WIDTH) / 4}

    found = {"wte.weight": rng.normal(size=(VOCABULARY, WIDTH)) / 2, "wpe.weight": rng.normal(size=(24, WIDTH)) / 4}
    found |= norm("ln_f")
    for layer in range(LAYERS):
        at = f"h.{layer}"
        found |= norm(f"{at}.ln_1") | norm(f"{at}.ln_2")
        for name, inputs, outputs in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, 4 * WIDTH),
            ("mlp.c_proj", 4 * WIDTH, WIDTH),
        ):
            found |= {f"{at}.{name}.weight": matrix(inputs, outputs), f"{at}.{name}.bias": rng.normal(size=outputs) / 4}
    return {name: np.asarray(value, np.float32) for name, value in found.items()}


def gpt2_directory(folder: Path, **changed: Any) -> Path:
    """A directory of Hugging Face with a GPT-2."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(gpt2_config(**changed)), encoding="utf-8")
    save_file({f"transformer.{name}": value for name, value in gpt2_weights().items()}, folder / "model.safetensors")
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder
