"""A public embedding: the tables that a client looks its tokens up in itself, when their owner gives them away.

The model then starts with hidden states. Weights of the layers stay private.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

ENTRY = "embedding"
BOTH = ("words", "places")
NORM = ("weight", "bias")


@dataclass(frozen=True)
class Embedding:
    """Hidden states of tokens: a norm of rows of `words` (V, H; float16) plus `places` (S, H).

    `places` has positions and the first token type added up; `weight` and `bias` (H) are the norm's, and None where
    there is no norm. Where inputs are steps of one token, and positions are learned, `places` has them all.
    """

    words: NDArray[np.float16] = field(repr=False)
    places: NDArray[np.float32] = field(repr=False)
    weight: NDArray[np.float32] | None = field(repr=False)
    bias: NDArray[np.float32] | None = field(repr=False)
    epsilon: float

    def inputs(self, ids: NDArray[np.float32]) -> NDArray[np.float32]:
        """Inputs (N, H + 1, S) of tokens above their mask (N, 2, S): hidden states, channels first, above the mask.

        Steps have the number of their position below the token.
        """
        tokens = ids[:, 0].astype(np.int64)
        if tokens.size and not 0 <= tokens.min() <= tokens.max() < len(self.words):
            raise MisuseError(
                f"a token is not among the {len(self.words)} of the embedding; is this model's own file used?"
            )
        stepped = len(self.places) > tokens.shape[1]
        places = self.places[ids[:, 1].astype(np.int64)] if stepped else self.places
        states = self.normalised(self.words[tokens].astype(np.float32) + places)
        below = ids[:, 2:] if stepped else ids[:, 1:]
        return np.ascontiguousarray(np.concatenate([states.transpose(0, 2, 1), below], axis=1, dtype=np.float32))

    def normalised(self, placed: NDArray[np.float32]) -> NDArray[np.float32]:
        """States (N, S, H) after the norm, where there is one."""
        if self.weight is None or self.bias is None:
            return placed
        centred = placed - placed.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        states: NDArray[np.float32] = centred / deviation * self.weight + self.bias
        return states

    @property
    def tables(self) -> dict[str, NDArray[Any]]:
        """The tables by their names."""
        found = {name: getattr(self, name) for name in (*BOTH, *NORM)}
        return {name: np.ascontiguousarray(table) for name, table in found.items() if table is not None}

    @property
    def digest(self) -> str:
        """SHA-256 over all tables."""
        content = hashlib.sha256(json.dumps([list(self.words.shape), self.epsilon]).encode())
        for table in self.tables.values():
            content.update(table.tobytes())
        return content.hexdigest()


def file_of(embedding: Embedding, entries: dict[str, str]) -> bytes:
    """The content of a safetensors file with the tables, and `entries` as metadata."""
    from safetensors.numpy import save

    return bytes(save(embedding.tables, {**entries, ENTRY: json.dumps({"epsilon": embedding.epsilon})}))


def read(path: Path, digest: str, positions: int) -> Embedding:
    """The tables in a file; raises `MisuseError` unless they are those with this digest, for so many positions."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MisuseError("a public embedding needs safetensors; install tacit[text]") from None
    if not path.is_file():
        raise MisuseError(f"{path} does not exist: it has the public embedding and lies beside the model")
    try:
        with safe_open(path, "np") as file:
            options: Any = json.loads((file.metadata() or {})[ENTRY])
            stored = set(file.keys())
            words, places = (file.get_tensor(name) for name in BOTH)
            weight, bias = (file.get_tensor(name) if name in stored else None for name in NORM)
        embedding = Embedding(words, places, weight, bias, float(options["epsilon"]))
        sound = embedding.places.shape == (positions, embedding.words.shape[1])
        sound = sound and (weight is None) == (bias is None)
        sound = sound and all(table is None or table.shape == words.shape[1:] for table in (weight, bias))
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, IndexError) as error:
        raise MisuseError(f"{path} has no readable embedding: {error}") from error
    if not sound or embedding.digest != digest:
        raise MisuseError(f"{path} has another model's embedding; use the file that was written with the model")
    return embedding
