"""`tacit evaluate` of a language model: its best tokens and the probabilities of texts, beside the float model's."""

import json
from pathlib import Path

import numpy as np
import pytest
from decoders import PREFIX, SUFFIX, directory
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.reading import Reading
from tacit.errors import MisuseError
from tacit.importers.architectures.llama_floats import logits
from tacit.importers.huggingface import load
from tacit.measure.writing import Answers, Foretold, evaluate
from tacit.model import Model
from typer.testing import CliRunner

CONTEXT = 8
TEXTS = ("one two three", "a")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A compiled decoder of two layers beside its directory `tiny`."""
    folder = tmp_path_factory.mktemp("quality")
    reading = Reading(prefix=PREFIX, suffix=SUFFIX, context=CONTEXT)
    options = Options(activation_bits=12, weight_bits=12, reading=reading)
    compile_model(directory(folder / "tiny"), folder / "tiny.tacit", options=options)
    return Model(folder / "tiny.tacit")


def test_perplexity_of_texts_is_that_of_all_positions_that_have_a_next_token(model: Model) -> None:
    found = evaluate(model, TEXTS, model.path.parent / "tiny")
    # 13 tokens make parts of 9 and 4, in which 8 and 3 tokens follow another; the letter has none.
    assert (found["inputs"], found["positions"]) == (2, 11)
    _, config, weights = load(model.path.parent / "tiny")
    text = model.text
    assert text is not None
    before = text.encoder.encode(PREFIX).ids
    surprises = []
    for part in (TEXTS[0][:9], TEXTS[0][9:]):
        ids = text.encoder.encode(part).ids
        scores = logits(config, weights, [*before, *ids])[len(before) : -1].astype(np.float64)
        chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        surprises += [-np.log(chances[place, token]) for place, token in enumerate(ids[1:])]
    assert found["float_perplexity"] == pytest.approx(np.exp(np.mean(surprises)), rel=1e-4)
    # The mean surprise is about 12, since random weights foretell nothing.
    assert np.log(found["perplexity"]) == pytest.approx(np.mean(surprises), rel=0.02)
    assert min(found["agreement"], found["stochastic_agreement"]) >= 0.8


def test_answers_are_the_float_models_own(model: Model) -> None:
    _, config, weights = load(model.path.parent / "tiny")
    text = model.text
    assert text is not None
    ids = [*text.encoder.encode(PREFIX).ids, *text.prompt("two")]
    surprises = []
    for _ in range(3):
        scores = logits(config, weights, ids)[-1].astype(np.float64)
        surprises.append(np.log(np.exp(scores - scores.max()).sum()))
        ids.append(int(scores.argmax()))
    found = evaluate(model, ["two"], model.path.parent / "tiny", Answers(3))
    assert found["positions"] == 3
    assert found["float_perplexity"] == pytest.approx(np.exp(np.mean(surprises)), rel=1e-4)


def test_the_best_token_and_its_surprise_are_those_of_the_scores() -> None:
    scores = np.log(np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    from tacit.measure.writing import Following

    found = Foretold.of(scores, Following((0, 1, 2), 1))
    assert found.best.tolist() == [0, 2]
    np.testing.assert_allclose(np.exp(-found.surprise), [0.25, 0.8])
    assert found.perplexity == pytest.approx((4 * 1.25) ** 0.5)


def test_the_command_says_how_good_a_model_is(model: Model, tmp_path: Path) -> None:
    from tacit.cli.application import app

    data = tmp_path / "texts.txt"
    data.write_text("\n".join(TEXTS), encoding="utf-8")
    arguments = ["evaluate", str(model.path), str(data), "--model", str(model.path.parent / "tiny")]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0
    assert "perplexity" in shown.stdout
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json", "--answers", "2"]).stdout)
    assert found["positions"] <= 4
    assert 0 <= found["agreement"] <= 1


def test_other_models_have_no_answers(model: Model, tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="no position"):
        evaluate(model, ["a"], model.path.parent / "tiny")
    whole = tmp_path / "whole.tacit"
    reading = Reading(sequence=6, prefix=PREFIX, suffix=SUFFIX)
    compile_model(model.path.parent / "tiny", whole, options=Options(reading=reading))
    with pytest.raises(MisuseError, match="--context"):
        evaluate(Model(whole), TEXTS, model.path.parent / "tiny")
