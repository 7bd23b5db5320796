"""What the compiler needs to know of a model that reads text: its tokenizer, its length, texts to calibrate it with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.prompts import prompting
from tacit.data import corpus
from tacit.data.text import Pooling, Text
from tacit.errors import MisuseError
from tacit.importers.huggingface import (
    class_labels,
    classifies,
    is_directory_of_model,
    normalises,
    padding,
    pooling_of,
    public_embedding,
    steps_of,
)
from tacit.importers.source import Source

if TYPE_CHECKING:
    from tacit.compiler.compiler import Options

TEXT_BITS = 8
DECODER_BITS = 10
TEXT_WEIGHT_BITS = 10
"""Bits of an activation of a transformer, unless someone says otherwise."""
DECODER_MARGIN = 1.25
"""How far beyond what calibration saw of it a tensor of a decoder may reach: prompts and answers are of any kind."""
MOST_TEXTS = 256
LONGEST_TOKENIZER = 1 << 25


@dataclass(frozen=True)
class Reading:
    """Inputs of `sequence` tokens. `tokenizer` is a tokenizer.json, by default the one beside the model.

    `texts` calibrate, of classifiers `pairs` where there are any; without any, thirty that come with the package do.
    With `public_embedding` clients get the embedding and look their tokens up themselves. Of decoders `prefix` is what
    the server has read before each prompt, and `suffix` stands between a prompt and its answer; unless given they are
    those of the model's chat template. With a `context` they read one token at a time, and keep keys and values of so
    many earlier ones.
    """

    sequence: int | None = None
    tokenizer: Path | None = None
    texts: Sequence[str] = ()
    pairs: Sequence[str] = ()
    public_embedding: bool = False
    prefix: str | None = None
    suffix: str | None = None
    context: int | None = None


def describe(source: Path, graph: Source, reading: Reading) -> Text:
    """How text becomes an input of the model."""
    if not graph.reads_tokens and not graph.masked:
        raise MisuseError(f"{source} reads no text: leave --sequence and --tokenizer out")
    folder = source if source.is_dir() else source.parent
    path = reading.tokenizer or folder / "tokenizer.json"
    if not path.is_file():
        raise MisuseError(f"{path} does not exist; name the model's tokenizer (--tokenizer tokenizer.json)")
    if path.stat().st_size > LONGEST_TOKENIZER:
        raise MisuseError(f"{path} is larger than {LONGEST_TOKENIZER >> 20} MiB; it is no tokenizer")
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise MisuseError(f"{path} is no text in UTF-8: {error}") from error
    if is_directory_of_model(source):
        kind = pooling_of(source)
        decoding = prompting(source, reading).decoding if kind == "next" else None
        text = Text(content, graph.input_shape[1], kind, normalises(source), padding(source), decoding=decoding)
        if text.pooling == "tokens":
            text = replace(text, labels=class_labels(source))
        if not graph.masked:
            return text
        tables = public_embedding(source, text.sequence, reading.context is not None)
        if decoding is not None and reading.context is not None:
            decoding = replace(decoding, steps=steps_of(source, reading.context, tables))
        return replace(text, embedding=tables.digest, tables=tables, decoding=decoding)
    pad = padding(folder) if is_directory_of_model(folder) else 0
    return Text(content, graph.input_shape[1], exported(graph), False, pad)


def exported(graph: Source) -> Pooling:
    """What an export gives: states of all tokens, classes (by the name of the output), or else an embedding."""
    if len(graph.output_shape) > 1:
        return "hidden"
    return "classes" if "logits" in graph.model_output else "cls"


def of_text(
    options: "Options", graph: Source, text: Text, x: NDArray[np.float32] | None
) -> tuple["Options", NDArray[np.float32], tuple[float, float] | None]:
    """Options, calibration inputs and range of the input, where it is known, of a model that reads text."""
    texts = given(options.reading, text.pooling == "classes") or corpus.own()
    tables = [graph.weights[node.operation["weight"]] for node in graph.nodes if node.operation["op"] == "Embedding"]
    bits = options.activation_bits or (DECODER_BITS if text.decoding else TEXT_BITS)
    weight_bits = options.weight_bits or TEXT_WEIGHT_BITS
    inputs = examples(text, list(texts)[:MOST_TEXTS]) if x is None else x
    known = (0.0, float(len(tables[0]) - 1)) if tables else None
    if text.decoding is not None and text.tables is not None:
        parts = text.tables.words, text.tables.places
        known = sum(float(part.min()) for part in parts), sum(float(part.max()) for part in parts)
    return replace(options, activation_bits=bits, weight_bits=weight_bits), inputs, known


def margin(text: Text | None) -> float:
    """How much wider than calibration saw them ranges are to be."""
    return 1.0 if text is None or text.decoding is None else DECODER_MARGIN


def examples(text: Text, texts: Sequence[str]) -> NDArray[np.float32]:
    """Inputs of a model that reads `texts`: each alone, and of decoders also with some of the next as its answer."""
    if text.decoding is None:
        return text.tokens(texts).x
    steps = text.decoding.steps
    most = max(1, (text.sequence if steps is None else steps.context) // 2)
    answers = [text.plain.encode(one, add_special_tokens=False).ids[:most] for one in (*texts[1:], texts[0])]
    both = zip(texts, answers, strict=True)
    ids = [text.decoding.cut([*text.prompt(one), *answer]) for one, answer in both]
    answered = np.concatenate([text.decoding.inputs(one, text.sequence, text.pad) for one in ids])
    # Steps of a prompt with its answer begin with those of the prompt.
    alone = [text.tokens(texts).x] if steps is None else []
    return np.concatenate([*alone, text.inputs(answered)])


def given(reading: Reading | None, in_pairs: bool) -> Sequence[str]:
    """What calibrates a model, where someone named it."""
    if reading is None:
        return ()
    return reading.pairs if in_pairs and reading.pairs else reading.texts


def own_labels(source: Path) -> tuple[str, ...]:
    """Names of the classes that a directory of Hugging Face with a classifier has."""
    return class_labels(source) if is_directory_of_model(source) and classifies(source) else ()
