"""Noise by which a client draws tokens."""

import numpy as np
import pytest
from tacit.errors import MisuseError
from tacit.session.sampling import HOTTEST, MOST_NOISE, Sampling


@pytest.mark.parametrize("seed", [None, 7])
def test_the_largest_of_numbers_with_noise_is_a_sample_of_their_softmax(seed: int | None) -> None:
    numbers, temperature, draws = np.array([0.0, 1.0, 2.5, -1.0]), 1.5, 20_000
    sampling = Sampling(temperature, seed)
    noise = sampling.noise(draws * len(numbers))
    assert noise is not None
    drawn = (numbers + noise.reshape(draws, -1)).argmax(axis=1)
    found = np.bincount(drawn, minlength=len(numbers)) / draws
    wanted = np.exp(numbers / temperature) / np.exp(numbers / temperature).sum()
    # Six standard deviations.
    assert (np.abs(found - wanted) < 6 * np.sqrt(wanted / draws)).all()


def test_noise_is_bounded_and_a_seed_repeats_it() -> None:
    noise, again = (Sampling(2.0, 3).noise(10_000) for _ in range(2))
    assert noise is not None and again is not None
    assert noise.dtype == np.float32 and np.isfinite(noise).all() and noise.max() <= 2 * MOST_NOISE
    assert (noise == again).all()
    fresh, other = (Sampling(1.0).noise(8) for _ in range(2))
    assert fresh is not None and other is not None and (fresh != other).any()
    assert Sampling().noise(10) is None


def test_a_temperature_has_to_have_room() -> None:
    Sampling(2.0).check(2 * MOST_NOISE)
    with pytest.raises(MisuseError, match=r"up to 1\.50"):
        Sampling(2.0).check(1.5 * MOST_NOISE)


@pytest.mark.parametrize("temperature", [-0.1, HOTTEST * 1.01, float("nan")])
def test_temperatures_that_there_are_not_are_refused(temperature: float) -> None:
    with pytest.raises(MisuseError, match="temperature"):
        Sampling(temperature)


def test_tokens_that_are_cut_off_are_never_drawn() -> None:
    numbers = np.array([[0.0, 1.0, 2.5, -1.0, 2.4], [5.0, 1.0, 1.0, 1.0, -3.0]])
    chances = np.exp(numbers / 1.5) / np.exp(numbers / 1.5).sum(axis=1, keepdims=True)
    for top_k, top_p, wanted in [
        (None, 1.0, [{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}]),
        (2, None, [{2, 4}, {0, 1}]),
        (None, 0.5, [{2, 4}, {0}]),
        (3, 0.9, [{1, 2, 4}, {0, 1}]),
        (1, 0.2, [{2}, {0}]),
        (9, None, [{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}]),
    ]:
        sampling = Sampling(1.5, 5, top_k, top_p)
        kept = sampling.kept(numbers)
        assert [set(np.flatnonzero(row)) for row in kept] == wanted
        draws = 4_000
        drawn = np.array(sampling.choose(np.repeat(numbers, draws, axis=0))).reshape(2, draws)
        for row, mine in enumerate(wanted):
            found = np.bincount(drawn[row], minlength=5) / draws
            left = np.where(kept[row], chances[row], 0) / chances[row][kept[row]].sum()
            assert set(np.flatnonzero(found)) <= mine
            # Six standard deviations.
            assert (np.abs(found - left) <= 6 * np.sqrt(left / draws)).all()


def test_what_cuts_needs_a_temperature_and_all_numbers() -> None:
    for wrong in ((1.0, 0, None), (1.0, None, 0.0), (1.0, None, 1.5), (0.0, 5, None), (0.0, None, 0.9)):
        temperature, top_k, top_p = wrong
        with pytest.raises(MisuseError, match="--top-"):
            Sampling(temperature, None, top_k, top_p)
    with pytest.raises(MisuseError, match="--reveal output"):
        Sampling(1.0, None, 40).check(100.0)
    # Nothing is added to shares then.
    Sampling(100.0, None, 40).check(1.0, known=True)
