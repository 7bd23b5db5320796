"""The cheapest widths with which a compiled model agrees with its float model as often as someone asks for.

A third of the calibration inputs is held out. Each candidate is compiled from the others and its integers are compared
with the float model on those held out. More bits agree more often and cost more bytes, so that each width is found by
bisection: first that of activations, with the widest weights, then that of weights.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.compiler.parts import one_array
from tacit.compiler.quantize import length
from tacit.compiler.reading import Reading, describe, of_text
from tacit.data.text import ENDING
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.importers.quantised import is_quantised
from tacit.measure.quality import Metric, chosen, compared
from tacit.model import Model

Tensor = NDArray[np.float32]
UNSEARCHED = ("lola", "ufo")
"""Suites with widths of their own for each layer."""
BITS = (6, 12)
"""The narrowest and the widest weights and activations that are tried."""
CLIPS = ("minmax", "mse")
HELD = 3
"""One of so many inputs is held out."""
FINE = 10
"""Weights of so many bits lose next to nothing."""
FEWEST = 20
"""Inputs that must be held out for a share to mean anything."""


@dataclass(frozen=True)
class Candidate:
    """Options, how often their model agreed with the float model, and the bytes of an inference; or why it has none."""

    weight_bits: int
    activation_bits: int
    clip: str
    agreement: float = 0.0
    bytes: int = 0
    refused: str = ""

    def __str__(self) -> str:
        """One line for people."""
        said = self.refused or f"agreement {self.agreement:.4f}, {self.bytes / 1e6:.2f} MB"
        return f"weights {self.weight_bits} bits, activations {self.activation_bits} bits, clip {self.clip}: {said}"


@dataclass
class Search:
    """Candidates that were measured, each once, and what they are measured against.

    Widths that `options` give are not searched for.
    """

    compile: Callable[[Path, Options], dict[str, Any]]
    options: Options
    held: Tensor
    floats: NDArray[np.float64]
    target: float
    folder: Path
    metric: Metric = "auto"
    tried: dict[tuple[int, int, str], Candidate] = field(default_factory=dict)
    summaries: dict[Path, dict[str, Any]] = field(default_factory=dict)

    def cheapest(self) -> Candidate:
        """The candidate of least bytes that reaches the target; raises `MisuseError` with the best if none does."""
        weights, activations = span(self.options.weight_bits), span(self.options.activation_bits)
        fine = min(FINE, weights[1]) if weights[0] <= FINE else weights[0]
        enough = self.narrowest(activations, partial(self.at, fine))
        for bits in () if enough is None else range(enough, min(enough + 1, activations[1]) + 1):
            self.narrowest((weights[0], fine), partial(self.at, activation_bits=bits))
        reached = [one for one in self.tried.values() if self.reaches(one)]
        if reached:
            return min(reached, key=lambda one: (one.bytes, -one.agreement))
        best = max(self.tried.values(), key=lambda one: one.agreement)
        if best.refused:
            raise UnsupportedError(f"no candidate can be compiled; {best}")
        advice = "calibrate with more inputs like the real ones, lower the target, or try --equalise"
        raise MisuseError(
            f"no widths up to {BITS[1]} bits reach an agreement of {self.target:g}; best: {best}; {advice}"
        )

    def narrowest(self, widths: tuple[int, int], at: Callable[[int], Candidate]) -> int | None:
        """The least width at which a candidate reaches the target, by bisection; None if the widest does not.

        Widths that cannot be compiled are left out: layers may become too wide.
        """
        low, high = widths
        while at(high).refused and high > low:
            high -= 1
        if not self.reaches(at(high)):
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.reaches(at(middle)) else (middle + 1, high)
        return low

    def reaches(self, candidate: Candidate) -> bool:
        """Whether a candidate is good enough."""
        return not candidate.refused and candidate.agreement >= self.target

    def at(self, weight_bits: int, activation_bits: int) -> Candidate:
        """A candidate of these widths: with the first way to clip that reaches the target, else with the best."""
        ways = CLIPS if self.options.clipping.method == "minmax" else (self.options.clip,)
        found = []
        for clip in ways:
            found.append(self.measured(weight_bits, activation_bits, clip))
            if self.reaches(found[-1]) or found[-1].refused:
                return found[-1]
        return max(found, key=lambda one: one.agreement)

    def measured(self, weight_bits: int, activation_bits: int, clip: str) -> Candidate:
        """Compile and measure a candidate, unless that was done before."""
        key = (weight_bits, activation_bits, clip)
        if key not in self.tried:
            self.tried[key] = self.measure(Candidate(*key))
            self.options.say(str(self.tried[key]))
        return self.tried[key]

    def measure(self, candidate: Candidate) -> Candidate:
        """A candidate with its agreement and its bytes."""
        path = self.file(candidate)
        try:
            self.summaries[path] = self.compile(path, self.with_widths(candidate))
        except UnsupportedError as error:
            return replace(candidate, refused=str(error))
        model = Model(path)
        outputs = np.multiply(model.simulate(self.held), model.output_scale, dtype=np.float64)
        metric = chosen(self.metric, model.output_shape)
        score = compared(metric, outputs, self.floats, model.output_shape)["score"]
        return replace(candidate, agreement=score, bytes=sum(model.plan()["bytes"].values()))

    def with_widths(self, candidate: Candidate) -> Options:
        """The options of a candidate."""
        return replace(
            self.options,
            weight_bits=candidate.weight_bits,
            activation_bits=candidate.activation_bits,
            clip=candidate.clip,
            target_agreement=self.target,
        )

    def file(self, candidate: Candidate) -> Path:
        """Where a candidate's model is."""
        return self.folder / f"{candidate.weight_bits}-{candidate.activation_bits}-{candidate.clip}.tacit"


def span(given: int | None) -> tuple[int, int]:
    """Widths that are searched: the one that was given, or all."""
    return BITS if given is None else (given, given)


def compile_to_target(
    source: Path,
    output: Path,
    x: Tensor | Mapping[str, Tensor] | None,
    input_range: tuple[float, float] | None,
    options: Options,
) -> dict[str, Any]:
    """Compile like `compile_model`, with the cheapest widths that reach `options.target_agreement`.

    Of a stream, inputs of a model with states, the last third is held out.
    The summary has `target` beside the layers: what was asked for and reached, and all candidates.
    """
    if options.suite in UNSEARCHED or is_quantised(source):
        raise MisuseError(
            "--target-agreement is for models whose layers all have the same widths; choose widths yourself"
        )
    options, x, metric = inputs(source, x, options)
    held = np.arange(len(x)) % HELD == HELD - 1
    if options.states:
        held = np.sort(held)
    if held.sum() < FEWEST:
        least = FEWEST * HELD
        raise MisuseError(f"--target-agreement needs at least {least} inputs to calibrate and measure (--calibrate)")
    graph = import_onnx(source, *of_reading(options), options.selection)
    float_model = FloatModel(source, (), length(graph), graph.masked, options.selection)
    floats = float_model(x[held]).astype(np.float64)
    target = options.target_agreement or 1.0

    def compiled(path: Path, chosen: Options) -> dict[str, Any]:
        return compile_model(source, path, x[~held], input_range, chosen)

    with TemporaryDirectory() as folder:
        search = Search(compiled, options, x[held], floats, target, Path(folder), metric)
        best = search.cheapest()
        summary = search.summaries[search.file(best)]
        copyfile(search.file(best), output)
        if "text" in summary:
            copyfile(summary["text"], output.with_suffix(ENDING))
            summary["text"] = str(output.with_suffix(ENDING))
    candidates = [asdict(one) for one in sorted(search.tried.values(), key=lambda one: one.bytes)]
    return {
        **summary,
        "target": {"asked": target, "held_out": int(held.sum()), **asdict(best), "candidates": candidates},
    }


def of_reading(options: Options) -> tuple[int | None, bool]:
    """How many tokens an input has, and whether clients embed them."""
    return (None, False) if options.reading is None else (options.reading.sequence, options.reading.public_embedding)


def inputs(source: Path, x: Tensor | Mapping[str, Tensor] | None, options: Options) -> tuple[Options, Tensor, Metric]:
    """Options, the inputs to calibrate and measure with, and how results are compared."""
    if x is None and options.reading is None:
        raise MisuseError("--target-agreement measures on examples: give some (--calibrate DATA.npz)")
    graph = import_onnx(source, *of_reading(options), options.selection)
    x = one_array(graph, x)
    if options.reading is None:
        assert x is not None
        return options, x, "auto"
    text = describe(source, graph, options.reading or Reading())
    _, x, _ = of_text(options, graph, text, x)
    return options, x, "auto" if text.pooling == "classes" else "embedding"
