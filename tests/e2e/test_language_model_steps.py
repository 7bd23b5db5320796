"""A language model that reads one token at a time, whose keys and values two processes keep as shares."""

import numpy as np
import pytest
from decoders import PREFIX, SUFFIX, compiled, text_of
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.compiler.reading import Reading
from tacit.data.text import read
from tacit.errors import MisuseError
from tacit.importers.architectures.llama_floats import logits
from tacit.importers.huggingface import load
from tacit.measure.decoder import bench_decoder
from tacit.model import Model
from tacit.session.generate import cost_of, remembered, runs
from tacit.session.pair import Pair
from tacit.session.sampling import Sampling

CONTEXT, PROMPT, TOKENS = 8, "one", 6


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A compiled decoder that rounds exactly."""
    return compiled(tmp_path_factory.mktemp("steps"), CONTEXT)


def test_the_float_model_of_steps_is_the_decoder(model: Model) -> None:
    text, folder = text_of(model), model.path.parent / "tiny"
    assert text.decoding is not None
    ids = text.prompt("two")
    before = text.encoder.encode(text.decoding.before, add_special_tokens=False).ids
    x = text.inputs(text.decoding.inputs(ids, 1, 0))
    made = FloatModel(folder, (), 1, True, model.selection)(x)
    _, config, weights = load(folder)
    want = logits(config, weights, [*before, *ids])[len(before) :]
    assert len(ids) <= CONTEXT
    # Clients have embeddings in 16 bits.
    assert np.abs(made - want).max() < 2e-3 * np.abs(want).max()


def test_earlier_prompts_of_a_session_change_nothing(model: Model) -> None:
    text = text_of(model)
    alone = model.simulate(text.tokens(["two"]).x)
    behind = model.simulate(text.tokens(["seventeen sheep", "two"]).x)
    assert behind[-len(alone) :].tolist() == alone.tolist()


def test_queries_and_keys_that_were_clipped_are_not_clipped_again(model: Model) -> None:
    steps = [layer["name"] for layer in model.plan()["layers"]]
    assert "layer0.scores" in steps
    assert not [step for step in steps if ".scores.clip" in step]


def test_keys_and_values_stay_shared_between_two_processes(model: Model) -> None:
    text = text_of(model)
    run = Pair(model).run(text.tokens([PROMPT]).x, None)
    assert run.report["max_error"] == 0
    assert run.report["bytes"] == run.report["predicted"]["bytes"]
    assert run.report["rounds"] == run.report["predicted"]["rounds"]


def test_an_answer_longer_than_the_context_is_the_interpreters(model: Model) -> None:
    text, written = text_of(model), []
    assert text.decoding is not None
    with (
        Pair(model, reveal="label").server() as server,
        Pair(model, reveal="label").dial(server).session(runs(text, PROMPT, TOKENS)) as session,
    ):
        for piece in session.generate(text, PROMPT, TOKENS):
            written.append(piece.token)
    ids = [*text.prompt(PROMPT), *written]
    assert len(ids) > CONTEXT
    x = text.inputs(text.decoding.inputs(ids[:-1], 1, 0))
    assert model.simulate(x).argmax(axis=1)[-TOKENS:].tolist() == written


def test_a_prompt_takes_shorter_runs_that_cost_what_is_planned(model: Model) -> None:
    text, pair = text_of(model), Pair(model, reveal="label")
    count, before = runs(text, PROMPT, 2), remembered(text, PROMPT)
    with pair.server() as server, pair.dial(server).session(count) as session:
        pieces = list(session.generate(text, PROMPT, 2))
    assert (len(pieces), before) == (2, len(text.prompt(PROMPT)) - 1)
    planned = cost_of(pair.predicted(count, before))
    assert cost_of(session.report) == planned
    assert planned.bytes < cost_of(pair.predicted(count)).bytes


def test_a_prompt_that_is_read_in_passes_is_read_as_token_by_token(model: Model) -> None:
    text, at_once = text_of(model), 4
    pair = Pair(model, reveal="label", pass_inputs=at_once)
    count, before = runs(text, PROMPT, TOKENS, at_once), remembered(text, PROMPT, at_once)
    assert before % at_once == 0 and before > len(text.prompt(PROMPT)) - 1
    with pair.server() as server, pair.dial(server).session(count) as session:
        written = [piece.token for piece in session.generate(text, PROMPT, TOKENS)]
        spent = session.report
    ids = [*text.prompt(PROMPT), *written]
    assert text.decoding is not None
    x = text.inputs(text.decoding.inputs(ids[:-1], 1, 0))
    assert model.simulate(x).argmax(axis=1)[-len(written) :].tolist() == written
    planned = cost_of(pair.predicted(before + len(written), before))
    assert cost_of(spent) == planned
    assert planned.rounds < cost_of(Pair(model, reveal="label").predicted(before + len(written), before)).rounds
    refused = Pair(model, reveal="label", pass_inputs=at_once, offline=1)
    with pytest.raises(MisuseError, match="--offline"), refused.server():
        pass


def test_a_bench_of_tokens_measures_what_is_planned(model: Model) -> None:
    for at_once in (1, 4):
        pair = Pair(model, reveal="label", pass_inputs=at_once)
        made = bench_decoder(pair, CONTEXT, 2)
        assert made["exact"], made
        assert ("per_pass" in made) == (at_once > 1)
        assert made["session"]["inputs"] == 5 + (2 * at_once if at_once > 1 else 0)
        assert made["session"]["bytes"] > made["first"]["bytes"] + 2 * made["per_token"]["bytes"]
        assert all(made[field].keys() == {"client", "server"} for field in ("cpu_seconds", "peak_memory_bytes"))
    assert made["per_pass"]["rounds"] < 2 * made["per_prompt_token"]["rounds"]
    with pytest.raises(MisuseError, match="at most 2 --tokens"):
        bench_decoder(pair, CONTEXT, 3)


def test_tokens_are_drawn_by_noise_of_the_client(model: Model) -> None:
    text, pair = text_of(model), Pair(model, reveal="label")
    with pair.server() as server, pair.dial(server).session(runs(text, PROMPT, TOKENS)) as session:
        written = [piece.token for piece in session.generate(text, PROMPT, TOKENS, temperature=2.0, seed=5)]
    ids = [*text.prompt(PROMPT), *written]
    assert text.decoding is not None
    x = text.inputs(text.decoding.inputs(ids[:-1], 1, 0))
    numbers, sampling = model.simulate(x)[-len(written) :], Sampling(2.0, 5)
    for row, token in zip(numbers, written, strict=True):
        noise = sampling.noise(len(row))
        assert noise is not None
        assert int(np.argmax(row + np.rint(noise / np.float64(model.output_scale)).astype(np.int64))) == token
    assert written != numbers.argmax(axis=1).tolist()


def test_tokens_are_cut_off_by_a_client_that_learns_all_numbers(model: Model) -> None:
    text, pair = text_of(model), Pair(model, reveal="output")
    with pair.server() as server, pair.dial(server).session(runs(text, PROMPT, TOKENS)) as session:
        pieces = session.generate(text, PROMPT, TOKENS, 2.0, 5, top_k=3, top_p=0.9)
        written = [piece.token for piece in pieces]
    ids = [*text.prompt(PROMPT), *written]
    assert text.decoding is not None
    x = text.inputs(text.decoding.inputs(ids[:-1], 1, 0))
    numbers, sampling = model.real(model.simulate(x))[-len(written) :], Sampling(2.0, 5, 3, 0.9)
    assert [sampling.choose(row[None])[0] for row in numbers] == written
    labels = Pair(model, reveal="label")
    with labels.server() as server, labels.dial(server).session(runs(text, PROMPT, TOKENS)) as session:
        with pytest.raises(MisuseError, match="--reveal output"):
            next(iter(session.generate(text, PROMPT, TOKENS, 2.0, top_k=3)))
        # Nothing was read, so the session goes on.
        assert [*session.generate(text, PROMPT, TOKENS)]


def test_layers_that_are_prepared_for_several_tokens_take_fewer_bytes(model: Model) -> None:
    text, tokens = text_of(model), 40
    alone, together = (Pair(model, reveal="label", protocols=protocols) for protocols in ("ahead", "ahead32"))
    with together.server() as server, together.dial(server).session(runs(text, PROMPT, tokens)) as session:
        written = [piece.token for piece in session.generate(text, PROMPT, tokens)]
    ids = [*text.prompt(PROMPT), *written]
    assert text.decoding is not None
    x = text.inputs(text.decoding.inputs(ids[:-1], 1, 0))
    assert model.simulate(x).argmax(axis=1)[-len(written) :].tolist() == written
    before, count = remembered(text, PROMPT), int(session.report["inputs"])
    assert cost_of(session.report) == cost_of(together.predicted(count, before))
    assert cost_of(together.predicted(count, before)).bytes < cost_of(alone.predicted(count, before)).bytes


def test_attention_on_masks_of_several_tokens_is_near_the_interpreter(model: Model) -> None:
    folder, reading = model.path.parent, Reading(prefix=PREFIX, suffix=SUFFIX, context=CONTEXT)
    compile_model(folder / "tiny", folder / "random.tacit", options=Options(rounding="stochastic", reading=reading))
    random = Model(folder / "random.tacit")
    x = text_of(random).tokens(["seventeen sheep"]).x
    x = np.concatenate([x] * (1 + 40 // len(x)))
    # More tokens than the context has, and than are prepared together.
    assert len(x) > max(CONTEXT, 32)
    run, other = (Pair(random, protocols=protocols).run(x, None) for protocols in ("ahead32", "plain"))
    assert [step for step in run.report["layers"] if "of entries that are kept" in step["protocol"]]
    assert run.report["bytes"] == run.report["predicted"]["bytes"]
    assert run.report["rounds"] == run.report["predicted"]["rounds"]
    # Errors of rounding at random are those of products that were not prepared.
    assert run.report["max_error"] <= 2 * other.report["max_error"] + 4
    # A session that stores preprocessed runs has the products of shared matrices.
    stored = Pair(random, protocols="ahead32", offline=2).run(x, None)
    assert not [step for step in stored.report["layers"] if "of entries that are kept" in step["protocol"]]
    assert stored.report["max_error"] <= 2 * other.report["max_error"] + 4


def test_clients_have_what_steps_take_in_their_file(model: Model) -> None:
    text = read(model.path.with_suffix(".text"))
    assert text.decoding is not None
    assert text.decoding.steps is not None
    assert text.decoding.steps.context == CONTEXT
    assert text == text_of(model)
