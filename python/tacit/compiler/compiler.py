"""From a float model to a .tacit file: import, calibrate, compile."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit import _core
from tacit.compiler import metadata
from tacit.compiler.clipping import MINMAX, Clip, percentile
from tacit.compiler.clipping import parse as parse_clip
from tacit.compiler.doubt import looked_at, say_far
from tacit.compiler.equalise import WORTH, Widths, equalised
from tacit.compiler.parts import one_array, units
from tacit.compiler.penalties import soften
from tacit.compiler.prompts import decodes, prompting
from tacit.compiler.quantize import Calibration, Tensors, batches_of, calibrate, statistics
from tacit.compiler.reading import Reading, describe, margin, of_text
from tacit.compiler.refusals import advised, check_channels, check_passes, refuse_nothing
from tacit.compiler.room import with_room
from tacit.compiler.rounding import rounded
from tacit.compiler.small import tabulated
from tacit.compiler.trees import are_trees, compile_trees
from tacit.compiler.wider import Wider
from tacit.data.preprocess import Preprocessing, parse
from tacit.data.schema import Schema
from tacit.data.text import ENDING, ENTRY, Text, write
from tacit.errors import MisuseError
from tacit.importers.gguf import as_directory, is_gguf
from tacit.importers.huggingface import states_of
from tacit.importers.onnx import import_onnx
from tacit.importers.quantised import import_quantised, is_quantised
from tacit.importers.source import WHOLE, Selection, Source, Unit
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
# Of models with states, in which errors add up from input to input.
STATE_ACTIVATION_BITS = 9
STATE_WEIGHT_BITS = 10
WIDENED = "auto"
"""The suite whose models take more bits where they need them; others stay as they are compared."""


def silent(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Options:
    """How to quantise. Widths in bits, 8 unless given, of weights of text 10, of models with states 9 and 10.

    Where both widths are left open, suite auto takes 10 or 12 bits if results of 8 are far from the float model's.

    `labels` names the classes, or is empty.

    Of suite ufo they are 4 for weights and 6 for activations unless given, and `disabled` names passes left out.

    `clip` says where ranges of activations end: at the smallest and the largest value unless given
    (`minmax`, `percentile:P`, `mse` or `kl`); `clip_percentile` P is another way to say `percentile:P`. `equalise`
    moves factors of channels from layer to layer where less noise is expected (`on`), or much less (`auto`), and
    `target_agreement` is what widths were searched for (`tacit.compile.target`). With `weight_rounding` `fed-back`
    weights are rounded with the inputs in view. `bias_correction` takes what
    rounding the weights does to the means of outputs out of the biases. `preprocessing` is stored for those who have
    pixels.
    `salt_of` is a model file whose salt this one shall have: from the same network it has the same bytes then.
    `accept_leakage` allows a suite that leaks more than the result. `reading` is for models of text.
    `result` names the output of an ONNX file, or a tensor inside it, that is computed; without it the importer
    chooses, and `say` gets what it chose, in words for people. `input_shapes` are pairs of an input's name (or nothing,
    where there is one) and its shape, the batch first, for sizes that the file leaves open. `input_values` are pairs of
    the name of an input that is a single number, the same for everybody, and that number.
    Several results have commas between. `states` are pairs of an input and an output: what the output is after one
    input of a session, the input is before the next, as shares that nobody opens. `units` are how large 1 is of each
    of several inputs or results, by name, or of each value of an input; unless given they follow from the calibration.
    `beginning` are tokens that a decoder has read before those of each input, and `context` is how many earlier
    positions its states have, 0 for none; both follow from `reading`.
    `schema` says how rows of a table become inputs, and what results mean.
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
    clip: str = "minmax"
    equalise: Literal["auto", "on", "off"] = "auto"
    target_agreement: float | None = None
    weight_rounding: Literal["nearest", "fed-back"] = "nearest"
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
    input_values: tuple[tuple[str, float], ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    units: tuple[tuple[str, Unit], ...] = ()
    beginning: tuple[int, ...] = ()
    context: int = 0
    schema: Schema | None = None
    say: Callable[[str], None] = silent

    @property
    def selection(self) -> Selection:
        """The part of the model that is compiled."""
        ends = self.result, self.input_shapes, self.input_values, self.states, self.units
        return Selection(*ends, self.beginning, self.context)

    @property
    def may_widen(self) -> bool:
        """Whether widths are nobody's choice: not the user's, that of a suite to compare, or of models with states."""
        given = self.activation_bits or self.weight_bits
        return not given and self.suite == WIDENED and not self.states

    @property
    def clipping(self) -> Clip:
        """How ranges of activations are clipped."""
        clip = replace(parse_clip(self.clip), bits=self.activation_bits or ACTIVATION_BITS)
        if self.clip_percentile is None:
            return clip
        if clip.method != "minmax":
            raise MisuseError("two ways to clip: leave --clip or --clip-percentile out")
        return percentile(self.clip_percentile)

    def to_json(self) -> str:
        """Options as `_core.compile` reads them; a width must be there."""
        names = ("suite", "nonlinear", "weight_bits", "activation_bits", "rounding", "labels")
        exact = ("layer_bits", "margin_bits", "packing", "disabled")
        return json.dumps({name: getattr(self, name) for name in (*names, *exact)})

    def noted(self, calibrated: bool) -> dict[str, Any]:
        """Options that made the model what it is, as the file keeps them; those that do not apply are left out."""
        names = ["suite", "weight_bits", "activation_bits", "rounding", "nonlinear", "clip_percentile", "layer_bits"]
        names += ["result", "input_shapes", "input_values", "states", "units", "beginning", "target_agreement"]
        names += ["context"] if self.context else []
        names += ["clip"] if self.clip != str(MINMAX) else []
        names += ["equalise"] if self.equalise != "auto" else []
        names += ["weight_rounding"] if self.weight_rounding != "nearest" else []
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
        made |= {} if self.schema is None else {metadata.SCHEMA: self.schema.to_json()}
        made |= {} if self.salt_of is None else {metadata.SALT: metadata.salt(self.salt_of)}
        return {**metadata.origin(source, self.noted(calibrated)), **made}


def compile_model(
    source: Path,
    output: Path,
    x: NDArray[np.float32] | Mapping[str, NDArray[np.float32]] | None = None,
    input_range: tuple[float, float] | None = None,
    options: Options | None = None,
) -> dict[str, Any]:
    """Compile an ONNX file, a directory of Hugging Face, or a model of a library of decision trees, into `output`.

    Gives the summary of the layers. Decision trees need no calibration.

    A directory of a network that was trained with few bits is compiled as it is, for suite ufo.
    `x` (N, *shape) calibrates the activations, of a model with several inputs one array a name; without it, random
    inputs in `input_range` do, and no bias is corrected. A model of text needs `options.reading`, and its texts
    calibrate it unless `x` does;
    what clients need is written beside `output`, with the ending .text.
    Where `options` name no widths, and results of 8 bits are far from the float model's on calibration inputs, 10 and
    12 bits are tried, and taken where they help.
    Raises `UnsupportedError` naming the node for a model or suite this version cannot run.
    """
    options = options or Options()

    def compiled(path: Path, bits: int | None) -> dict[str, Any]:
        wide = options if bits is None else replace(options, activation_bits=bits, weight_bits=bits, say=silent)
        return compile_once(source, path, x, input_range, wide)

    if is_gguf(source):
        with as_directory(source) as folder:
            return compile_model(folder, output, x, input_range, options)
    summary = compiled(output, None)
    if options.may_widen:
        summary = Wider(compiled, options.say).enough(output, ACTIVATION_BITS, summary)
    say_far(summary, options.say)
    return summary


def compile_once(
    source: Path,
    output: Path,
    x: NDArray[np.float32] | Mapping[str, NDArray[np.float32]] | None,
    input_range: tuple[float, float] | None,
    options: Options,
) -> dict[str, Any]:
    """As `compile_model`, with the widths of the options or those that are always taken without."""
    _core.check_suite(options.suite, options.accept_leakage)
    check_passes(options.suite, bool(options.disabled))
    if are_trees(source):
        return compile_trees(source, output, options)
    if is_quantised(source):
        if options.selection != WHOLE:
            raise MisuseError(
                f"{source} was trained with few bits and has one result: leave --result and --input-... out"
            )
        return compile_quantised(source, output, options)
    options = begun(source, options)
    reading, text = options.reading or Reading(), None
    graph = import_onnx(source, reading.sequence, reading.public_embedding, options.selection)
    refuse_nothing(graph)
    for note in graph.notes:
        options.say(note)
    x = one_array(graph, x)
    if not options.units and options.suite != "lola" and (several := units(source, graph, x)):
        options = replace(options, units=several)
        if any(isinstance(unit, tuple) for _, unit in several):
            options.say(f"features of `{graph.input_name}` differ much in size: each has steps of its own, in the plan")
        graph = import_onnx(source, reading.sequence, reading.public_embedding, options.selection)
    if options.reading is not None or graph.reads_tokens:
        text = describe(source, graph, reading)
        options, x, input_range = of_text(options, graph, text, x)
    x = None if x is None else x.reshape(-1, *graph.input_shape) if x.shape[1:] == graph.example_shape else x
    if x is not None and x.shape[1:] != graph.input_shape:
        wanted = ["N", *graph.example_shape]
        raise MisuseError(f"calibration inputs have shape {list(x.shape)}; the model takes {wanted}")
    check_channels(graph.input_shape, options.preprocessing)
    options = with_widths(options)
    graph = graph if x is None else evened(source, graph, x, options)
    seen = calibrate(source, graph, x, input_range, replace(options.clipping, margin=margin(text)))
    say_uncut(graph, seen, options)
    graph = tabulated(graph, seen.ranges, options.activation_bits or ACTIVATION_BITS)
    means = seen.means if options.bias_correction else {}
    exact = options.suite == "lola"
    if options.weight_rounding == "fed-back" and x is not None:
        graph = fed_back(source, graph, x, options, Calibration(seen.ranges, means))
    entries = options.entries(source, text, x is not None)
    weights, ranges = soften(graph, seen.ranges)

    def make(graph: Source, ranges: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
        written = options.to_json(), str(output), entries
        with advised():
            made = _core.compile(graph.to_json(), weights, dict(ranges), means, *written)
        content: dict[str, Any] = json.loads(made)
        return content

    summary = with_room(graph, ranges, make, options.say)
    if exact:
        summary["plan"] = str(write_plan(output))
    elif x is not None:
        summary |= looked_at(source, graph, output, x)
    if text is not None:
        write(output.with_suffix(ENDING), text)
        summary["text"] = str(output.with_suffix(ENDING))
    return summary


def begun(source: Path, options: Options) -> Options:
    """The options of a decoder with the beginning of its prompts; clients look its tokens up themselves."""
    if options.reading is None or not decodes(source):
        return options
    reading = replace(options.reading, public_embedding=True)
    options = replace(options, reading=reading, beginning=prompting(source, reading).tokens)
    context = reading.context
    if context is None:
        return options
    return replace(options, reading=replace(reading, sequence=1), context=context, states=states_of(source))


def say_uncut(graph: Source, seen: Calibration, options: Options) -> None:
    """Say which tensors leave the range that a quantised model cuts them to."""
    for name, (low, high) in seen.beyond.items():
        least, most = graph.bounds[name]
        options.say(
            f"`{name}` reaches {low:.3g} to {high:.3g}; the quantised model cuts it to {least:.3g} to {most:.3g}, "
            "and this one does not; if it left an activation out, quantise again with QDQKeepRemovableActivations"
        )


def evened(path: Path, graph: Source, x: NDArray[np.float32], options: Options) -> Source:
    """The graph with the same function and more even channels, where the options want that."""
    if options.equalise == "off" or options.suite == "lola":
        return graph
    widths = Widths(options.activation_bits or ACTIVATION_BITS, options.weight_bits or WEIGHT_BITS)
    even = equalised(graph, statistics(path, graph, x), widths, WORTH[options.equalise])
    if even.seen != graph.seen and options.equalise == "auto":
        options.say(
            "ranges of channels are very uneven: factors were moved between layers (--equalise off leaves them)"
        )
    return even


def fed_back(path: Path, graph: Source, x: NDArray[np.float32], options: Options, seen: Calibration) -> Source:
    """The graph with weights on the grid that the core chooses, rounded with the calibration inputs in view."""
    if options.suite in ("lola", "ufo"):
        raise MisuseError(f"suite {options.suite} has its own rounding of weights: leave --weight-rounding out")

    def batches(tensors: list[str]) -> Iterator[Tensors]:
        return batches_of(path, graph, x, tensors)

    with TemporaryDirectory() as folder:
        first = Path(folder) / "first.tacit"
        _core.compile(graph.to_json(), dict(graph.weights), seen.ranges, seen.means, options.to_json(), str(first), {})
        return rounded(graph, first, batches, options.weight_bits or WEIGHT_BITS, bool(seen.means))


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
    kept = (STATE_ACTIVATION_BITS, STATE_WEIGHT_BITS)
    default = kept if options.states else (ACTIVATION_BITS, WEIGHT_BITS)
    activations, weights = widths.get(options.suite, default)
    return replace(
        options,
        activation_bits=options.activation_bits or activations,
        weight_bits=options.weight_bits or weights,
    )
