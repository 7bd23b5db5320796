"""Accuracy and cost of sentence encoders and of a layer of BERT-base, as JSON: a row of the README each.

`.venv/bin/python scripts/real_encoders.py [--only NAME ...]` compiles all-MiniLM-L6-v2 (`make .venv/.text` installs it)
and a layer with random weights, runs sentences of ../shared/data/glue/stsb_dev.tsv privately between two
processes, one after another, and 200 pairs by the interpreter, and writes bench/results/models/encoders.json:
entries by name, each with the machine, the commit and the day. Entries that are not named stay. One row again:
`.venv/bin/python scripts/real_encoders.py --only minilm-32`. Then `scripts/result_tables.py`.

Fifty sentences of 128 tokens take about ten minutes (`--sentences N` for fewer). Files go to build/encoders.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import random_encoders
from real_networks import DATA, ROOT, per_image, read, say, tacit
from tacit import _core
from tacit.data import corpus
from tacit.demo.texts import minilm
from tacit.measure.bench import commit, machine

RESULT = ROOT / "bench/results/models/encoders.json"
FOLDER = ROOT / "build/encoders"
PAIRS = 200
PHASES = ("setup", "offline", "online")


class Encoder(NamedTuple):
    """A row: `sequence` tokens; options of `compile`."""

    title: str
    sequence: int
    options: tuple[str, ...] = ()


ENCODERS = {
    "minilm-32": Encoder("all-MiniLM-L6-v2, 32 tokens", 32),
    "minilm-32-public": Encoder("the same, public embedding", 32, ("--public-embedding",)),
    "minilm-128": Encoder("all-MiniLM-L6-v2, 128 tokens", 128),
}
LAYERS = {"bert-base-128": Encoder("a layer of BERT-base, 128 tokens, random weights", 128, ("--weight-bits", "8"))}


def sentences(data: Path, count: int, folder: Path) -> Path:
    """The first distinct sentences of STS-B's development set, a line each."""
    path = folder / "sentences.txt"
    texts = dict.fromkeys(corpus.load(data / "glue" / "stsb_dev.tsv").texts)
    path.write_text("\n".join(list(texts)[:count]) + "\n", encoding="utf-8")
    return path


def encoder(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Cosines with the float model of private embeddings, rank correlations of the integers', and the cost."""
    row, compiled, model = ENCODERS[name], arguments.folder / f"{name}.tacit", minilm()
    tacit("compile", model, "-o", compiled, "--sequence", row.sequence, *row.options)
    texts = sentences(arguments.data, arguments.sentences, arguments.folder)
    private = tacit("evaluate", compiled, texts, "--mode", "private", "--model", model)
    pairs = arguments.data / "glue" / "stsb_dev.tsv"
    clear = tacit("evaluate", compiled, pairs, "--limit", PAIRS, "--model", model)
    return {
        "cosine": {"sentences": private["inputs"], "min": private["cosine_min"], "mean": private["cosine_mean"]},
        "spearman": {"pairs": clear["pairs"], "float": clear["float_spearman"], "integers": clear["spearman"]},
        "private": cost(private),
    }


def layer(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The cost of one layer; calibrated with hidden states like those it is run on."""
    row, model = LAYERS[name], arguments.folder / f"{name}.onnx"
    onnx.save(random_encoders.layer(name.removesuffix(f"-{row.sequence}"), row.sequence), model)
    hidden = random_encoders.SHAPES[name.removesuffix(f"-{row.sequence}")][0]
    states = np.random.default_rng(5).standard_normal((17, hidden, row.sequence)).astype(np.float32)
    np.savez(model.with_suffix(".npz"), x=states[1:])
    np.save(model.with_suffix(".npy"), states[:1])
    compiled = model.with_suffix(".tacit")
    tacit("compile", model, "-o", compiled, "--calibrate", model.with_suffix(".npz"), *row.options)
    return {"private": cost(tacit("run", compiled, model.with_suffix(".npy")))}


def cost(report: dict[str, Any]) -> dict[str, Any]:
    """Per input but for `setup`, which a session has once."""
    count = report["inputs"]
    phases = {phase: per_image(report["phases"][phase], 1 if phase == "setup" else count) for phase in PHASES}
    same = ("suite", "ot", "max_error", "peak_memory_bytes", "cpu_seconds")
    return {"inputs": count, "phases": phases, **{field: report[field] for field in same}}


def measure(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The entry of one row."""
    row = {**ENCODERS, **LAYERS}[name]
    say(f"{name}: {row.title}")
    conditions = {"machine": machine(), "version": _core.__version__, "commit": commit(), "protocol": _core.PROTOCOL}
    entry = {"title": row.title, **conditions, "date": datetime.now(UTC).date().isoformat()}
    return entry | (encoder(name, arguments) if name in ENCODERS else layer(name, arguments))


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*ENCODERS, *LAYERS]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help="some of " + ", ".join(names))
    parser.add_argument("--sentences", type=int, default=50, metavar="N", help="private sentences (default: 50)")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    parser.add_argument("--data", type=Path, default=DATA, help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for compiled models (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.sentences < 1:
        parser.error("--sentences must be at least 1")
    return arguments


def main() -> None:
    """Entry point."""
    arguments = parsed()
    names = [*ENCODERS, *LAYERS]
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or names:
        entries = {**read(arguments.output), name: measure(name, arguments)}
        ordered = {known: entries[known] for known in names if known in entries}
        arguments.output.write_text(json.dumps(ordered, indent=1) + "\n")
        say(f"{name}: written to {arguments.output}")


if __name__ == "__main__":
    main()
