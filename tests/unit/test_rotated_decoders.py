"""Decoders whose states are turned: they say what they said, and no channel is far larger than the others."""

from pathlib import Path

import numpy as np
import pytest
from decoders import GROUPS, HEADS, INNER, LAYERS, NORMS, PREFIX, VOCABULARY, WIDTH, Weights, config, weights
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.llama_floats import begun, logits, states
from tacit.importers.architectures.rotation import HEAD, Rotated, orthogonal
from tacit_lab.random_decoders import byte_tokenizer

CONFIG = Config(Path("d"), config())
IDS = [*byte_tokenizer().encode(PREFIX).ids, 3, 1, 4, 1, 5]
BIASED = {
    **dict.fromkeys(("self_attn.q_proj", "self_attn.o_proj", "mlp.down_proj"), WIDTH),
    **dict.fromkeys(("self_attn.k_proj", "self_attn.v_proj"), WIDTH // HEADS * GROUPS),
    **dict.fromkeys(("mlp.gate_proj", "mlp.up_proj"), INNER),
}
"""All layers of a decoder, and how many results each has."""


def outlying() -> Weights:
    """A decoder with biases everywhere, a head of its own and one channel of large states."""
    rng = np.random.default_rng(1)
    found = weights() | {HEAD: rng.normal(size=(VOCABULARY, WIDTH)).astype(np.float32)}
    for layer in range(LAYERS):
        for name, results in BIASED.items():
            found[f"layers.{layer}.{name}.bias"] = rng.normal(size=results).astype(np.float32)
    found["embed_tokens.weight"][:, 3] *= 100
    return found


@pytest.mark.parametrize("plain", [weights(), weights(biased=True), outlying()])
def test_turned_decoders_say_what_they_said(plain: Weights) -> None:
    turned = Rotated(plain, WIDTH)
    assert set(turned) == {*plain, HEAD}
    assert len(turned) == len(list(turned))
    wanted = logits(CONFIG, plain, IDS)
    np.testing.assert_allclose(logits(CONFIG, turned, IDS), wanted, rtol=1e-3, atol=1e-3)
    known = begun(CONFIG, turned, IDS)
    for name, value in begun(CONFIG, plain, IDS).items():
        np.testing.assert_allclose(known[name], value, rtol=1e-3, atol=1e-3)


def test_norms_of_turned_decoders_have_no_factors() -> None:
    turned = Rotated(weights(), WIDTH)
    for name in ("norm.weight", *(f"layers.0.{norm}.weight" for norm in NORMS)):
        assert (turned[name] == 1).all()


def test_what_one_channel_had_is_in_all() -> None:
    plain = outlying()
    without = {**plain, "norm.weight": np.ones(WIDTH, np.float32)}
    before, after = (np.abs(states(CONFIG, of, IDS, {})).max() for of in (without, Rotated(plain, WIDTH)))
    assert before > 2 * after


@pytest.mark.parametrize("width", [2, 32, 576])
def test_the_matrix_is_orthogonal_and_always_the_same(width: int) -> None:
    turn = orthogonal(width)
    np.testing.assert_allclose(turn @ turn.T, np.eye(width), atol=1e-5)
    assert (turn == orthogonal(width)).all()
    assert turn.dtype == np.float32
