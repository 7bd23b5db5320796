"""A language model over texts: how often its best token is the float model's, and how well both foresee the texts."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.prompts import prompting
from tacit.compiler.reading import Reading
from tacit.data.decoding import Decoding
from tacit.data.text import Text
from tacit.errors import MisuseError
from tacit.importers.architectures.floats import Floats
from tacit.importers.gguf.directory import as_directory
from tacit.model import Model, Progress, processors
from tacit.session.drafts import Guesses, runs_of

CHANCE = 0
"""Where the rounding of the default protocols begins to be drawn."""
Scores = NDArray[np.float64]


class Following(NamedTuple):
    """Tokens of a text behind the beginning of all prompts. The last token of the first `given` foretells the next."""

    tokens: tuple[int, ...]
    given: int


class Answers(NamedTuple):
    """The float model's best answers to prompts, of so many tokens at most, and what guesses them."""

    tokens: int
    guesses: Guesses | None = None


class Foretold(NamedTuple):
    """At each position: the best token, and the natural logarithm of the probability of the one that does follow."""

    best: NDArray[np.int64]
    surprise: Scores

    @classmethod
    def of(cls, scores: Scores, text: Following) -> "Foretold":
        """What scores (tokens of the text but the last, vocabulary) foretell."""
        looked = scores[text.given - 1 :].astype(np.float64)
        looked -= looked.max(axis=1, keepdims=True)
        actual = np.array(text.tokens[text.given :])
        surprise = np.log(np.exp(looked).sum(axis=1)) - looked[np.arange(len(actual)), actual]
        return cls(looked.argmax(axis=1), surprise)

    @classmethod
    def joined(cls, parts: "Iterable[Foretold]") -> "Foretold":
        """All positions of all texts."""
        every = list(parts)
        return cls(np.concatenate([one.best for one in every]), np.concatenate([one.surprise for one in every]))

    @property
    def perplexity(self) -> float:
        """The exponential of the mean surprise."""
        return float(np.exp(self.surprise.mean()))


def evaluate(
    model: Model,
    texts: Sequence[str],
    source: Path,
    answers: Answers | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Positions of texts under the float model in `source`, the interpreter, and the interpreter with drawn rounding.

    Each text stands behind the beginning of all prompts, by itself; what does not fit the model's context is a text of
    its own. With `answers` texts are prompts instead, and the positions are those of the float model's own best
    answers, with the token that stops an answer.

    `agreement` and `stochastic_agreement` are the parts of positions at which the best token is the float model's,
    `perplexity`, `stochastic_perplexity` and `float_perplexity` the exponentials of the mean of -log p of the token
    that follows. `draft` has the tokens of all answers, the runs that write them with `answers.guesses`, and tokens
    of a run. Raises `MisuseError` for a model that reads no text step by step.
    """
    text = model.text
    if text is None or text.decoding is None or text.decoding.steps is None:
        raise MisuseError(f"{model.path} does not write token by token; compile a language model with --context N")
    began, around = monotonic(), Reading(prefix=text.decoding.before, suffix=text.decoding.after)
    with as_directory(source) as folder:
        floats = Floats.of(folder, prompting(folder, around).tokens)
        if answers is None:
            read = [text.plain.encode(one, add_special_tokens=False).ids for one in texts]
            size = len(text.decoding.cut(range(text.decoding.steps.context + 1)))
            looked = [piece for ids in read for piece in pieces(ids, size)]
        else:
            looked = [answered(floats, text.prompt(one), answers.tokens, text.decoding) for one in texts]
        looked = [one for one in looked if len(one.tokens) > one.given]
        if not looked:
            raise MisuseError("the texts have no position at which a token follows another; give longer ones")
        drafted = {} if answers is None else guessed(answers, looked)
        wanted = Foretold.joined(
            Foretold.of(floats.logits(one.tokens[:-1], floats.begun()).astype(np.float64), one) for one in looked
        )
    done = [0]

    def run(task: tuple[Following, int | None]) -> Foretold:
        found = foretold(model, text, *task)
        done[0] += 1
        if progress is not None:
            progress(done[0], 2 * len(looked))
        return found

    with ThreadPoolExecutor(processors(), "tacit-simulate") as pool:
        exact, drawn = (Foretold.joined(pool.map(run, [(one, seed) for one in looked])) for seed in (None, CHANCE))
    return {
        "mode": "simulate",
        "model": str(model.path),
        "source": str(source),
        "inputs": len(texts),
        "positions": len(wanted.best),
        "agreement": float((exact.best == wanted.best).mean()),
        "stochastic_agreement": float((drawn.best == wanted.best).mean()),
        "perplexity": exact.perplexity,
        "stochastic_perplexity": drawn.perplexity,
        "float_perplexity": wanted.perplexity,
        **drafted,
        "seconds": monotonic() - began,
    }


def guessed(answers: Answers, looked: Sequence[Following]) -> dict[str, Any]:
    """How many runs write the answers with what guesses them, where something does."""
    if answers.guesses is None:
        return {}
    pairs = [(one.tokens[: one.given], one.tokens[one.given :]) for one in looked]
    runs = sum(runs_of(answers.guesses, *pair) for pair in pairs)
    tokens = sum(len(answer) for _, answer in pairs)
    return {"draft": {"pass": answers.guesses.at_once, "tokens": tokens, "runs": runs, "tokens_per_run": tokens / runs}}


def pieces(tokens: Sequence[int], size: int) -> list[Following]:
    """A text in parts of at most so many tokens."""
    return [Following(tuple(tokens[start : start + size]), 1) for start in range(0, len(tokens), size)]


def foretold(model: Model, text: Text, following: Following, seed: int | None) -> Foretold:
    """What the interpreter foretells of a text; with a `seed` rounding is drawn."""
    assert text.decoding is not None
    x = text.inputs(text.decoding.inputs(following.tokens[:-1], text.sequence, text.pad))
    return Foretold.of(model.real(model.simulate(x, seed=seed)), following)


def answered(floats: Floats, prompt: Sequence[int], most: int, decoding: Decoding) -> Following:
    """A prompt with the float model's best answer: at most so many tokens, or up to one that stops."""
    kept, tokens, read = floats.begun(), list(prompt), 0
    longest = len(decoding.cut(range(len(prompt) + most)))
    while len(tokens) < longest and (read == 0 or tokens[-1] not in decoding.stops):
        tokens.append(int(floats.logits(tokens[read:], kept)[-1].argmax()))
        read = len(tokens) - 1
    return Following(tuple(tokens), len(prompt))
