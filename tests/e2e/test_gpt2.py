"""GPT-2: an import beside an implementation of its own, and a private run."""

from pathlib import Path

import numpy as np
import pytest
from decoders import HEADS, LAYERS, WIDTH, gpt2_directory, gpt2_weights
from numpy.typing import NDArray
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.compiler.reading import Reading
from tacit.data.decoding import Steps
from tacit.data.text import read
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.architectures.gpt2 import GPT2
from tacit.importers.architectures.llama_floats import logits
from tacit.importers.huggingface import load
from tacit.measure.writing import evaluate
from tacit.model import Model
from tacit.session.pair import Pair

CONTEXT = 8
Array = NDArray[np.float64]


def normed(x: Array, weight: Array, bias: Array) -> Array:
    """A layer norm."""
    centred = x - x.mean(axis=-1, keepdims=True)
    found: Array = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * weight + bias
    return found


def reference(tokens: list[int]) -> Array:
    """Logits (tokens, vocabulary) by the published definition (Radford et al. 2019), with GELU by a tangent."""
    w = {name: value.astype(np.float64) for name, value in gpt2_weights().items()}
    x = w["wte.weight"][tokens] + w["wpe.weight"][: len(tokens)]
    hidden = np.triu(np.full((len(tokens), len(tokens)), -np.inf), 1)
    for layer in range(LAYERS):
        at = f"h.{layer}"
        both = normed(x, w[f"{at}.ln_1.weight"], w[f"{at}.ln_1.bias"])
        query, key, value = (
            part.reshape(len(tokens), HEADS, -1).transpose(1, 0, 2)
            for part in np.split(both @ w[f"{at}.attn.c_attn.weight"] + w[f"{at}.attn.c_attn.bias"], 3, axis=1)
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS) + hidden
        power = np.exp(scores - scores.max(axis=-1, keepdims=True))
        context = (power / power.sum(axis=-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(tokens), -1)
        x = x + context @ w[f"{at}.attn.c_proj.weight"] + w[f"{at}.attn.c_proj.bias"]
        wide = normed(x, w[f"{at}.ln_2.weight"], w[f"{at}.ln_2.bias"])
        wide = wide @ w[f"{at}.mlp.c_fc.weight"] + w[f"{at}.mlp.c_fc.bias"]
        wide = wide / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
        x = x + wide @ w[f"{at}.mlp.c_proj.weight"] + w[f"{at}.mlp.c_proj.bias"]
    found: Array = normed(x, w["ln_f.weight"], w["ln_f.bias"]) @ w["wte.weight"].T
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A compiled GPT-2 that rounds exactly, beside its directory `tiny`."""
    folder = tmp_path_factory.mktemp("gpt2")
    compile_model(
        gpt2_directory(folder / "tiny"),
        folder / "tiny.tacit",
        options=Options(rounding="exact", reading=Reading(context=CONTEXT)),
    )
    return Model(folder / "tiny.tacit")


def test_the_weights_of_the_other_family_say_the_same(tmp_path: Path) -> None:
    architecture, config, weights = load(gpt2_directory(tmp_path / "tiny"))
    assert architecture is GPT2
    tokens = [1, 50, 60, 7, 9, 200]
    found = logits(config, architecture.prepare(config, weights), tokens)
    np.testing.assert_allclose(found, reference(tokens), rtol=1e-3, atol=1e-3)


def test_the_steps_that_are_compiled_are_the_model(model: Model) -> None:
    text = model.text
    assert text is not None
    assert text.decoding is not None
    assert text.decoding.steps == Steps(CONTEXT, places=24)
    assert text.decoding.beginning == 1
    ids = text.prompt("seven")
    x = text.inputs(text.decoding.inputs(ids, 1, 0))
    made = FloatModel(model.path.parent / "tiny", (), 1, True, model.selection)(x)
    want = reference([1, *ids])[1:]
    # Clients have embeddings in 16 bits, and the GELU is not that by a tangent.
    assert np.abs(made - want).max() < 5e-3 * np.abs(want).max()
    assert read(model.path.with_suffix(".text")) == text


def test_a_private_run_is_the_interpreters_and_near_the_float_model(model: Model) -> None:
    text = model.text
    assert text is not None
    run = Pair(model).run(text.tokens(["seven"]).x, None)
    assert run.report["max_error"] == 0
    assert run.report["bytes"] == run.report["predicted"]["bytes"]
    found = evaluate(model, ["seven sheep"], model.path.parent / "tiny")
    assert np.log(found["perplexity"]) == pytest.approx(np.log(found["float_perplexity"]), rel=0.05)


def test_positions_that_were_not_learned_are_refused(model: Model) -> None:
    text = model.text
    assert text is not None
    assert text.decoding is not None
    assert len(text.decoding.inputs(list(range(23)), 1, 0)) == 23
    with pytest.raises(MisuseError, match="24 positions"):
        text.decoding.inputs(list(range(24)), 1, 0)


def test_what_is_no_gpt2_of_this_kind_is_refused(tmp_path: Path) -> None:
    for changed, what in (
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"scale_attn_weights": False}, "scale_attn_weights"),
        ({"activation_function": "swish"}, "activation_function"),
        ({"architectures": ["GPT2Model"]}, "GPT2Model"),
    ):
        with pytest.raises(UnsupportedError, match=what):
            load(gpt2_directory(tmp_path / what, **changed))
    folder = gpt2_directory(tmp_path / "windowed")
    with pytest.raises(UnsupportedError, match="--context"):
        compile_model(folder, tmp_path / "windowed.tacit", options=Options(reading=Reading(sequence=8)))
