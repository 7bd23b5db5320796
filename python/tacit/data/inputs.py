"""What people name on the command line as inputs: files of numbers and pictures, or text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data import corpus
from tacit.data.examples import load_wanted, origins
from tacit.data.preprocess import Preprocessing
from tacit.data.tables import listed
from tacit.data.text import Text
from tacit.data.wanted import Wanted
from tacit.errors import MisuseError
from tacit.report import terminal

__all__ = ["Inputs", "Wanted", "read"]
ARRAYS = {".npy", ".npz"}


class Inputs(NamedTuple):
    """Inputs `x` (N, *shape), labels `y` (N,) if known, a name for each; of text how many tokens each has.

    Of a table `kept` are columns that were asked for beside the inputs.
    """

    x: NDArray[np.float32]
    y: NDArray[np.int64] | None
    names: list[str]
    lengths: NDArray[np.int64] | None = None
    kept: Mapping[str, Sequence[Any]] = {}


def read(
    given: Sequence[str],
    texts: Sequence[str] | None,
    wanted: Wanted | None,
    preprocessing: Preprocessing | None,
    text: Text | None,
) -> Inputs:
    """Inputs from arguments: files, or texts themselves for a model of `text`; `texts` are those of --text.

    `wanted` is what the model takes, where that is known.

    Warns of texts that are cut. Raises `MisuseError` for none, and for what `data` and `corpus` refuse.
    """
    if not given and not texts:
        raise MisuseError("no input: name files, or texts for a model that reads text")
    if text is None and texts:
        raise MisuseError("--text is for models that read text; name the tokenizer's file (--tokenizer X.text)")
    if text is None or (given and not texts and all(is_array(name) for name in given)):
        paths = [Path(name) for name in given]
        examples = load_wanted(paths, wanted or Wanted(None), preprocessing)
        if examples.extra:
            terminal.note(f"left out columns that the model does not read: {listed(examples.extra)}")
        return Inputs(examples.x, examples.y, origins(paths, len(examples.x)), None, examples.kept)
    classifies = text.pooling == "classes"
    sentences = [*given, *(line for value in texts or () for line in lines(value, classifies))]
    tokens = text.tokens(sentences)
    for warning in text.too_long(tokens.lengths):
        terminal.warn(warning)
    return Inputs(tokens.x, None, sentences, tokens.lengths)


def is_array(name: str) -> bool:
    """Whether it is a file of numbers."""
    path = Path(name)
    return path.suffix in ARRAYS and path.is_file()


def lines(value: str, classifies: bool) -> Sequence[str]:
    """The texts of a file, or the text itself where no file is meant."""
    path = Path(value)
    meant = corpus.is_text(path) and not any(character.isspace() for character in value)
    return corpus.load(path).inputs(classifies) if meant else (value,)
