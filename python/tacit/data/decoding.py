"""How a decoder's prompt becomes tokens, and tokens an input: what the client of a language model needs to know."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

MOST_BEGINNING = 1024
MOST_CONTEXT = 8192


@dataclass(frozen=True)
class Steps:
    """Inputs of a model that reads one token at a time and keeps keys and values of `context` earlier ones.

    Positions turn pairs of a head's `width` values by angles of the `base`; `unit` stands for 1 among their cosines.
    Or they are learned, `places` of them: then `width` is 0, and the embedding has one for each.
    """

    context: int
    width: int = 0
    base: float = 1.0
    unit: float = 1.0
    places: int = 0

    @classmethod
    def of(cls, content: Any) -> Self:
        """What `content` says; raises `KeyError` or `TypeError` for JSON without the fields."""
        learned = "places" in content
        turned = () if learned else (content["width"], float(content["base"]), float(content["unit"]))
        found = cls(content["context"], places=content["places"]) if learned else cls(content["context"], *turned)
        numbers = found.context, found.places if learned else found.width
        sound = all(isinstance(number, int) and number > 0 for number in numbers)
        sound = sound and found.context <= MOST_CONTEXT and found.width % 2 == 0
        if not sound or not np.isfinite((found.base, found.unit)).all() or min(found.base, found.unit) <= 0:
            raise MisuseError("text: `steps` must have a context, and an even width, a base and a unit, or places")
        return found

    def to_json(self) -> dict[str, Any]:
        """The fields, as `of` reads them."""
        if self.places:
            return {"context": self.context, "places": self.places}
        return {"context": self.context, "width": self.width, "base": self.base, "unit": self.unit}

    def placed(
        self, token: int, before: int, beginning: int, seen: Sequence[bool] | None = None
    ) -> NDArray[np.float32]:
        """An input (rows, 1) of the `token` with `before` tokens between it and the beginning.

        Below the token are cosines and sines of its position, or the number of a learned one, and what it attends to:
        1 for the beginning, for those of the last `context` entries that are `seen`, of which the last is the newest,
        and for itself. Without `seen` the entries are those of the tokens before it. Raises `MisuseError` for a
        position that was not learned.
        """
        last = ([True] * before if seen is None else list(seen))[-self.context :]
        mask = [np.ones(beginning), np.zeros(self.context - len(last)), np.array(last, np.float64), np.ones(1)]
        rows = np.concatenate([[token], *self.position(beginning + before), *mask])
        return rows[:, None].astype(np.float32)

    def room(self, tokens: int, beginning: int) -> int:
        """How many tokens have a position behind so many."""
        return self.places - beginning - tokens if self.places else MOST_CONTEXT

    def position(self, place: int) -> list[NDArray[np.float64]]:
        """What an input says of the position of its token."""
        if self.places:
            if place >= self.places:
                raise MisuseError(f"the model has {self.places} positions; ask it in shorter texts")
            return [np.array([place], np.float64)]
        frequencies = self.base ** (-np.arange(0, self.width, 2) / self.width)
        cosine, sine = (turn(place * frequencies) * self.unit for turn in (np.cos, np.sin))
        return [cosine, cosine, -sine, sine]


@dataclass(frozen=True)
class Decoding:
    """What stands around a prompt.

    `beginning` are as many tokens as the server has in front of each prompt, the same for everybody, and `before` is
    their text. `after` is a text between the prompt and the answer, and the tokens `stops` end an answer. With `steps`
    an input is one token, without all of them.
    """

    beginning: int = 0
    before: str = ""
    after: str = ""
    stops: tuple[int, ...] = ()
    steps: Steps | None = None

    @classmethod
    def of(cls, content: Any) -> Self:
        """What `content` says; raises `MisuseError` for JSON that `to_json` does not write."""
        try:
            steps = Steps.of(content["steps"]) if "steps" in content else None
            found = cls(content["beginning"], content["before"], content["after"], tuple(content["stops"]), steps)
            numbers = (found.beginning, *found.stops)
            sound = all(isinstance(number, int) and number >= 0 for number in numbers)
            sound = sound and isinstance(found.before, str) and isinstance(found.after, str)
        except (KeyError, TypeError, ValueError) as error:
            raise MisuseError(f"text: `decoding` lacks {error}") from error
        if not sound or found.beginning > MOST_BEGINNING:
            raise MisuseError("text: `decoding` must have a beginning, texts before and after, and tokens that stop")
        return found

    def to_json(self) -> dict[str, Any]:
        """The fields, as `of` reads them."""
        found = {"beginning": self.beginning, "before": self.before, "after": self.after, "stops": list(self.stops)}
        return found if self.steps is None else {**found, "steps": self.steps.to_json()}

    def rows(self, sequence: int) -> int:
        """The rows of an input of so many tokens: tokens, and what the module of architectures says of masks."""
        return 2 + self.beginning + sequence

    def cut(self, ids: Sequence[int]) -> list[int]:
        """The first of the tokens of a text, as many as have a position."""
        places = 0 if self.steps is None else self.steps.places
        return list(ids[: places - self.beginning]) if places else list(ids)

    def inputs(self, ids: Sequence[int], sequence: int, pad: int) -> NDArray[np.float32]:
        """All inputs (N, rows, sequence) that the tokens `ids` of one text take, in order: one, or one for each."""
        if self.steps is None:
            return self.placed(ids, sequence, pad)[None]
        if not ids:
            raise MisuseError("a prompt needs at least one token")
        return np.stack([self.steps.placed(token, place, self.beginning) for place, token in enumerate(ids)])

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
