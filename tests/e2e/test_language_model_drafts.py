"""Runs of a language model that read guesses with the last token, and write the text that steps write."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoders import compiled, directory, text_of
from numpy.typing import NDArray
from tacit.cli.application import app
from tacit.errors import MisuseError
from tacit.measure.writing import Answers, evaluate
from tacit.model import Model
from tacit.session.draft_model import DraftModel
from tacit.session.drafts import Draft, Guesses, NGrams
from tacit.session.generate import Manner, cost_of, generate, runs
from tacit.session.pair import Pair
from tacit.session.sampling import Sampling
from typer.testing import CliRunner

CONTEXT, PROMPT, TOKENS, AT_ONCE = 48, "seventeen", 9, 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A compiled decoder that rounds exactly."""
    return compiled(tmp_path_factory.mktemp("drafts"), CONTEXT)


class Interpreter:
    """A session whose runs are the interpreter's: what it keeps is all that it has read."""

    def __init__(self, model: Model) -> None:
        self.model, self.read, self.counts = model, list[NDArray[np.float32]](), list[int]()
        self.report: dict[str, Any] = {"bytes": {"to_server": 0}, "rounds": 0}

    def __call__(self, x: NDArray[np.float32], added: NDArray[np.float32] | None = None) -> "Interpreter":
        self.counts.append(len(x))
        self.read += list(x)
        numbers = self.model.real(self.model.simulate(np.stack(self.read))[-len(x) :])
        self.classes = (numbers if added is None else numbers + added.reshape(numbers.shape)).argmax(axis=1)
        return self

    def remember(self, x: NDArray[np.float32]) -> None:
        self.counts.append(-len(x))
        self.read += list(x)


class Known:
    """Guesses a text that it was told, with every so many tokens wrong."""

    def __init__(self, tokens: Sequence[int], wrong: int | None, most: int = 99) -> None:
        self.tokens, self.wrong, self.most = list(tokens), wrong, most

    def propose(self, ids: Sequence[int], count: int) -> list[int]:
        assert list(ids) == self.tokens[: len(ids)]
        right = self.tokens[len(ids) : len(ids) + min(count, self.most)]
        places = range(len(ids), len(ids) + len(right))
        spoilt = self.wrong
        return [t if spoilt is None or at % spoilt else (t + 1) % 256 for at, t in zip(places, right, strict=True)]


def written(model: Model, draft: Draft | None, sampling: Sampling | None = None) -> tuple[list[int], list[int]]:
    """Tokens that the interpreter writes, and the inputs of its runs; those that are only for states are negative."""
    session = Interpreter(model)
    at_once = 1 if draft is None else AT_ONCE
    manner = Manner(session.remember, at_once, 256, sampling or Sampling(), draft)
    return [piece.token for piece in generate(session, text_of(model), PROMPT, TOKENS, manner)], session.counts


def test_guesses_change_nothing_but_the_number_of_runs(model: Model) -> None:
    want, _ = written(model, None)
    ids = [*text_of(model).prompt(PROMPT), *want]
    # A prompt of 12 tokens takes two passes that are only for states, and the first with results has its last four.
    assert len(ids) - TOKENS == 12
    reads = [-AT_ONCE] * 2
    for draft, passes in [
        (Known([*ids, *ids], None), 3),
        (Known([*ids, *ids], 1), TOKENS),
        (Known([*ids, *ids], 2), 5),
        (Known([*ids, *ids], None, most=1), 5),
        (Known([*ids, *ids], None, most=0), TOKENS),
    ]:
        found, counts = written(model, draft)
        assert (found, counts) == (want, [*reads, *[AT_ONCE] * passes])
    for draft in (NGrams(), NGrams([ids])):
        assert written(model, draft)[0] == want


def test_drafts_change_no_sample_of_a_given_noise(model: Model) -> None:
    class Same(Sampling):
        """Draws the same noise for every token."""

        def noise(self, count: int) -> NDArray[np.float32]:
            one = np.random.default_rng(3).gumbel(size=256).astype(np.float32) * 4
            return np.tile(one, count // 256)

    want, _ = written(model, None, Same(1.0))
    assert want != written(model, None)[0]
    ids = [*text_of(model).prompt(PROMPT), *want]
    assert written(model, Known([*ids, *ids], 3), Same(1.0))[0] == want


def test_private_runs_with_a_draft_write_the_interpreters_text_at_the_planned_cost(model: Model) -> None:
    text, pair = text_of(model), Pair(model, reveal="label", pass_inputs=AT_ONCE)
    want, _ = written(model, None)
    ids = [*text.prompt(PROMPT), *want]
    count = runs(text, PROMPT, TOKENS, AT_ONCE, drafted=True)
    with pair.server() as server, pair.dial(server).session(count) as session:
        pieces = list(session.generate(text, PROMPT, TOKENS, draft=Known([*ids, *ids], 4)))
    assert [piece.token for piece in pieces] == want
    drafted = sum(piece.drafted for piece in pieces)
    assert 0 < drafted < TOKENS
    assert all((piece.rounds == 0) == piece.drafted for piece in pieces)
    inputs = AT_ONCE * (2 + TOKENS - drafted)
    assert session.report["inputs"] == inputs <= count
    assert cost_of(session.report) == cost_of(pair.predicted(inputs, 2 * AT_ONCE, in_passes=True))


def test_drafts_need_passes(model: Model) -> None:
    manner = Manner(draft=NGrams())
    with pytest.raises(MisuseError, match="--pass"):
        next(generate(Interpreter(model), text_of(model), PROMPT, 1, manner))


def test_a_public_model_guesses_what_it_says_itself(model: Model, tmp_path: Path) -> None:
    text, source = text_of(model), model.path.parent / "tiny"
    draft, ids = DraftModel.of(source, text), text.prompt(PROMPT)
    first = draft.propose(ids, 5)
    # From keys and values that were kept it says the same as from none, also behind a guess that was wrong.
    again = [*ids, first[0], (first[1] + 1) % 256]
    assert draft.propose(again, 3) == DraftModel.of(source, text).propose(again, 3)
    assert draft.propose(ids, 5) == first
    assert draft.propose(ids, 0) == []
    assert draft.propose([*ids, *first[:3]], 2) == first[3:]
    found = evaluate(model, [PROMPT], source, Answers(6, Guesses(draft, AT_ONCE)))
    # The first run has the prompt's last four tokens and no room for guesses; the others write up to four tokens.
    assert found["draft"] == {"pass": AT_ONCE, "tokens": 6, "runs": 3, "tokens_per_run": 2.0}
    other = directory(tmp_path / "other")
    tokenizer = json.loads((other / "tokenizer.json").read_text(encoding="utf-8"))
    first_two = dict(zip(list(tokenizer["model"]["vocab"])[:2], (1, 0), strict=True))
    tokenizer["model"]["vocab"] |= first_two
    (other / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    with pytest.raises(MisuseError, match="other tokens"):
        DraftModel.of(other, text)


def test_commands_take_a_draft(model: Model, tmp_path: Path) -> None:
    want, _ = written(model, None)
    source = str(model.path.parent / "tiny")
    command = ["run", str(model.path), "--prompt", PROMPT, "--tokens", str(TOKENS), "--json", "--draft"]
    shown = CliRunner().invoke(app, [*command, source])
    assert shown.exit_code == 0, shown.output
    tokens = json.loads(shown.stdout)["tokens"]
    # Exact rounding of a model with random weights agrees with its floats nearly everywhere.
    assert [token["token"] for token in tokens] == want
    assert any(token["drafted"] for token in tokens)
    missing = CliRunner().invoke(app, [*command, str(tmp_path / "none.txt")])
    assert "none.txt" in str(missing.exception)
    prompts = tmp_path / "prompts.txt"
    prompts.write_text(f"{PROMPT}\n", encoding="utf-8")
    command = ["evaluate", str(model.path), str(prompts), "--model", source, "--draft", "ngrams"]
    assert "--answers" in str(CliRunner().invoke(app, command).exception)
    shown = CliRunner().invoke(app, [*command, "--answers", "5", "--json"])
    found = json.loads(shown.stdout)["draft"]
    assert (found["pass"], found["tokens"]) == (AT_ONCE, 5)
    assert found["tokens_per_run"] == 5 / found["runs"]
