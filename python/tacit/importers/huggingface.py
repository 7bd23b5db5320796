"""A directory as Hugging Face's libraries write it (config.json, model.safetensors) to an ONNX model; no PyTorch."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx

from tacit.data.embedding import Embedding
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.directory import checked, read_json, read_list, read_weights, renamed
from tacit.importers.encoder import Encoder, Head, Names, Weights, build, places

ACTIVATIONS: Mapping[str, Literal["Gelu", "Relu", "Smu"]] = {
    "gelu": "Gelu",
    "gelu_new": "Gelu",
    "gelu_fast": "Gelu",
    "gelu_pytorch_tanh": "Gelu",
    "relu": "Relu",
    "smu": "Smu",
}
PLAIN = ("Model", "ForMaskedLM", "ForPreTraining")
"""Ends of the names of architectures that are run without a head."""
BERT = Names(
    query="encoder.layer.{}.attention.self.query",
    key="encoder.layer.{}.attention.self.key",
    value="encoder.layer.{}.attention.self.value",
    attended="encoder.layer.{}.attention.output.dense",
    first_norm="encoder.layer.{}.attention.output.LayerNorm",
    wide="encoder.layer.{}.intermediate.dense",
    narrow="encoder.layer.{}.output.dense",
    second_norm="encoder.layer.{}.output.LayerNorm",
)
DISTILBERT = Names(
    query="transformer.layer.{}.attention.q_lin",
    key="transformer.layer.{}.attention.k_lin",
    value="transformer.layer.{}.attention.v_lin",
    attended="transformer.layer.{}.attention.out_lin",
    first_norm="transformer.layer.{}.sa_layer_norm",
    wide="transformer.layer.{}.ffn.lin1",
    narrow="transformer.layer.{}.ffn.lin2",
    second_norm="transformer.layer.{}.output_layer_norm",
)


@dataclass(frozen=True)
class Family:
    """Models of one `model_type`: prefix and names of weights, fields of the configuration, kind of classifier."""

    prefix: str
    names: Names
    head: Head
    offset: bool = False
    hidden: str = "hidden_size"
    heads: str = "num_attention_heads"
    layers: str = "num_hidden_layers"
    activation: str = "hidden_act"


FAMILIES = {
    "bert": Family("bert.", BERT, "bert"),
    "distilbert": Family("distilbert.", DISTILBERT, "distilbert", False, "dim", "n_heads", "n_layers", "activation"),
    "roberta": Family("roberta.", BERT, "roberta", offset=True),
    "xlm-roberta": Family("roberta.", BERT, "roberta", offset=True),
}


def is_directory_of_model(path: Path) -> bool:
    """Whether `path` is a directory with a configuration."""
    return path.is_dir() and (path / "config.json").is_file()


def read_directory(folder: Path, sequence: int, public: bool = False) -> onnx.ModelProto:
    """The encoder in `folder` for `sequence` tokens, as an ONNX model; with `public` without its embedding.

    Raises `MisuseError` for files that are absent or damaged and for a length the model has no positions
    for, and `UnsupportedError` naming what the configuration asks for that Tacit does not have.
    """
    encoder, weights, name = load(folder, sequence)
    return build(encoder, weights, sequence, name, public)


def public_embedding(folder: Path, sequence: int) -> Embedding:
    """The embedding of the encoder in `folder`; raises as `read_directory` does."""
    encoder, weights, _ = load(folder, sequence)
    words = weights["embeddings.word_embeddings.weight"].astype(np.float16)
    norm = [weights[f"embeddings.LayerNorm.{role}"] for role in ("weight", "bias")]
    return Embedding(words, places(encoder, weights, sequence), norm[0], norm[1], encoder.epsilon)


def load(folder: Path, sequence: int) -> tuple[Encoder, Weights, str]:
    """What the configuration says, the weights, and a name."""
    config = read_json(folder / "config.json")
    family = FAMILIES.get(config.get("model_type", ""))
    if family is None:
        raise unsupported(
            folder, f"model_type `{config.get('model_type')}`", f"use an encoder among {', '.join(FAMILIES)}"
        )
    encoder = describe(folder, config, family)
    weights = checked(folder, renamed(read_weights(folder), family.prefix), encoder, sequence)
    return encoder, weights, str(config.get("_name_or_path") or folder.resolve().name)


def describe(folder: Path, config: Mapping[str, Any], family: Family) -> Encoder:
    """What the configuration says, checked."""
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise unsupported(
            folder, f"position_embedding_type `{config['position_embedding_type']}`", "use absolute positions"
        )
    if config.get("is_decoder") or config.get("add_cross_attention"):
        raise unsupported(folder, "a decoder (is_decoder)", "use an encoder")
    activation = config.get(family.activation, "gelu")
    if activation not in ACTIVATIONS:
        raise unsupported(folder, f"{family.activation} `{activation}`", f"use one of {', '.join(ACTIVATIONS)}")
    sizes = {role: whole(folder, config, getattr(family, role)) for role in ("hidden", "heads", "layers")}
    if sizes["hidden"] % sizes["heads"]:
        raise MisuseError(f"{folder}: {family.hidden} is no multiple of {family.heads} in config.json")
    return Encoder(
        **sizes,
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        activation=ACTIVATIONS[activation],
        first_position=whole(folder, {"pad_token_id": 1, **config}, "pad_token_id", 0) + 1 if family.offset else 0,
        head=head(folder, config, family),
        names=family.names,
        smu=numbers(folder, config, "smu", sizes["layers"]) if activation == "smu" else (),
        relu_softmax=numbers(folder, config, "relu_softmax", sizes["layers"]) if attention(folder, config) else (),
    )


def attention(folder: Path, config: Mapping[str, Any]) -> bool:
    """Whether something else is in the place of softmax."""
    kind = config.get("attention", "softmax")
    if kind not in ("softmax", "relu-softmax"):
        raise unsupported(folder, f"attention `{kind}`", "use softmax or relu-softmax")
    return bool(kind == "relu-softmax")


def numbers(folder: Path, config: Mapping[str, Any], name: str, layers: int) -> tuple[tuple[float, float], ...]:
    """Two numbers per layer."""
    try:
        pairs = tuple((float(first), float(second)) for first, second in config[name])
    except (KeyError, TypeError, ValueError):
        pairs = ()
    if len(pairs) != layers:
        raise MisuseError(f"{folder}: `{name}` in config.json is no list of two numbers for each of {layers} layers")
    return pairs


def head(folder: Path, config: Mapping[str, Any], family: Family) -> Head:
    """What follows the encoder: the pooling of a sentence transformer, a classifier, or nothing."""
    if (folder / "modules.json").is_file():
        return pooling(folder)
    architecture = str((config.get("architectures") or ["Model"])[0])
    if architecture.endswith("ForSequenceClassification"):
        return family.head
    if architecture.endswith(PLAIN):
        return "hidden"
    raise unsupported(folder, f"architecture {architecture}", "use the encoder or one for sequence classification")


def pooling(folder: Path) -> Head:
    """How the modules of a sentence transformer pool: mean (without the division) or cls."""
    kinds = {str(module.get("type", "")).rpartition(".")[2]: module for module in read_list(folder / "modules.json")}
    for kind in kinds:
        if kind not in ("Transformer", "Pooling", "Normalize"):
            raise unsupported(folder, f"module {kind}", "use a model of Transformer, Pooling and Normalize")
    if "Pooling" not in kinds:
        return "hidden"
    config = read_json(folder / str(kinds["Pooling"].get("path", "1_Pooling")) / "config.json")
    modes = [
        name.removeprefix("pooling_mode_") for name, on in config.items() if name.startswith("pooling_mode_") and on
    ]
    if modes == ["mean_tokens"]:
        return "mean"
    if modes == ["cls_token"]:
        return "cls"
    raise unsupported(folder, f"pooling by {', '.join(modes) or 'nothing'}", "use pooling by mean_tokens or cls_token")


def pooling_of(folder: Path) -> Literal["mean", "cls", "hidden", "classes"]:
    """What the output of the model in `folder` is: sums or states of tokens, or classes."""
    config = read_json(folder / "config.json")
    family = FAMILIES.get(config.get("model_type", ""))
    found = "hidden" if family is None else head(folder, config, family)
    return found if found in ("mean", "cls", "hidden") else "classes"


def padding(folder: Path) -> int:
    """The token that fills inputs up."""
    return whole(folder, {"pad_token_id": 0} | read_json(folder / "config.json"), "pad_token_id", least=0)


def normalises(folder: Path) -> bool:
    """Whether a sentence transformer's last module scales embeddings to length 1."""
    path = folder / "modules.json"
    return path.is_file() and any(str(module.get("type", "")).endswith(".Normalize") for module in read_list(path))


def class_labels(folder: Path) -> tuple[str, ...]:
    """Names of the classes, where the configuration has them all."""
    named = read_json(folder / "config.json").get("id2label")
    if not isinstance(named, dict):
        return ()
    numbers = [str(index) for index in range(len(named))]
    return tuple(str(named[number]) for number in numbers) if named.keys() == set(numbers) else ()


def whole(folder: Path, config: Mapping[str, Any], name: str, least: int = 1) -> int:
    """A number of the configuration, `least` or more."""
    value = config.get(name)
    if not isinstance(value, int) or not least <= value <= 1 << 20:
        raise MisuseError(f"{folder}: `{name}` in config.json is no number from {least} to {1 << 20}")
    return value


def unsupported(folder: Path, what: str, instead: str) -> UnsupportedError:
    """What to raise about the configuration."""
    return UnsupportedError(f"{folder}: {what} is not supported; {instead}")
