"""What a private token of a language model costs and how well it is written, as JSON: a row of docs/results.md each.

`.venv/bin/python scripts/language_models.py [--only NAME ...]` measures SmolLM2-135M-Instruct (`make
build/smollm2.tacit` downloads and compiles it) over loopback, `lan` and `wan`, prompts in passes, and models with
random weights of the shapes of GPT-2-small and Llama-1B, each between two processes, and writes
bench/results/models/language-models.json: entries by name, each with the machine, the commit and the day. Entries that
are not named stay. The rows `answers` and `prose` compare the integers with the float model in the clear. Files go to
build/language-models. Then `scripts/result_tables.py`.
"""

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import result_age
from real_networks import DATA, ROOT, read, say, tacit
from tacit import _core
from tacit.demo.texts import smollm2
from tacit.measure.bench import commit, machine
from tacit_lab import random_decoders

RESULT = ROOT / "bench/results/models/language-models.json"
FOLDER = ROOT / "build/language-models"
SMOLLM2 = ROOT / "build/smollm2.tacit"
PROMPTS = ROOT / "bench/texts/prompts.txt"
CONTEXT = 128
PROSE_TEXTS = 40
"""Texts of RTE's development set; over 2,000 tokens."""
ANSWER_TOKENS = 60
"""An answer has so many tokens at most, and the answers to all prompts have over 1,000 together."""
Run = Callable[[argparse.Namespace], dict[str, Any]]


class Row(NamedTuple):
    """What it measures, and how."""

    title: str
    run: Run


def tokens(*options: object) -> Run:
    """Tokens of SmolLM2 with options of `tacit bench decoder`."""
    return lambda arguments: bench(arguments.smollm2, *options)


def bench(model: Path, *options: object) -> dict[str, Any]:
    """Tokens of one compiled model, on one thread."""
    return {"cost": tacit("bench", "decoder", model, "--context", CONTEXT, "--threads", 1, "--timeout", 600, *options)}


def shaped(shape: str, layers: int | None = None) -> Run:
    """Tokens of a model with random weights, of the first `layers` of a shape or of all."""

    def run(arguments: argparse.Namespace) -> dict[str, Any]:
        of = random_decoders.SHAPES[shape]
        name = shape if layers is None else f"{shape}-{layers}"
        folder, compiled = arguments.folder / name, arguments.folder / f"{name}.tacit"
        random_decoders.write(of if layers is None else of._replace(layers=layers), folder)
        tacit("compile", folder, "-o", compiled, "--context", CONTEXT)
        return bench(compiled, "--tokens", 8)

    return run


def answers(arguments: argparse.Namespace) -> dict[str, Any]:
    """How often the integers write what the float model writes, of its own answers to twenty prompts."""
    return quality(arguments, PROMPTS, "--answers", ANSWER_TOKENS)


def prose(arguments: argparse.Namespace) -> dict[str, Any]:
    """How well the integers foretell a text."""
    path = arguments.folder / "prose.txt"
    lines = (arguments.data / "glue/rte_dev.tsv").read_text(encoding="utf-8").splitlines()
    text = lines[0].split("\t").index("sentence1")
    texts = dict.fromkeys(line.split("\t")[text] for line in lines[1:])
    path.write_text("\n".join(list(texts)[:PROSE_TEXTS]) + "\n", encoding="utf-8")
    return quality(arguments, path)


def quality(arguments: argparse.Namespace, texts: Path, *options: object) -> dict[str, Any]:
    """What `tacit evaluate` says of texts beside the float model."""
    return {"quality": tacit("evaluate", arguments.smollm2, texts, "--model", smollm2(), *options)}


ROWS = {
    "loopback": Row("SmolLM2-135M", tokens("--tokens", 32)),
    "lan": Row("SmolLM2-135M", tokens("--tokens", 8, "--network", "lan")),
    "wan": Row("SmolLM2-135M", tokens("--tokens", 2, "--network", "wan")),
    "passes": Row("SmolLM2-135M, prompts 16 tokens at a time", tokens("--tokens", 8, "--pass", 16)),
    "gpt2-small": Row("shape of GPT-2-small, random weights", shaped("gpt2-small")),
    "llama-1b-1": Row("shape of Llama-1B, the first of 16 layers, random weights", shaped("llama-1b", 1)),
    "llama-1b-2": Row("shape of Llama-1B, the first two layers, random weights", shaped("llama-1b", 2)),
    "answers": Row("answers to 20 prompts", answers),
    "prose": Row("40 texts of RTE", prose),
}


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=ROWS, help="some of " + ", ".join(ROWS))
    parser.add_argument("--smollm2", type=Path, default=SMOLLM2, help="the compiled model (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    parser.add_argument("--data", type=Path, default=DATA, help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for compiled models (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Entry point."""
    arguments = parsed()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or ROWS:
        row = ROWS[name]
        say(f"{name}: {row.title}")
        conditions = {"machine": machine(), "version": _core.__version__, "commit": commit()}
        conditions |= {
            "kind": result_age.LANGUAGE_MODELS,
            "protocol": _core.PROTOCOL,
            "date": datetime.now(UTC).date().isoformat(),
        }
        entries = {**read(arguments.output), name: {"title": row.title, **conditions, **row.run(arguments)}}
        ordered = {known: entries[known] for known in ROWS if known in entries}
        arguments.output.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
        say(f"{name}: written to {arguments.output}")


if __name__ == "__main__":
    main()
