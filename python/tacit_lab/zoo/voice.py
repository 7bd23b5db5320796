"""Something like a voice: harmonics of a pitch that moves, under two formants, in syllables and phrases."""

import numpy as np
from numpy.typing import NDArray

RATE = 16000
CHUNK, CONTEXT = 512, 64
"""Samples that a detector of voices hears at a time, and those before them that it hears again."""
HARMONICS = 30


def voice(seconds: int, seed: int = 0) -> NDArray[np.float32]:
    """Samples (seconds * 16000,) between -1 and 1, with pauses in which there is only noise."""
    random = np.random.default_rng(seed)
    time = np.arange(seconds * RATE) / RATE
    pitch = 140 * (1 + 0.12 * np.sin(2 * np.pi * 0.7 * time) + 0.05 * np.sin(2 * np.pi * 2.3 * time))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    formants = 500 + 250 * np.sin(2 * np.pi * 1.9 * time), 1500 + 600 * np.sin(2 * np.pi * 1.3 * time + 1)
    sound = np.zeros(len(time))
    for harmonic in range(1, HARMONICS):
        near = [1 / (1 + ((harmonic * pitch - formant) / 150) ** 2) for formant in formants]
        sound += np.sin(harmonic * phase) * (near[0] + near[1] / 2 + 0.02)
    syllables = np.clip(np.sin(2 * np.pi * 3.7 * time) + 0.3, 0, 1)
    phrases = np.sin(2 * np.pi * time / 4) > -0.4
    loud = sound * syllables * phrases
    noise: NDArray[np.float64] = 0.0008 * random.standard_normal(len(time))
    sound = 0.2 * loud / np.abs(loud).max() + noise
    return np.asarray(sound, np.float32)


def chunks(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Chunks (N, 576) of one recording, in order, each behind the last samples of the one before."""
    before = np.concatenate([np.zeros(CONTEXT, np.float32), samples])
    starts = range(0, len(samples) - CHUNK + 1, CHUNK)
    return np.stack([before[start : start + CONTEXT + CHUNK] for start in starts])
