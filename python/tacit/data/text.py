"""Text as a client has it: sentences to tokens before a run, embeddings or classes after it.

The tokenizer runs where the text is. Every text fills `sequence` tokens: all that a server learns of
its length is that it is no longer than that.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.compiler import metadata
from tacit.data import embedding
from tacit.data.corpus import PAIR
from tacit.data.decoding import Decoding
from tacit.data.embedding import Embedding
from tacit.errors import MisuseError

Pooling = Literal["mean", "cls", "hidden", "classes", "tokens", "spans", "next"]
POOLINGS = ("mean", "cls", "hidden", "classes", "tokens", "spans", "next")
NO_EMBEDDING = ("classes", "tokens", "spans", "next")
LONGEST_SEQUENCE = 4096
SHORTEST_BUCKET = 16
LONGEST_TEXT = 1 << 16
ENTRY = "text"
ENDING = ".text"
Embeddings = NDArray[np.float64]


@dataclass(frozen=True)
class Tokens:
    """Inputs `x` of a model: `ids`, or of one with a public embedding hidden states above the mask.

    `ids` (N, 2, sequence) are tokens above their mask, 1 for a token. `lengths` (N,) are those of the whole
    texts, in tokens.
    """

    x: NDArray[np.float32]
    lengths: NDArray[np.int64]
    ids: NDArray[np.float32]


@dataclass(frozen=True)
class Text:
    """How text becomes an input, and what the output means.

    `tokenizer` is the content of a tokenizer.json. Texts are filled up to `sequence` tokens with the
    token `pad`, longer ones are cut. The output is, by `pooling`: mean, the sum of the states of all
    tokens; cls, an embedding; hidden, all states; classes, a number per class; tokens, that for each token; spans, two
    numbers per token, of the start and the end of an answer; next, a number for each token that may come next, of a
    model that writes text after a prompt, as `decoding` says. Prompts that are too long lose their beginning.
    With `normalise` embeddings have length 1. With a public embedding `embedding` is its digest, and `tables` the
    embedding itself. `labels` name the classes of tokens, or are empty.
    """

    tokenizer: str
    sequence: int
    pooling: Pooling
    normalise: bool = False
    pad: int = 0
    embedding: str | None = None
    labels: tuple[str, ...] = ()
    decoding: Decoding | None = None
    tables: Embedding | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not whole(self.sequence) or not 1 <= self.sequence <= LONGEST_SEQUENCE:
            refuse("sequence", f"a number from 1 to {LONGEST_SEQUENCE}")
        if self.pooling not in POOLINGS:
            refuse("pooling", f"one of {', '.join(POOLINGS)}")
        if not isinstance(self.normalise, bool):
            refuse("normalise", "true or false")
        if not whole(self.pad) or self.pad < 0:
            refuse("pad", "the number of a token")
        if not isinstance(self.embedding, str | None):
            refuse("embedding", "a digest, or nothing")
        if (self.pooling == "next") != (self.decoding is not None):
            refuse("decoding", "there for models that write text, and for no others")
        if not isinstance(self.tokenizer, str):
            refuse("tokenizer", "the content of a tokenizer.json")
        if not isinstance(self.labels, tuple) or not all(isinstance(label, str) for label in self.labels):
            refuse("labels", "a list of texts")

    @property
    def places(self) -> int:
        """How many positions a public embedding has: those of an input, or all that a model of steps has learned."""
        steps = None if self.decoding is None else self.decoding.steps
        return self.sequence if steps is None or not steps.places else steps.places

    @cached_property
    def encoder(self) -> Any:
        """The tokenizer, which cuts and does not pad."""
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise MisuseError("text needs the package tokenizers; install tacit[text]") from None
        try:
            tokenizer = Tokenizer.from_str(self.tokenizer)
        except Exception as error:  # tokenizers raises plain exceptions
            raise MisuseError(f"the tokenizer is not readable: {str(error)[:200]}") from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def plain(self) -> Any:
        """The tokenizer that reads special tokens in a text as the letters that they are."""
        tokenizer = type(self.encoder).from_str(self.tokenizer)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True
        return tokenizer

    def tokens(self, texts: Sequence[str]) -> Tokens:
        """Inputs of a model, and how long the texts would be; a tab parts two that are read together.

        Raises `MisuseError` for what is no text.
        """
        if self.decoding is not None:
            return self.prompts(texts, self.decoding)
        x = np.zeros((len(texts), 2, self.sequence), np.float32)
        x[:, 0] = self.pad
        lengths = np.zeros(len(texts), np.int64)
        for index, text in enumerate(texts):
            if len(text) > LONGEST_TEXT:
                raise MisuseError(f"text {index + 1} has {len(text)} characters; at most {LONGEST_TEXT} are possible")
            encoded = self.encoder.encode(*parted(text))
            lengths[index] = len(encoded.ids)
            encoded = self.fitted(encoded, text)
            ids = encoded.ids[: self.sequence]
            x[index, 0, : len(ids)] = ids
            x[index, 1, : len(ids)] = 1
        return Tokens(self.inputs(x), lengths, x)

    def prompts(self, texts: Sequence[str], decoding: Decoding) -> Tokens:
        """Inputs of a decoder, which read the prompts `texts` up to where the answer begins.

        Of a model that reads one token at a time they are those of all tokens, in order.
        """
        ids = [self.prompt(text) for text in texts]
        x = np.concatenate([decoding.inputs(one, self.sequence, self.pad) for one in ids])
        return Tokens(self.inputs(x), np.array([len(one) for one in ids]), x)

    def prompt(self, text: str) -> list[int]:
        """The tokens of a prompt, and those between it and the answer; special tokens in it are plain text."""
        if len(text) > LONGEST_TEXT:
            raise MisuseError(f"the prompt has {len(text)} characters; at most {LONGEST_TEXT} are possible")
        after = "" if self.decoding is None else self.decoding.after
        own = self.plain.encode(text, add_special_tokens=False).ids
        return [*own, *self.encoder.encode(after, add_special_tokens=False).ids]

    def inputs(self, ids: NDArray[np.float32]) -> NDArray[np.float32]:
        """Inputs of the model for tokens above their masks (N, 1 + masks, sequence)."""
        if self.embedding is None:
            return ids
        if self.tables is None:
            raise MisuseError("the public embedding is missing; read the model's file X.text")
        return self.tables.inputs(ids)

    def encoded(self, text: str) -> Any:
        """The encoding of a text, cut if it is too long."""
        return self.fitted(self.encoder.encode(*parted(text)), text)

    def fitted(self, encoded: Any, text: str) -> Any:
        """The encoding of a text, or that of the text cut."""
        return self.cut(text) if len(encoded.ids) > self.sequence else encoded

    def cut(self, text: str) -> Any:
        """The encoding of a text that is too long: the marks at its end stay."""
        try:
            self.encoder.enable_truncation(self.sequence)
            return self.encoder.encode(*parted(text))
        finally:
            self.encoder.no_truncation()

    def embeddings(self, outputs: NDArray[np.float64], x: NDArray[np.float32]) -> Embeddings | None:
        """Embeddings (N, hidden) from real outputs (N, outputs); None where these are no embeddings.

        The last row of each of the inputs `x` is its mask.
        """
        kept = x[:, -1].astype(np.float64)
        if self.pooling in NO_EMBEDDING:
            return None
        vectors = outputs.astype(np.float64)
        if self.pooling == "hidden":
            states = vectors.reshape(len(x), self.sequence, -1)
            vectors = np.einsum("ns,nsh->nh", kept, states)
        if self.pooling in ("mean", "hidden"):
            vectors = vectors / np.maximum(kept.sum(axis=1, keepdims=True), 1)
        return unit(vectors) if self.normalise else vectors

    def to_json(self) -> str:
        """The fields, as `from_json` reads them."""
        left_out = (set() if self.labels else {"labels"}) | (set() if self.decoding else {"decoding"})
        content = {name: getattr(self, name) for name in sorted(STORED - left_out)}
        return json.dumps(content if self.decoding is None else {**content, "decoding": self.decoding.to_json()})

    def too_long(self, lengths: NDArray[np.int64]) -> list[str]:
        """A warning per text that is cut, with the length a model for all of it needs."""
        return [
            f"text {index + 1} has {length} tokens and is cut to {self.sequence}; "
            f"for all of it use a model compiled with --sequence {bucket(int(length))}"
            for index, length in enumerate(lengths)
            if length > self.sequence
        ]


STORED = {entry.name for entry in fields(Text)} - {"tables"}
"""What the file says of how text is read."""


def parted(text: str) -> list[str]:
    """The text, or both of a pair."""
    both = text.split(PAIR)
    if len(both) > 2:
        raise MisuseError(f"a text has {len(both) - 1} tabs; one parts a pair, more are not possible")
    return both


def bucket(length: int) -> int:
    """The shortest usual length of inputs that holds `length` tokens: a power of 2."""
    return max(SHORTEST_BUCKET, 1 << math.ceil(math.log2(max(length, 1))))


def unit(vectors: Embeddings) -> Embeddings:
    """Vectors scaled to length 1; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Embeddings = vectors / np.where(lengths > 0, lengths, 1.0)
    return scaled


def cosines(first: Embeddings, second: Embeddings) -> Embeddings:
    """Cosines of the angles between the rows of both (N, hidden), pair by pair (N,)."""
    products: Embeddings = (unit(first) * unit(second)).sum(axis=1)
    return products


def spearman(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    """Rank correlation of two series; None if one of them is constant."""
    ranks = [rank(series) for series in (first, second)]
    centred = [series - series.mean() for series in ranks]
    below = math.sqrt(float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / below if below > 0 else None


def rank(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, count = np.unique(series, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    means: NDArray[np.float64] = last - (count - 1) / 2
    return means[place]


def whole(value: Any) -> bool:
    """Whether a value of JSON is an integer."""
    return isinstance(value, int) and not isinstance(value, bool)


def refuse(name: str, what: str) -> NoReturn:
    """Raise `MisuseError` about a field."""
    raise MisuseError(f"text: `{name}` must be {what}")


def from_json(content: str) -> Text:
    """What `to_json` wrote; raises `MisuseError` for anything else."""
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"text: no JSON: {str(error)[:100]}") from error
    if not isinstance(values, dict) or not STORED.issuperset(values):
        raise MisuseError(f"text: must be a JSON object with fields among {', '.join(sorted(STORED))}")
    missing = {"tokenizer", "sequence", "pooling"} - values.keys()
    if missing:
        raise MisuseError(f"text: lacks {', '.join(sorted(missing))}")
    labels, decoding = values.get("labels", []), values.get("decoding")
    read = {"labels": tuple(labels) if isinstance(labels, list) else labels}
    return Text(**{**values, **read, "decoding": None if decoding is None else Decoding.of(decoding)})


def read(path: Path) -> Text:
    """The client's file that `compile` writes beside a model of text, or the model itself."""
    if not path.is_file():
        raise MisuseError(f"{path} does not exist" if not path.exists() else f"{path} is not a regular file")
    return stored(path, metadata.entries(path))


def stored(path: Path, entries: Mapping[str, str]) -> Text:
    """The text entry of a file; a public embedding is in the client's file itself, or in the one beside a model."""
    if ENTRY not in entries:
        raise MisuseError(f"{path} is of no model of text")
    text = from_json(entries[ENTRY])
    if text.embedding is None:
        return text
    holder = path if embedding.ENTRY in entries else path.with_suffix(ENDING)
    return replace(text, tables=embedding.read(holder, text.embedding, text.places))


def write(path: Path, text: Text) -> None:
    """The client's file: what a client needs to ask a server that has the model."""
    path.write_bytes(file_of(text))


def file_of(text: Text) -> bytes:
    """The content of the client's file."""
    if text.tables is not None:
        return embedding.file_of(text.tables, {ENTRY: text.to_json()})
    header = json.dumps({"__metadata__": {ENTRY: text.to_json()}}, ensure_ascii=False).encode()
    header += b" " * (-len(header) % metadata.LENGTH)
    return len(header).to_bytes(metadata.LENGTH, "little") + header
