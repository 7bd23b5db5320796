"""Several inputs or results of one model, which lie flattened one after another in an array."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError
from tacit.importers.source import Part


def joined(parts: Sequence[Part], arrays: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """One array (N, values), or (N, *shape) of a single part, of float32 `arrays` (N, *shape) by their names.

    An array without N is one example. Raises `MisuseError` for a name too many or too few, and for other shapes.
    """
    names = [part.name for part in parts]
    if set(arrays) != set(names):
        raise MisuseError(f"the model's inputs are {listed(names)}, not {listed(arrays)}: name an array for each")
    given = [batched(part, np.asarray(arrays[part.name])) for part in parts]
    counts = {len(array) for array in given}
    if len(counts) > 1:
        shown = ", ".join(f"{len(array)} of `{part.name}`" for part, array in zip(parts, given, strict=True))
        raise MisuseError(f"inputs differ in number: {shown}")
    if len(given) == 1:
        return given[0]
    return np.concatenate([array.reshape(len(array), -1) for array in given], axis=1)


def batched(part: Part, array: NDArray[np.float32]) -> NDArray[np.float32]:
    """An array (N, *shape) of one part."""
    if array.dtype.kind not in "biuf":
        raise MisuseError(f"input `{part.name}` is {array.dtype}; give numbers, as float32")
    array = np.ascontiguousarray(array, np.float32)
    if array.shape == part.shape:
        return array[None]
    if array.shape[1:] != part.shape:
        wanted = f"{list(part.shape)} or {['N', *part.shape]}"
        raise MisuseError(f"input `{part.name}` has shape {list(array.shape)}; the model takes {wanted}")
    return array


def apart(parts: Sequence[Part], values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """The parts of real `values` (N, all of them) by name, each (N, *shape)."""
    found, start = {}, 0
    for part in parts:
        found[part.name] = values[:, start : start + part.size].reshape(-1, *part.shape)
        start += part.size
    return found


def unit_of_each(parts: Sequence[Part]) -> NDArray[np.float64] | float:
    """The unit of each value of the joined array (values,); 1 where there are no parts."""
    if not parts:
        return 1.0
    return np.concatenate([np.full(part.size, part.unit) * np.array(part.units or 1.0) for part in parts])


def listed(names: "Mapping[str, object] | Sequence[str]") -> str:
    """Names for people."""
    return ", ".join(f"`{name}`" for name in names) or "none"
