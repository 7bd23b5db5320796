"""A language model from a directory to text that two processes write."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoders import PREFIX, SUFFIX, directory
from tacit.cli.application import app
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.reading import Reading
from tacit.data.text import read
from tacit.errors import MisuseError, TransportError
from tacit.model import Model
from tacit.session.generate import generate
from tacit.session.pair import Pair
from typer.testing import CliRunner

SEQUENCE, PROMPTS = 8, ("one", "seventeen sheep", "x")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A compiled decoder that rounds exactly."""
    folder = tmp_path_factory.mktemp("decoder")
    options = Options(rounding="exact", reading=Reading(SEQUENCE, prefix=PREFIX, suffix=SUFFIX))
    compile_model(directory(folder / "tiny"), folder / "tiny.tacit", options=options)
    return Model(folder / "tiny.tacit")


def test_a_private_run_gives_the_interpreters_integers_and_costs_what_the_plan_says(model: Model) -> None:
    assert model.text is not None
    x = model.text.tokens(PROMPTS[:1]).x
    run = Pair(model, batch=1).run(x, None)
    assert run.report["max_error"] == 0
    assert run.report["bytes"] == run.report["predicted"]["bytes"]
    assert run.report["rounds"] == run.report["predicted"]["rounds"]


def test_a_client_learns_the_next_token_and_no_logits(model: Model) -> None:
    assert model.text is not None
    x = model.text.tokens(PROMPTS).x
    run = Pair(model, reveal="label", batch=1).run(x, None)
    assert run.prediction.outputs.shape == (len(PROMPTS), 1)
    assert run.prediction.classes.tolist() == model.simulate(x).argmax(axis=1).tolist()


def test_text_is_written_token_by_token(model: Model) -> None:
    shown = CliRunner().invoke(app, ["run", str(model.path), "--prompt", "two", "--tokens", "3", "--json"])
    assert shown.exit_code == 0, shown.output
    answer = json.loads(shown.stdout)
    assert answer["complete"]
    assert [token["token"] for token in answer["tokens"]] == interpreted(model, "two", 3)
    assert all(token["bytes"] > 0 and token["rounds"] > 0 for token in answer["tokens"])


def test_tokens_are_cut_off_by_options_that_go_together(model: Model) -> None:
    command = ["run", str(model.path), "--prompt", "two", "--tokens", "3", "--json", "--top-k", "1"]
    shown = CliRunner().invoke(app, [*command, "--temperature", "1"])
    assert shown.exit_code == 0, shown.output
    # Only the best one is left.
    assert [token["token"] for token in json.loads(shown.stdout)["tokens"]] == interpreted(model, "two", 3)
    assert "--temperature above 0" in str(CliRunner().invoke(app, command).exception)


def interpreted(model: Model, prompt: str, tokens: int) -> list[int]:
    """The tokens that the interpreter writes."""
    assert model.text is not None
    return [piece.token for piece in generate(Interpreter(model), model.text, prompt, tokens)]


class Interpreter:
    """Steps of the interpreter, the last of which may fail."""

    def __init__(self, model: Model, steps: int | None = None) -> None:
        """Run `model`, at most so many steps."""
        self.model, self.left, self.classes = model, steps, np.zeros(1, np.int64)
        self.report: dict[str, Any] = {"bytes": {"to_server": 0}, "rounds": 0}

    def __call__(self, x: np.ndarray) -> "Interpreter":
        """One step."""
        if self.left == 0:
            raise TransportError("the server is gone")
        self.left = None if self.left is None else self.left - 1
        self.classes = self.model.simulate(x).argmax(axis=1)
        return self


def test_the_text_so_far_is_kept_when_the_peer_dies(model: Model) -> None:
    assert model.text is not None
    pieces = []
    with pytest.raises(TransportError, match="gone"):
        for piece in generate(Interpreter(model, 2), model.text, "two", 5):
            pieces.append(piece)
    assert [piece.token for piece in pieces] == interpreted(model, "two", 2)


def test_clients_have_what_they_need_in_their_file(model: Model) -> None:
    text = read(model.path.with_suffix(".text"))
    assert text.decoding is not None
    assert (text.decoding.before, text.decoding.after) == (PREFIX, SUFFIX)
    assert text.tokens(PROMPTS).x.shape[1:] == model.input_shape
    assert text.embedding is not None


def test_models_that_write_no_text_say_so(model: Model) -> None:
    assert model.text is not None
    with pytest.raises(MisuseError, match="--tokens"):
        next(generate(Interpreter(model), model.text, "x", 0))
    shown = CliRunner().invoke(app, ["run", str(model.path), "in.npy", "--prompt", "two"])
    assert "stands alone" in str(shown.exception)


def test_a_directory_says_where_its_calibration_is_from(tmp_path: Path) -> None:
    command = ["compile", str(directory(tmp_path / "d")), "-o", str(tmp_path / "d.tacit"), "--sequence", "8", "--json"]
    shown = CliRunner().invoke(app, [*command, "--prefix", PREFIX, "--suffix", SUFFIX])
    assert shown.exit_code == 0, shown.exception
    assert Model(tmp_path / "d.tacit").output_shape == (256,)


def test_a_chat_answers_line_by_line(model: Model) -> None:
    shown = CliRunner().invoke(app, ["chat", str(model.path), "--tokens", "2", "--json"], input="one\n\nfour\n")
    assert shown.exit_code == 0, shown.output
    answers = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [answer["prompt"] for answer in answers] == ["one", "four"]
    for answer in answers:
        assert [token["token"] for token in answer["tokens"]] == interpreted(model, answer["prompt"], 2)
