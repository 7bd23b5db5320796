"""One model of the zoo: made, compiled, compared with its float model, and perhaps run."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.compiler.reading import Reading
from tacit.errors import TacitError, UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.model import Model
from tacit.session.pair import Pair

from tacit_lab.zoo.entry import Entry, Labels, largest

COUNTS = ((8_192, 256, 256), (50_000, 140, 100))
"""Most elements of an input, the inputs that calibrate then, and those that are compared."""
LARGE_COUNTS = 24, 8
"""The inputs that calibrate, and those that are compared, where inputs have more elements."""
WORDS, FIRST_WORD = 120, 3
WIDTHS = (8, 10, 12)
"""Bits of weights and activations that are tried one after another; where one is refused, one bit less is."""
PRIVATE_INPUTS = 2
NEAR = 0.05
"""The relative error at which no wider ones are tried."""
AGREE = 0.99
"""The share of labels of real inputs that must be the same besides."""
Array = NDArray[np.float32]
Floats = NDArray[np.float64]


def measure(entry: Entry, folder: Path) -> dict[str, Any]:
    """A row of the table; `error` says why there are no numbers."""
    path = folder / f"{entry.name}.onnx"
    row: dict[str, Any] = {
        "name": entry.name,
        "family": entry.family,
        "source": entry.source,
        "licence": entry.licence,
        "weights": entry.weights,
        "command": entry.command("build/zoo"),
        "note": entry.note,
    }
    try:
        if not path.exists():
            entry.make(path)
        return row | compiled(entry, path)
    except ImportError as error:
        return row | {"skipped": f"package {error.name} is missing (make models installs it)"}
    except TacitError as error:
        return row | {"error": str(error)}


def compiled(entry: Entry, path: Path) -> dict[str, Any]:
    """Sizes, seconds, and how near the integers are to the floats, at the narrowest widths that are near enough."""
    options = options_of(entry, path.parent)
    sequence = entry.sequence or None
    graph = import_onnx(path, sequence, selection=options.selection)
    given, compared = inputs(entry, path, graph.example_shape)
    floats = FloatModel(path, (), sequence, selection=options.selection)(
        compared.reshape(-1, *graph.input_shape)
    ).astype(np.float64)
    row: dict[str, Any] = {}
    reason = ""
    for bits in WIDTHS:
        found = tried(entry, path, options, bits, (given, compared, floats))
        reason = reason or found.get("error", "")
        if "error" not in found and (not row or found["relative_rmse"] < row["relative_rmse"]):
            row = found
            keep(path)
        if row and (near(row) or found.get("bits") != bits):
            break
    if not row:
        raise UnsupportedError(reason)
    return row | (private(path, given, compared[:PRIVATE_INPUTS], options, row["bits"]) if entry.private else {})


def near(row: dict[str, Any]) -> bool:
    """Whether no wider integers are tried: the error is small, and labels of real inputs agree."""
    agreed = [share for share in (row["agreement"], row["stochastic_agreement"]) if share is not None and row["real"]]
    return bool(row["relative_rmse"] <= NEAR and min(agreed, default=1.0) >= AGREE)


def tried(entry: Entry, path: Path, options: Options, bits: int, data: tuple[Array, Array, Floats]) -> dict[str, Any]:
    """The row at a width of `bits` or of one bit less, whichever is compiled; `error` says why none is."""
    reason = ""
    for narrower in (bits, bits - 1):
        try:
            return at_widths(entry, path, replace(options, activation_bits=narrower, weight_bits=narrower), data)
        except UnsupportedError as error:
            reason = reason or str(error)
    return {"error": reason}


def keep(path: Path) -> None:
    """Let the model that was compiled last be the one beside its source."""
    path.with_suffix(".next.tacit").replace(path.with_suffix(".tacit"))


def options_of(entry: Entry, folder: Path) -> Options:
    """How the model is compiled, its widths apart."""
    shapes = (("" if entry.state is None else "input", entry.input_shape),) if entry.input_shape else ()
    reading = Reading(entry.sequence, tokenizer(folder)) if entry.sequence else None
    values = () if entry.input_value is None else (entry.input_value,)
    states = () if entry.state is None else (entry.state,)
    return Options(reading=reading, input_shapes=shapes, input_values=values, states=states)


def at_widths(entry: Entry, path: Path, options: Options, data: tuple[Array, Array, Floats]) -> dict[str, Any]:
    """The row of the model with the widths of `options`; `keep` lets the file of that model stay."""
    given, compared, floats = data
    start = time.perf_counter()
    written = path.with_suffix(".next.tacit")
    compile_model(path, written, given, options=options)
    seconds = time.perf_counter() - start
    model = Model(written)
    exact, chance = (model.real(model.simulate(compared, seed=seed)) for seed in (None, 0))
    shape, plan = model.output_shape, model.plan()
    return {
        "bits": options.activation_bits,
        "relative_rmse": relative(exact, floats),
        "stochastic_relative_rmse": relative(chance, floats),
        "agreement": agreement(exact, floats, shape, entry.labels),
        "stochastic_agreement": agreement(chance, floats, shape, entry.labels),
        "inputs": len(compared),
        "real": path.with_suffix(".real.npy").exists(),
        "bytes": sum(plan["bytes"].values()),
        "rounds": plan["rounds"],
        "predicted_seconds": plan["seconds"],
        "compile_seconds": seconds,
    }


def relative(found: Floats, floats: Floats) -> float:
    """Root of the mean square of differences, over the deviation of the float results."""
    return float(np.sqrt(((found - floats) ** 2).mean()) / max(floats.std(), 1e-12))


def agreement(found: Floats, floats: Floats, shape: tuple[int, ...], labels: Labels | None) -> float | None:
    """Share of labels that are the same; None where results have no labels."""
    if labels is None or (floats.shape[1] == 1 and labels is largest):
        return None
    return float((labels(found.reshape(-1, *shape)) == labels(floats.reshape(-1, *shape))).mean())


def private(path: Path, given: Array, x: Array, options: Options, bits: int | None) -> dict[str, Any]:
    """Sessions between two processes over loopback, of the model and of the same with exact rounding.

    `equal_outputs` of the latter counts results that are those of the interpreter, bit for bit.
    """
    exact = path.with_suffix(".exact.tacit")
    compile_model(
        path, exact, given, options=replace(options, activation_bits=bits, weight_bits=bits, rounding="exact")
    )
    row: dict[str, Any] = {}
    for name, file in (("private", path.with_suffix(".tacit")), ("exact", exact)):
        report = Pair(Model(file), threads=1).run(x, None).report
        row[name] = {field: report[field] for field in ("inputs", "seconds", "bytes", "rounds", "equal_outputs")}
    exact.unlink()
    return row


def inputs(entry: Entry, path: Path, shape: tuple[int, ...]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Inputs that calibrate, which are left beside the model, and others to compare: real ones where there are any.

    Those of a stream stay in order. Of few real ones two thirds calibrate.
    """
    examples = path.with_suffix(".npz")
    random = np.random.default_rng(0)
    counts = next((counts for most, *counts in COUNTS if np.prod(shape) <= most), LARGE_COUNTS)
    real = path.with_suffix(".real.npy")
    if real.exists():
        x = np.load(real)
        if entry.state or len(x) < sum(counts):
            counts = (len(x) * 2 // 3, len(x) - len(x) * 2 // 3)
        x = x if entry.state else x[random.permutation(len(x))[: sum(counts)]]
    elif entry.sequence:
        x = tokens(random, sum(counts), entry.sequence)
    else:
        x = random.standard_normal((sum(counts), *shape)).astype(np.float32)
    np.savez(examples, x=x[: counts[0]])
    return x[: counts[0]], x[counts[0] :]


def tokens(random: np.random.Generator, count: int, sequence: int) -> NDArray[np.float32]:
    """Random texts of various lengths above their masks."""
    x = np.zeros((count, 2, sequence), np.float32)
    for example in x:
        length = int(random.integers(sequence // 2, sequence + 1))
        example[0, :length] = random.integers(FIRST_WORD, WORDS, length)
        example[1, :length] = 1
    return x


def tokenizer(folder: Path) -> Path:
    """A tokenizer of as many words as the models of text know."""
    path = folder / "tokenizer.json"
    special = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}
    vocabulary = special | {f"w{index}": index for index in range(FIRST_WORD, WORDS)}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    content: dict[str, Any] = {
        "version": "1.0",
        **empty,
        "added_tokens": [],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": model,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
