"""From a float model to a .tacit file: import, calibrate, compile."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit import _core
from tacit.compile import metadata
from tacit.compile.quantize import calibrate
from tacit.compile.reading import Reading, describe, of_text
from tacit.compile.room import with_room
from tacit.data.examples import merged
from tacit.data.preprocess import Preprocessing, parse
from tacit.data.text import ENDING, ENTRY, Text, write
from tacit.errors import MisuseError
from tacit.importers.onnx import import_onnx
from tacit.importers.quantised import import_quantised, is_quantised
from tacit.importers.source import WHOLE, Selection, Source
from tacit.session.lola_files import write_plan

Rounding = Literal["stochastic", "exact"]
Nonlinear = Literal["ot", "gc"]
Packing = Literal["dense", "convolution", "sparse"]
ACTIVATION_BITS = 8
WEIGHT_BITS = 8
# Of suite lola, where nothing is rescaled and every bit of the input is squared with every activation.
EXACT_ACTIVATION_BITS = 3
EXACT_WEIGHT_BITS = 5
# Of suite ufo, where every bit of a weight is a transfer; the first and the last layer have 8.
TRANSFERS_ACTIVATION_BITS = 6
TRANSFERS_WEIGHT_BITS = 4


def silent(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Options:
    """How to quantise. Widths in bits, 8 unless given, of weights of text 10; `labels` names the classes, or is empty.

    Of suite ufo they are 4 for weights and 6 for activations unless given, and `disabled` names passes left out.

    `clip_percentile` (above 50, below 100) cuts the tails of activation ranges; without it they
    are the smallest and the largest value. `bias_correction` takes what rounding the weights does to the
    means of outputs out of the biases. `preprocessing` is stored for those who have pixels.
    `salt_of` is a model file whose salt this one shall have: from the same network it has the same bytes then.
    `accept_leakage` allows a suite that leaks more than the result. `reading` is for models of text.
    `result` names the output of an ONNX file, or a tensor inside it, that is computed; without it the importer
    chooses, and `say` gets what it chose, in words for people. `input_shapes` are pairs of an input's name (or nothing,
    where there is one) and its shape, the batch first, for sizes that the file leaves open.
    `layer_bits`, widths of the weights layer by layer, are of suites ufo and lola. The rest is of suite lola, where
    nothing is rescaled and widths are 3 and 5 bits unless given: bits that outputs get beyond what calibration
    saw, and how the client packs its input (the cheapest way unless given).
    """

    suite: str = "auto"
    weight_bits: int | None = None
    activation_bits: int | None = None
    rounding: Rounding = "stochastic"
    labels: tuple[str, ...] = ()
    clip_percentile: float | None = None
    preprocessing: Preprocessing | None = None
    bias_correction: bool = True
    nonlinear: Nonlinear = "ot"
    accept_leakage: bool = False
    reading: Reading | None = None
    layer_bits: tuple[int, ...] = ()
    margin_bits: int = 2
    packing: Packing | None = None
    disabled: tuple[str, ...] = ()
    salt_of: Path | None = None
    result: str | None = None
    input_shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    say: Callable[[str], None] = silent

    @property
    def selection(self) -> Selection:
        """The part of the model that is compiled."""
        return Selection(self.result, self.input_shapes)

    def to_json(self) -> str:
        """Options as `_core.compile` reads them; a width must be there."""
        names = ("suite", "nonlinear", "weight_bits", "activation_bits", "rounding", "labels")
        exact = ("layer_bits", "margin_bits", "packing", "disabled")
        return json.dumps({name: getattr(self, name) for name in (*names, *exact)})

    def noted(self, calibrated: bool) -> dict[str, Any]:
        """Options that made the model what it is, as the file keeps them; those that do not apply are left out."""
        names = ["suite", "weight_bits", "activation_bits", "rounding", "nonlinear", "clip_percentile", "layer_bits"]
        names += ["result", "input_shapes"]
        names += ["margin_bits", "packing"] if self.suite == "lola" else []
        chosen = {name: getattr(self, name) for name in (*names, "disabled")}
        noted = {name: value for name, value in chosen.items() if value not in (None, ())}
        if self.reading is not None and self.reading.sequence is not None:
            noted |= {"sequence": self.reading.sequence, "public_embedding": self.reading.public_embedding}
        return {**noted, "calibrated": calibrated, "bias_correction": calibrated and self.bias_correction}

    def entries(self, source: Path, text: Text | None, calibrated: bool) -> dict[str, str]:
        """What the file keeps beside the graph: where the model comes from, and how its inputs are made."""
        made = {} if self.preprocessing is None else {metadata.PREPROCESS: self.preprocessing.to_json()}
        made |= {} if text is None else {ENTRY: text.to_json()}
        made |= {} if self.salt_of is None else {metadata.SALT: metadata.salt(self.salt_of)}
        return {**metadata.origin(source, self.noted(calibrated)), **made}


def compile_model(
    source: Path,
    output: Path,
    x: NDArray[np.float32] | None = None,
    input_range: tuple[float, float] | None = None,
    options: Options | None = None,
) -> dict[str, Any]:
    """Compile an ONNX file, or a directory of Hugging Face, into `output` and return the summary of its layers.

    A directory of a network that was trained with few bits is compiled as it is, for suite ufo.
    `x` (N, *shape) calibrates the activations; without it, random inputs in `input_range` do, and no
    bias is corrected. A model of text needs `options.reading`, and its texts calibrate it unless `x` does;
    what clients need is written beside `output`, with the ending .text.
    Raises `UnsupportedError` naming the node for a model or suite this version cannot run.
    """
    options = options or Options()
    _core.check_suite(options.suite, options.accept_leakage)
    check_passes(options)
    if is_quantised(source):
        if options.selection != WHOLE:
            raise MisuseError(
                f"{source} was trained with few bits and has one result: leave --result and --input-shape out"
            )
        return compile_quantised(source, output, options)
    reading, text = options.reading or Reading(), None
    graph = import_onnx(source, reading.sequence, reading.public_embedding, options.selection)
    for note in graph.notes:
        options.say(note)
    if options.reading is not None or graph.reads_tokens:
        text = describe(source, graph, reading)
        options, x, input_range = of_text(options, graph, text, x)
    x = None if x is None else merged(x, graph.input_shape)
    if x is not None and x.shape[1:] != graph.input_shape:
        wanted = ["N", *graph.input_shape]
        raise MisuseError(f"calibration inputs have shape {list(x.shape)}; the model takes {wanted}")
    check_channels(graph.input_shape, options.preprocessing)
    seen = calibrate(source, graph, x, input_range, options.clip_percentile)
    means = seen.means if options.bias_correction else {}
    exact = options.suite == "lola"
    options = with_widths(options)
    entries = options.entries(source, text, x is not None)

    def make(graph: Source, ranges: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
        written = options.to_json(), str(output), entries
        made: dict[str, Any] = json.loads(
            _core.compile(graph.to_json(), dict(graph.weights), dict(ranges), means, *written)
        )
        return made

    summary = with_room(graph, seen.ranges, make, options.say)
    if exact:
        summary["plan"] = str(write_plan(output))
    if text is not None:
        write(output.with_suffix(ENDING), text)
        summary["text"] = str(output.with_suffix(ENDING))
    return summary


def compile_quantised(folder: Path, output: Path, options: Options) -> dict[str, Any]:
    """Compile a network that was trained with few bits; its own bits, labels and preprocessing are the defaults."""
    network = import_quantised(folder)
    source = network.source
    options = replace(
        options,
        activation_bits=options.activation_bits or network.activation_bits,
        weight_bits=options.weight_bits or WEIGHT_BITS,
        labels=options.labels or network.labels,
        preprocessing=options.preprocessing or (None if network.preprocess is None else parse(network.preprocess)),
    )
    check_channels(source.input_shape, options.preprocessing)
    entries = options.entries(folder, None, False)
    summary: dict[str, Any] = json.loads(
        _core.compile(
            source.to_json(), dict(source.weights), network.ranges, {}, options.to_json(), str(output), entries
        )
    )
    return summary


def with_widths(options: Options) -> Options:
    """Fill in the suite's own widths where none are given."""
    widths = {
        "lola": (EXACT_ACTIVATION_BITS, EXACT_WEIGHT_BITS),
        "ufo": (TRANSFERS_ACTIVATION_BITS, TRANSFERS_WEIGHT_BITS),
    }
    activations, weights = widths.get(options.suite, (ACTIVATION_BITS, WEIGHT_BITS))
    return replace(
        options,
        activation_bits=options.activation_bits or activations,
        weight_bits=options.weight_bits or weights,
    )


def check_passes(options: Options) -> None:
    """Raise `MisuseError` for a pass that the suite does not have."""
    if options.disabled and options.suite != "ufo":
        raise MisuseError(f"--disable-pass is for suite ufo; suite {options.suite} has no such passes")


def check_channels(shape: tuple[int, ...], preprocessing: Preprocessing | None) -> None:
    """Raise `MisuseError` when what the preprocessing makes cannot be an input of the model's `shape`."""
    if preprocessing is None:
        return
    side = preprocessing.crop
    if (
        len(shape) != 3
        or shape[0] != preprocessing.channels
        or side not in (None, shape[1])
        or side not in (None, shape[2])
    ):
        made = [preprocessing.channels, side or "height", side or "width"]
        raise MisuseError(f"the preprocessing makes images {made}; the model takes {list(shape)}")
