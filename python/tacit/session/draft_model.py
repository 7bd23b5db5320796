"""A public language model that the client runs in the clear, to guess how a private one goes on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tacit.compiler.prompts import prompting
from tacit.compiler.reading import Reading
from tacit.data.text import Text
from tacit.errors import MisuseError
from tacit.importers.architectures.floats import Floats
from tacit.importers.gguf.directory import as_directory


class DraftModel:
    """Guesses what a public model of the same tokens says, such as the one that a private model was tuned from."""

    def __init__(self, floats: Floats) -> None:
        """Read what `floats` compute; keys and values of a text are kept from one guess to the next."""
        self.floats = floats
        self.kept, self.read = floats.begun(), list[int]()

    @classmethod
    def of(cls, source: Path, text: Text) -> Self:
        """The model of a directory or a .gguf file, for texts of the private model's `text`.

        Raises `MisuseError` for files without such a model, and for one whose tokens are others.
        """
        if text.decoding is None:
            raise MisuseError("the private model writes no text")
        around = Reading(prefix=text.decoding.before, suffix=text.decoding.after)
        with as_directory(source) as folder:
            tokenizer = type(text.encoder).from_file(str(folder / "tokenizer.json"))
            if tokenizer.get_vocab() != text.encoder.get_vocab():
                raise MisuseError(f"{source} has other tokens than the private model; take a draft of the same family")
            return cls(Floats.of(folder, prompting(folder, around).tokens))

    def propose(self, ids: Sequence[int], count: int) -> list[int]:
        """The `count` best tokens, one after another."""
        if count < 1:
            return []
        same = next((at for at, pair in enumerate(zip(self.read, ids, strict=False)) if pair[0] != pair[1]), None)
        keep = min(len(self.read), len(ids) - 1) if same is None else min(same, len(ids) - 1)
        self.kept = self.floats.cut(self.kept, keep)
        self.read, text = list(ids[:keep]), list(ids)
        while len(text) < len(ids) + count:
            unread = text[len(self.read) :]
            text.append(int(self.floats.logits(unread, self.kept)[-1].argmax()))
            self.read += unread
        return text[len(ids) :]
