"""Tiny directories of Hugging Face whose weights are drawn by name, and what transformers computes with them.

`scripts/reference_encoders.py` wrote `golden/encoders.json` with PyTorch; tests draw the same weights again without.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from encoders import write_tokenizer
from safetensors.numpy import save_file

GOLDEN = Path(__file__).parent / "golden" / "encoders.json"
WORDS, SEQUENCE, COUNT = 30, 10, 2


class Case(NamedTuple):
    """A configuration, the shapes of weights by name, and the outputs (COUNT, ...) for `inputs` of the model."""

    config: dict[str, Any]
    shapes: dict[str, list[int]]
    outputs: np.ndarray


def cases() -> dict[str, Case]:
    """What the script wrote."""
    stored = json.loads(GOLDEN.read_text())
    return {name: Case(c["config"], c["shapes"], np.array(c["outputs"], np.float32)) for name, c in stored.items()}


def drawn(shapes: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
    """Weights of moderate sizes; factors of norms are near 1."""
    found = {}
    for name, shape in shapes.items():
        value = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape)
        if len(shape) == 1:
            centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            value = centre + 0.2 * value
        elif "embedding" not in name:
            value = 1.5 * value / np.sqrt(np.prod(shape[1:]))
        found[name] = value.astype(np.float32)
    return found


def write(folder: Path, case: Case) -> Path:
    """The directory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(case.config))
    save_file(drawn(case.shapes), folder / "model.safetensors")
    write_tokenizer(folder / "tokenizer.json")
    return folder


def inputs(config: Mapping[str, Any], count: int = COUNT) -> np.ndarray:
    """Pixels (count, 3, height, width) where the model has a size of pictures, else tokens (count, 2, SEQUENCE)."""
    random = np.random.default_rng(1)
    if "image_size" in config:
        side = int(config["image_size"])
        return random.uniform(-1, 1, (count, 3, side, side)).astype(np.float32)
    x = np.zeros((count, 2, SEQUENCE), np.float32)
    x[:, 0] = config["pad_token_id"]
    for index in range(count):
        length = SEQUENCE if index == 0 else int(random.integers(3, SEQUENCE))
        x[index, 0, :length] = random.integers(4, WORDS, length)
        x[index, 1, :length] = 1
    return x
