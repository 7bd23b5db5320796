"""Several inputs and results of one model: one array of all, and the units that make them comparable."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.float_model import FloatModel
from tacit.compiler.quantize import synthetic
from tacit.data.parts import joined
from tacit.importers.source import Part, Source, Unit

MOST_EXAMPLES = 64
"""Examples that units are taken from."""
ELEMENTWISE = ("Gemm", "AddConstant", "BatchNormalization", "Scale")
"""Operators that treat the values of a vector as features."""
FEATURES = range(2, 4097)
"""Values of an input that may be features, with units of their own."""
UNEVEN = 32.0
"""By how much the largest feature must exceed the median one for features to get units: then the latter has 3 bits."""
LEAST = 1 / 256
"""The least unit, in those of the median feature: what hardly varied in calibration may be larger later."""
Units = tuple[tuple[str, Unit], ...]


def one_array(
    source: Source, x: NDArray[np.float32] | Mapping[str, NDArray[np.float32]] | None
) -> NDArray[np.float32] | None:
    """Example inputs (N, values) of arrays by name; an array stays as it is.

    Raises `MisuseError` for a name that the model does not read, one that is missing, and shapes that do not fit.
    """
    if not isinstance(x, Mapping):
        return x
    return joined(source.inputs or (Part(source.input_name, source.input_shape),), x)


def units(path: Path, source: Source, x: NDArray[np.float32] | None) -> Units:
    """The largest magnitude of each part on examples `x` (N, values), where several share a tensor; 1 without any.

    Of a single input of features that differ much in size the unit of each. Empty where nothing needs units.
    """
    found: list[tuple[str, Unit]] = []
    if x is not None and len(source.inputs) > 1:
        found += measured(source.inputs, x.reshape(len(x), -1)[:MOST_EXAMPLES])
    elif x is not None and has_features(source, x) and (each := of_features(x)):
        found.append((source.input_name, each))
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


def has_features(source: Source, x: NDArray[np.float32]) -> bool:
    """Whether `x` are vectors whose values may have units of their own: not a signal, and nothing that is kept."""
    plain = not (source.inputs or source.states or source.reads_tokens or source.masked)
    readers = [node for node in source.nodes if source.input_name in node.inputs]
    vector = x.ndim == 2 and x.shape[1:] == source.input_shape and x.shape[1] in FEATURES
    return plain and vector and all(node.operation["op"] in ELEMENTWISE for node in readers)


def of_features(x: NDArray[np.float32]) -> tuple[float, ...]:
    """A power of two above the largest magnitude of each feature in `x` (N, features); empty where these are alike."""
    largest = np.abs(x.astype(np.float64)).max(axis=0)
    middle = float(np.median(largest))
    if not np.isfinite(largest).all() or not middle or largest.max() < UNEVEN * middle:
        return ()
    return tuple(np.exp2(np.ceil(np.log2(np.maximum(largest, LEAST * middle)))).tolist())
