"""Several inputs and results of one model: one array of all, and the units that make them comparable."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.float_model import FloatModel
from tacit.compiler.quantize import synthetic
from tacit.data.parts import joined
from tacit.importers.source import Part, Source

MOST_EXAMPLES = 64
"""Examples that units are taken from."""
Units = tuple[tuple[str, float], ...]


def one_array(
    source: Source, x: NDArray[np.float32] | Mapping[str, NDArray[np.float32]] | None
) -> NDArray[np.float32] | None:
    """Example inputs (N, values) of arrays by name; an array stays as it is.

    Raises `MisuseError` for a name that the model does not read, one that is missing, and shapes that do not fit.
    """
    if not isinstance(x, Mapping):
        return x
    return joined(source.inputs or (Part(source.input_name, source.input_shape),), x)


def needs_units(source: Source, given: Units) -> bool:
    """Whether parts share a tensor and nobody has said how large they are."""
    return not given and (len(source.inputs) > 1 or len(source.outputs) > 1)


def units(path: Path, source: Source, x: NDArray[np.float32] | None) -> Units:
    """The largest magnitude of each part on examples `x` (N, values), where several share a tensor; 1 without any."""
    found: list[tuple[str, float]] = []
    if x is not None and len(source.inputs) > 1:
        found += measured(source.inputs, x.reshape(len(x), -1)[:MOST_EXAMPLES])
    if len(source.outputs) > 1:
        model = FloatModel(path, (), None, source.masked, replace(source.selection, units=()))
        shown = synthetic(source, (0.0, 1.0)) if x is None else x.reshape(-1, *source.input_shape)
        found += measured(source.outputs, model(shown[:MOST_EXAMPLES]))
    return tuple(found)


def measured(parts: Sequence[Part], values: NDArray[np.float32]) -> Iterator[tuple[str, float]]:
    """The largest magnitude of each part among `values` (N, all parts); 1 where all are 0."""
    start = 0
    for part in parts:
        largest = float(np.abs(values[:, start : start + part.size]).max())
        yield part.name, largest if largest > 0 else 1.0
        start += part.size
