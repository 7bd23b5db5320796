"""Turned states: weights of a decoder whose states are those of another times an orthogonal matrix.

An RMS norm without factors commutes with orthogonal matrices, so that the matrix is part of the weights: what layers
read and write is turned, and what a decoder says stays what it was. A few channels that are far larger than all others
are spread over all channels, and states fit into few bits. Ashkboos et al., "SliceGPT" (ICLR 2024), section 3.1, and
"QuaRot" (NeurIPS 2024), section 4, stage 1a.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures.graph import Weights

Array = NDArray[np.float32]

SEED = 0
"""The matrix is the same for all models of a width, and public."""
WORDS, HEAD = "embed_tokens.weight", "lm_head.weight"
PLACES = "places.weight"
"""Embeddings of positions, where those are learned."""
FIRST, SECOND = "input_layernorm", "post_attention_layernorm"
READING = {"q_proj": FIRST, "k_proj": FIRST, "v_proj": FIRST, "gate_proj": SECOND, "up_proj": SECOND}
"""Layers that read states behind a norm, and that norm."""
WRITING = ("o_proj", "down_proj")
"""Layers whose results are added to the states."""
LAST = "norm.weight"
FACTORS = (f"{FIRST}.weight", f"{SECOND}.weight", LAST)


def orthogonal(width: int) -> Array:
    """An orthogonal matrix (width, width), drawn evenly from all of them under a fixed seed.

    The signs make the matrix that of the one decomposition with a positive diagonal, which no library chooses.
    """
    q, r = np.linalg.qr(np.random.default_rng(SEED).normal(size=(width, width)))
    found: Array = (q * np.sign(np.diagonal(r))).astype(np.float32)
    return found


class Rotated(Mapping[str, Array]):
    """Weights whose states are turned and whose norms have no factors, each made when it is asked for.

    The head is never the embedding, as the last norm's factors are part of it.
    """

    def __init__(self, weights: Weights, width: int) -> None:
        """Turn the states of `weights`, named without the family's prefix, which have `width` values."""
        self.weights, self.width = weights, width
        self.turn = orthogonal(width)

    def __iter__(self) -> Iterator[str]:
        """The names of the weights, and the head's."""
        return iter(dict.fromkeys([*self.weights, HEAD]))

    def __len__(self) -> int:
        """How many weights there are."""
        return len(self.weights) + (HEAD not in self.weights)

    def __contains__(self, name: object) -> bool:
        """Whether there are weights of this name; none are made."""
        return name == HEAD or name in self.weights

    def __getitem__(self, name: str) -> Array:
        """The weights of this name."""
        if name == HEAD:
            own = self.weights[HEAD if HEAD in self.weights else WORDS]
            return self.read(own, LAST)
        value = self.weights[name]
        if name in (WORDS, PLACES):
            return value @ self.turn
        if name.endswith(FACTORS):
            return np.ones_like(value)
        parts = name.rsplit(".", 3)
        if len(parts) < 4 or parts[2] not in (*READING, *WRITING):
            return value
        layer, _, role, kind = parts
        if role in WRITING:
            return value @ self.turn if kind == "bias" else self.turn.T @ value
        return value if kind == "bias" else self.read(value, f"{layer}.{READING[role]}.weight")

    def read(self, weight: Array, norm: str) -> Array:
        """A layer (outputs, width) that reads turned states behind a norm without factors."""
        scaled: Array = weight * self.weights[norm]
        return scaled @ self.turn
