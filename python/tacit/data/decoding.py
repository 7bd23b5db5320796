"""How a decoder's prompt becomes tokens, and tokens an input: what the client of a language model needs to know."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

MOST_BEGINNING = 1024


@dataclass(frozen=True)
class Decoding:
    """What stands around a prompt.

    `beginning` are as many tokens as the server has in front of each prompt, the same for everybody, and `before` is
    their text. `after` is a text between the prompt and the answer, and the tokens `stops` end an answer.
    """

    beginning: int = 0
    before: str = ""
    after: str = ""
    stops: tuple[int, ...] = ()

    @classmethod
    def of(cls, content: Any) -> Self:
        """What `content` says; raises `MisuseError` for JSON that `to_json` does not write."""
        try:
            found = cls(content["beginning"], content["before"], content["after"], tuple(content["stops"]))
            numbers = (found.beginning, *found.stops)
            sound = all(isinstance(number, int) and number >= 0 for number in numbers)
            sound = sound and isinstance(found.before, str) and isinstance(found.after, str)
        except (KeyError, TypeError) as error:
            raise MisuseError(f"text: `decoding` lacks {error}") from error
        if not sound or found.beginning > MOST_BEGINNING:
            raise MisuseError("text: `decoding` must have a beginning, texts before and after, and tokens that stop")
        return found

    def to_json(self) -> dict[str, Any]:
        """The fields, as `of` reads them."""
        return {"beginning": self.beginning, "before": self.before, "after": self.after, "stops": list(self.stops)}

    def rows(self, sequence: int) -> int:
        """The rows of an input of so many tokens: tokens, and what the module of architectures says of masks."""
        return 2 + self.beginning + sequence

    def placed(self, ids: Sequence[int], sequence: int, pad: int) -> NDArray[np.float32]:
        """An input (rows, sequence) of the last `sequence` of the tokens `ids`.

        The first row has the tokens, with `pad` behind them, the second a 1 at the last of them. The others are
        (sequence, beginning + sequence) in the order of memory: 1 for what each token attends to, which is the
        beginning and all tokens up to itself.
        """
        last = list(ids)[-sequence:]
        if not last:
            raise MisuseError("a prompt needs at least one token")
        x = np.zeros((self.rows(sequence), sequence), np.float32)
        x[0] = pad
        x[0, : len(last)] = last
        x[1, len(last) - 1] = 1
        places = np.arange(sequence)
        own = (places[None, :] <= places[:, None]) & (places[None, :] < len(last))
        x[2:] = np.concatenate([np.ones((sequence, self.beginning)), own], axis=1).reshape(-1, sequence)
        return x
