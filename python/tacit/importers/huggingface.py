"""A directory as Hugging Face's libraries write it (config.json, model.safetensors) to an ONNX model; no PyTorch."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from tacit.data.decoding import Steps
from tacit.data.embedding import Embedding
from tacit.importers.architectures import IMAGES, INSTEAD, TEXTS, image
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Weights
from tacit.importers.architectures.heads import Kind
from tacit.importers.architectures.llama_floats import base, sizes
from tacit.importers.architectures.llama_step import states
from tacit.importers.architectures.text import TextArchitecture, Written, sound, write
from tacit.importers.directory import Present, read_json, read_list, read_weights, renamed

PLAIN = ("Model", "ForMaskedLM", "ForPreTraining")
"""Ends of the names of architectures that are run without a head."""
HEADS: Mapping[str, Kind] = {
    "ForSequenceClassification": "classes",
    "ForTokenClassification": "tokens",
    "ForQuestionAnswering": "spans",
    "ForCausalLM": "next",
    "LMHeadModel": "next",
}
"""Heads by the ends of the names of architectures."""


def is_directory_of_model(path: Path) -> bool:
    """Whether `path` is a directory with a configuration."""
    return path.is_dir() and (path / "config.json").is_file()


def read_directory(
    folder: Path, sequence: int, public: bool = False, beginning: tuple[int, ...] = (), context: int = 0
) -> onnx.ModelProto:
    """The model in `folder` for `sequence` tokens, as an ONNX model; with `public` without its embedding.

    A decoder has read the tokens `beginning` before. With a `context` the model is a step of one token, with states of
    so many positions before it.

    Raises `MisuseError` for files that are absent or damaged and for a length the model has no positions
    for, and `UnsupportedError` naming what the configuration asks for that Tacit does not have.
    """
    architecture, config, weights = load(folder)
    written = Written(config, sequence, public, beginning, context)
    if context and architecture.stepped is None:
        raise config.unsupported("steps that keep keys and values", "use a decoder, or --sequence alone")
    if architecture.only_steps and not context:
        raise config.unsupported("a window of tokens (--sequence)", "compile it for one token at a time (--context N)")
    return write(architecture, written, architecture.prepare(config, weights), head(config), named(config))


def public_embedding(folder: Path, sequence: int, stepped: bool = False) -> Embedding:
    """The embedding of the model in `folder`; raises as `read_directory` does.

    Positions are those of `sequence` tokens, and of a model that is `stepped` all that it has learned.
    """
    architecture, config, weights = load(folder)
    weights = architecture.prepare(config, weights)
    tables = sound(config, architecture.tables(config, weights), sequence)
    words, places = tables.words.astype(np.float16), tables.placed(sequence)
    if stepped and tables.places is not None:
        places = tables.places
    if tables.norm is None:
        return Embedding(words, places, None, None, tables.epsilon)
    factor = weights[f"{tables.norm}.weight"]
    bias = weights[f"{tables.norm}.bias"] if tables.biased else np.zeros_like(factor)
    return Embedding(words, places, factor, bias, tables.epsilon)


def states_of(folder: Path) -> tuple[tuple[str, str], ...]:
    """What a step of the decoder in `folder` keeps from one token to the next, and what it is after a token."""
    return states(configuration(folder))


def steps_of(folder: Path, context: int, tables: Embedding) -> Steps:
    """What inputs of the decoder in `folder` are that reads one token at a time; `tables` are its embedding."""
    config = configuration(folder)
    if len(tables.places) > 1:
        return Steps(context, places=len(tables.places))
    return Steps(context, sizes(config).width, base(config), float(np.abs(tables.words).max()))


def read_images(folder: Path) -> onnx.ModelProto:
    """The network of pictures in `folder` as an ONNX model; raises as `read_directory` does."""
    config = configuration(folder)
    architecture = IMAGES[str(config.get("model_type"))]
    image.end_of(architecture, config)
    architecture.check(config)
    weights = Present(folder, renamed(read_weights(folder), architecture.prefix))
    return image.write(architecture, config, weights, named(config))


def reads_pictures(folder: Path) -> bool:
    """Whether `folder` is a directory of a network that reads pictures."""
    return is_directory_of_model(folder) and configuration(folder).get("model_type") in IMAGES


def named(config: Config) -> str:
    """A name of the model."""
    return str(config.get("_name_or_path") or config.folder.resolve().name)


def load(folder: Path) -> tuple[TextArchitecture, Config, Weights]:
    """The architecture, what the configuration says, checked, and the weights."""
    config = configuration(folder)
    kind = config.get("model_type")
    if kind in INSTEAD:
        config.refuse(f"model_type `{kind}`", INSTEAD[kind])
    architecture = TEXTS.get(str(kind))
    if architecture is None:
        known = f"use a model among {', '.join(sorted({*TEXTS, *IMAGES}))}, or export it to ONNX (torch.onnx.export)"
        config.refuse(f"model_type `{kind}`", f"{known} and compile that file")
    head(config)
    architecture.check(config)
    return architecture, config, Present(folder, renamed(read_weights(folder), architecture.prefix))


def configuration(folder: Path) -> Config:
    """What the configuration of a directory says."""
    return Config(folder, read_json(folder / "config.json"))


def head(config: Config) -> Kind:
    """What follows the encoder: the pooling of a sentence transformer, a head of the model, or nothing."""
    if (config.folder / "modules.json").is_file():
        return pooling(config)
    architecture = config.architecture()
    for end, kind in HEADS.items():
        if architecture.endswith(end):
            return kind
    if not architecture.endswith(PLAIN):
        known = ", ".join(end.removeprefix("For") for end in HEADS)
        config.refuse(f"architecture {architecture}", f"use the encoder or one for {known}, or export it to ONNX")
    return "hidden"


def pooling(config: Config) -> Kind:
    """How the modules of a sentence transformer pool: mean (without the division) or cls."""
    folder = config.folder
    kinds = {str(module.get("type", "")).rpartition(".")[2]: module for module in read_list(folder / "modules.json")}
    for kind in kinds:
        if kind not in ("Transformer", "Pooling", "Normalize"):
            config.refuse(f"module {kind}", "use a model of Transformer, Pooling and Normalize")
    if "Pooling" not in kinds:
        return "hidden"
    fields = read_json(folder / str(kinds["Pooling"].get("path", "1_Pooling")) / "config.json")
    modes = [
        name.removeprefix("pooling_mode_") for name, on in fields.items() if name.startswith("pooling_mode_") and on
    ]
    if modes == ["mean_tokens"]:
        return "mean"
    if modes == ["cls_token"]:
        return "cls"
    raise config.unsupported(f"pooling by {', '.join(modes) or 'nothing'}", "use pooling by mean_tokens or cls_token")


def pooling_of(folder: Path) -> Kind:
    """What the output of the model in `folder` is: sums or states of tokens, classes, or numbers per token."""
    config = configuration(folder)
    return head(config) if config.get("model_type") in TEXTS else "hidden"


def classifies(folder: Path) -> bool:
    """Whether the output of the model in `folder` is a number per class, of a text or a picture."""
    if reads_pictures(folder):
        return image.CLASSIFIER in configuration(folder).architecture()
    return pooling_of(folder) == "classes"


def padding(folder: Path) -> int:
    """The token that fills inputs up."""
    return configuration(folder).whole("pad_token_id", 0, least=0)


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
