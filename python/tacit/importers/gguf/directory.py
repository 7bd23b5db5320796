"""A GGUF file as a directory of Hugging Face: configuration, weights, tokenizer and chat template."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.gguf.reader import File, read

ENDING = ".gguf"
ENDS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
"""Names of weights outside of layers."""
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""Names of weights in layers."""
TURNED = {"attn_q": "head_count", "attn_k": "head_count_kv"}
"""Weights whose rows lie as pairs of neighbours for rotary positions, in files of Llama."""
KINDS = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}
DIGITS = ("smollm",)
"""Pretokenizers that take each digit alone before anything else."""
SPECIAL = 3
"""The type of tokens that are marks and no text."""
IGNORED = ("rope_freqs.weight",)


def is_gguf(path: Path) -> bool:
    """Whether `path` is a file of llama.cpp, by its name."""
    return path.suffix == ENDING


@contextmanager
def as_directory(path: Path) -> Iterator[Path]:
    """The model of a .gguf file as a directory of Hugging Face, until the end of the block; another path as it is.

    Raises `MisuseError` for a damaged file and `UnsupportedError` for a model that is not of the Llama or Qwen2 kind.
    """
    if not is_gguf(path):
        yield path
        return
    file = read(path)
    with TemporaryDirectory() as above:
        folder = Path(above) / path.stem
        folder.mkdir()
        write(file, folder)
        yield folder


def write(file: File, folder: Path) -> None:
    """Write what a directory of Hugging Face has."""
    from safetensors.numpy import save_file

    kind = str(file.values.get("general.architecture"))
    if kind not in KINDS:
        raise UnsupportedError(
            f"{file.path} is a model of kind `{kind}`; use one of {', '.join(KINDS)}, or a directory of Hugging Face"
        )
    weights = dict(renamed(file, kind))
    (folder / "config.json").write_text(json.dumps(configuration(file, kind, weights)), encoding="utf-8")
    save_file(weights, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(tokenizer(file), encoding="utf-8")
    template = file.values.get("tokenizer.chat_template")
    if isinstance(template, str):
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")


def told(file: File, name: str) -> Any:
    """A value that a file must have."""
    if name not in file.values:
        raise MisuseError(f"{file.path} does not say `{name}`; convert the model again")
    return file.values[name]


def configuration(file: File, kind: str, weights: Mapping[str, NDArray[np.float32]]) -> dict[str, Any]:
    """The content of config.json."""

    def of(name: str) -> Any:
        return told(file, f"{kind}.{name}")

    heads = int(of("attention.head_count"))
    if f"{kind}.rope.scaling.type" in file.values and file.values[f"{kind}.rope.scaling.type"] != "none":
        raise UnsupportedError(f"{file.path} scales rotary positions; use the model as it was trained")
    fields = {
        "architectures": [KINDS[kind]],
        "model_type": kind,
        "hidden_act": "silu",
        "hidden_size": int(of("embedding_length")),
        "intermediate_size": int(of("feed_forward_length")),
        "num_hidden_layers": int(of("block_count")),
        "num_attention_heads": heads,
        "num_key_value_heads": int(file.values.get(f"{kind}.attention.head_count_kv", heads)),
        "rms_norm_eps": float(of("attention.layer_norm_rms_epsilon")),
        "rope_theta": float(file.values.get(f"{kind}.rope.freq_base", 10000.0)),
        "vocab_size": len(weights["model.embed_tokens.weight"]),
        "max_position_embeddings": int(of("context_length")),
        "tie_word_embeddings": "lm_head.weight" not in weights,
    }
    tokens = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    ids = {name: file.values.get(f"tokenizer.ggml.{role}_token_id") for name, role in tokens.items()}
    return fields | {name: number for name, number in ids.items() if number is not None}


def renamed(file: File, kind: str) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """All weights by their names in a directory of Hugging Face."""
    for name in file.tensors:
        if name in IGNORED:
            continue
        if name in ENDS:
            yield ENDS[name], file.tensor(name)
            continue
        parts = name.split(".")
        if len(parts) != 4 or parts[0] != "blk" or parts[2] not in LAYER:
            raise UnsupportedError(f"{file.path} has a tensor `{name}` that models of kind {kind} do not have here")
        values = file.tensor(name)
        if kind == "llama" and parts[2] in TURNED:
            heads = int(told(file, f"{kind}.attention.{TURNED[parts[2]]}"))
            pairs = values.reshape(heads, len(values) // heads // 2, 2, -1)
            values = np.ascontiguousarray(pairs.swapaxes(1, 2).reshape(values.shape))
        yield f"model.layers.{parts[1]}.{LAYER[parts[2]]}.{parts[3]}", values


def tokenizer(file: File) -> str:
    """The content of tokenizer.json, of a tokenizer that merges pairs of bytes."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    kind = told(file, "tokenizer.ggml.model")
    if kind != "gpt2":
        raise UnsupportedError(
            f"{file.path} has a tokenizer of kind `{kind}`; name the model's tokenizer.json (--tokenizer), beside a "
            "directory of Hugging Face"
        )
    tokens: list[str] = told(file, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in told(file, "tokenizer.ggml.merges")]
    try:
        made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=merges))
    except Exception as error:  # tokenizers raises plain exceptions
        raise MisuseError(f"{file.path} has no sound tokenizer: {error}; {INSTEAD}") from error
    split = str(file.values.get("tokenizer.ggml.pre", "default"))
    if split in DIGITS:
        steps = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    elif split == "qwen2":
        by = pre_tokenizers.Split(Regex(QWEN2), "isolated")
        steps = [by, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    elif split in ("default", "gpt-2"):
        steps = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    else:
        raise UnsupportedError(f"{file.path} splits text as `{split}`, which this version does not know; {INSTEAD}")
    made.pre_tokenizer = pre_tokenizers.Sequence(steps)
    made.decoder = decoders.ByteLevel()
    kinds = file.values.get("tokenizer.ggml.token_type", [])
    marks = [token for token, sort in zip(tokens, kinds, strict=False) if sort == SPECIAL]
    made.add_special_tokens([AddedToken(token, normalized=False) for token in marks])
    return str(made.to_str())


INSTEAD = "compile the model's directory of Hugging Face, which has its tokenizer.json"
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
"""How Qwen2 splits text, as its tokenizer.json says."""
