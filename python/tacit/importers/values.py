"""Inputs that are no secret and have one value for good, such as a sampling rate: they become constants."""

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tacit.errors import MisuseError
from tacit.importers.extents import computed, declared_shape, sizes

INTEGERS = {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8}


def fix_values(model: onnx.ModelProto, values: Iterable[tuple[str, float]]) -> None:
    """Let inputs be constants, in place; one that is no single number is refused with `MisuseError`."""
    for name, value in values:
        entries = {entry.name: entry for entry in computed(model)}
        if name not in entries:
            listed = ", ".join(f"`{other}`" for other in entries) or "none"
            raise MisuseError(f"--input-value names `{name}`, which is no input of the model; inputs are {listed}")
        entry = entries[name]
        if any(size > 1 for size in sizes(entry)) or len(sizes(entry)) > 1:
            shown = declared_shape(entry)
            raise MisuseError(f"input `{name}` has shape {shown}; --input-value fixes single numbers (leave it out)")
        model.graph.initializer.append(constant(entry, value))
        for index, other in enumerate(model.graph.input):
            if other.name == name:
                del model.graph.input[index]
                break


def constant(entry: onnx.ValueInfoProto, value: float) -> TensorProto:
    """A constant of the type and the number of axes of an input."""
    kind = entry.type.tensor_type.elem_type
    if not float(value).is_integer() and kind in INTEGERS:
        raise MisuseError(f"input `{entry.name}` is an integer; {value:g} is none: --input-value {entry.name}=1")
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    if np.issubdtype(dtype, np.integer) and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise MisuseError(f"{value:g} is no number of input `{entry.name}`, which is of type {dtype}: give another")
    tensor: TensorProto = numpy_helper.from_array(np.full([1] * len(sizes(entry)), value, dtype), entry.name)
    return tensor
