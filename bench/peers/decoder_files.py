"""The files of a language model that both run: one compiled for Tacit, and a step for the peer."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from ours import tacit
from tacit.compiler.prompts import prompting
from tacit.compiler.reading import Reading
from tacit.errors import MisuseError
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.floats import Floats, Kept
from tacit.importers.architectures.graph import Weights
from tacit.importers.architectures.llama_floats import sizes, turns
from tacit.importers.architectures.rotation import FACTORS, HEAD, PLACES, WORDS
from tacit.importers.gguf.directory import as_directory
from tacit.model import Model

Ids = list[int]
TEXT = (
    "A lighthouse stands at the end of the long stone pier, and every evening its keeper climbs two hundred steps to "
    "light the lamp. In winter the wind is so strong that he ties a rope around his waist before he opens the last "
    "door. Ships from many countries pass the cape at night, carrying grain, timber and machines, and their captains "
    "look for the white flash that comes once in ten seconds. When fog hides the coast, a horn sounds instead, three "
    "times a minute, and the gulls leave the rocks. The keeper writes down each ship that he sees, its flag and its "
    "course, and in spring he sends the book to the harbour, where a clerk copies the lines into a register that "
    "nobody has read for thirty years. Last summer a young woman came by bicycle to ask whether she might do so."
)
"""The text that both read. It was written for this comparison, and no model is calibrated by it."""
ROLES = {
    **{role: f"self_attn.{role}_proj" for role in "qkvo"},
    **{role: f"mlp.{role}_proj" for role in ("gate", "up", "down")},
}


class Files(NamedTuple):
    """What a comparison of tokens needs.

    `compiled` is for Tacit and `exported` for the peer. `steps` (N, rows, 1) are the first tokens of the text as inputs
    of `compiled`, and `labels` (N,) what the float model writes behind each of them. `expected` is what it writes
    behind the token that the peer reads.
    """

    compiled: Path
    exported: Path
    steps: NDArray[np.float32]
    labels: NDArray[np.int64]
    expected: int


def build(path: Path, context: int, tokens: int, folder: Path) -> Files:
    """Compile the model of `path` for `context` tokens, and store the step of the last of so many for the peer.

    `tokens` are read by Tacit.
    """
    folder.mkdir(parents=True, exist_ok=True)
    compiled, exported = folder / "model.tacit", folder / "exported.npz"
    tacit("compile", path, "-o", compiled, "--context", context)
    text = Model(compiled).text
    if text is None or text.decoding is None:
        raise MisuseError(f"{path} writes no text")
    ids = text.plain.encode(TEXT, add_special_tokens=False).ids
    with as_directory(path) as directory:
        around = Reading(prefix=text.decoding.before, suffix=text.decoding.after)
        floats = Floats.of(directory, prompting(directory, around).tokens)
        last = context - floats.beginning - 1
        if not 0 < tokens <= last < len(ids):
            raise MisuseError(f"a context of {context} tokens is too short or too long for this comparison")
        kept = floats.begun()
        labels = floats.logits(ids[:last], kept).argmax(axis=-1)
        export(exported, floats.config, floats.weights, ids[last], kept)
        expected = int(floats.logits(ids[last : last + 1], kept)[-1].argmax())
    steps = text.inputs(text.decoding.inputs(ids[:tokens], text.sequence, text.pad))
    return Files(compiled, exported, steps, labels[:tokens], expected)


def export(path: Path, config: Config, weights: Weights, token: int, kept: Kept) -> None:
    """Write a step: of `token`, behind tokens whose keys and values are `kept`.

    Weights (given, made) are those of states that are turned, whose norms have no factors.
    """
    other = PLACES in weights or any(name.endswith("_proj.bias") for name in weights)
    if other or any(np.any(weights[name] != 1) for name in weights if name.endswith(FACTORS)):
        raise MisuseError("the peer's step is that of Llama: rotary positions, no biases, norms without factors")
    layers, of = config.whole("num_hidden_layers"), sizes(config)
    place = kept["0.key"].shape[1]
    cosine, sine = turns(config, [place])
    facts = {"layers": layers, **of._asdict(), "epsilon": config.real("rms_norm_eps", 1e-6)}
    # Keys and values are kept once for each head that reads them.
    shared = {f"kept.{name}": one[:: of.heads // of.groups] for name, one in kept.items()}
    entries: dict[str, Any] = {**shared, "w.head": weights[HEAD].T, "x": weights[WORDS][[token]]}
    for at in range(layers):
        entries |= {f"w.{at}.{role}": weights[f"layers.{at}.{name}.weight"].T for role, name in ROLES.items()}
    np.savez(path, facts=np.array(json.dumps(facts)), cosine=cosine, sine=sine, **entries)
