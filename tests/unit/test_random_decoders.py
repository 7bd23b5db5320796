"""Language models with random weights: their directories compile, and what measures them says what it measured."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import result_age
import result_tables
from numpy.typing import NDArray
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.prompts import prompting
from tacit.compiler.reading import Reading
from tacit.importers.architectures.floats import Floats
from tacit.model import Model
from tacit_lab.random_decoders import SHAPES, Shape, config, gpt2, llama, write

SMALL = {"llama": Shape(32, 64, 2, 4, 2, 300), "gpt2": Shape(32, 128, 2, 4, None, 300)}
PARAMETERS = {"gpt2-small": 124_439_808, "smollm2-135m": 134_515_008, "llama-1b": 1_235_814_400}
"""The published models have so many weights."""


@pytest.mark.parametrize("family", SMALL)
def test_directories_compile_and_keep_states_of_one_size(tmp_path: Path, family: str) -> None:
    folder = write(SMALL[family], tmp_path / family)
    floats = Floats.of(folder, prompting(folder, Reading()).tokens)
    numbers = floats.logits([3, 1, 4, 1, 5], floats.begun())
    assert numbers.shape == (5, 300)
    assert 1 < np.abs(numbers).mean() < 20
    compile_model(folder, tmp_path / "x.tacit", options=Options(reading=Reading(context=8)))
    text = Model(tmp_path / "x.tacit").text
    assert text is not None
    assert text.decoding is not None
    assert text.decoding.steps is not None
    assert text.decoding.steps.context == 8


@pytest.mark.parametrize("name", PARAMETERS)
def test_shapes_have_as_many_weights_as_the_originals(name: str) -> None:
    shape = SHAPES[name]
    # A large model would fill the memory, so models of one and two layers say how many weights each layer adds.
    one, two = (size(shape._replace(layers=layers, words=8)) for layers in (1, 2))
    assert one + (two - one) * (shape.layers - 1) + (shape.words - 8) * shape.hidden == PARAMETERS[name]
    assert config(shape)["vocab_size"] == shape.words


def size(shape: Shape) -> int:
    """How many weights a model of this shape has; none of them is drawn."""

    def zeros(*sizes: int, deviation: float) -> NDArray[np.float32]:
        assert deviation > 0
        return np.broadcast_to(np.float32(0), sizes)

    return sum(value.size for _, value in (llama if shape.gated else gpt2)(shape, zeros))


def test_the_command_writes_a_directory_and_refuses_more_layers_than_there_are(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tacit_lab.random_decoders", "smollm2-135m", "-o", str(tmp_path / "d"), "--layers"]
    refused = subprocess.run([*command, "31"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "must be 1 to 30" in refused.stderr
    assert not (tmp_path / "d").exists()


def test_language_models_have_two_tables() -> None:
    seen = {
        "machine": {"processor": "P", "cores": 2},
        "commit": "0" * 40,
        "protocol": result_age.spoken(),
    }
    each = {"bytes": 5e6, "rounds": 20.0, "seconds": 1.5}
    cost = {
        "network": None,
        "per_token": each,
        "per_prompt_token": each,
        "planned": {"mean_per_token": {"bytes": 8e6, "rounds": 21.0}},
        "peak_memory_bytes": {"client": 3e8, "server": 2e9},
    }
    quality = {"positions": 7, "agreement": 0.975, "stochastic_agreement": 0.95}
    quality |= {"perplexity": 2.5, "stochastic_perplexity": 2.6, "float_perplexity": 2.4}
    entries = {
        "one": {"title": "A model", **seen, "cost": cost},
        "passes": {"title": "Passes", **seen, "cost": {**cost, "network": "wan", "per_pass": each}},
        "prose": {"title": "A text", **seen, "quality": quality},
    }
    lines = result_tables.writers_block(entries)
    assert "| A model | loopback | 8 | 21 | 5 | 20 | 1.5 | 5 | 1.5 | - | 300 / 2000 |" in lines
    assert "| Passes | wan | 8 | 21 | 5 | 20 | 1.5 | 5 | 1.5 | 5, 20, 1.5 | 300 / 2000 |" in lines
    assert "| A text | 7 | 97.50 % | 95.00 % | 2.500 | 2.600 | 2.400 |" in lines
