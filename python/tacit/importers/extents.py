"""Sizes of a model's inputs: the batch becomes one example, and every other size is known or asked for."""

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.layout import MOST_AXES

Sizes = tuple[int, ...]
SHAPED = {"Expand", "Reshape"}
"""Operators that read a shape, which may have the batch in front."""


def fix_sizes(model: onnx.ModelProto, shapes: Iterable[tuple[str, Sizes]], notes: list[str]) -> None:
    """Give the inputs the sizes that were named, and a fixed batch above 1 the size 1, in place; `notes` say so.

    Raises `MisuseError` for a shape that is none of the model's, and `UnsupportedError` for an input with a size that
    nobody named.
    """
    entries = computed(model)
    for name, shape in shapes:
        name_size(entries, name, shape)
        if shape[0] > 1:
            notes.append(f"the batch of {shape[0]} in --input-shape is compiled as 1")
    for entry in entries:
        single_batch(model, entry, notes)
        demand_sizes(entry)
        merge_axes(model, entry, notes)


def computed(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that are no constants."""
    stored = {tensor.name for tensor in model.graph.initializer}
    return [entry for entry in model.graph.input if entry.name not in stored]


def name_size(entries: list[onnx.ValueInfoProto], name: str, shape: Sizes) -> None:
    """Give one input the shape that was named for it; without a name it is the only one."""
    chosen = [entry for entry in entries if entry.name == name or (not name and len(entries) == 1)]
    if not chosen:
        listed = ", ".join(f"`{entry.name}`" for entry in entries)
        what = f"the result reads no input `{name}`" if name else "--input-shape must name its input"
        raise MisuseError(f"{what}; inputs are {listed} (--input-shape NAME={written(shape)})")
    tensor = chosen[0].type.tensor_type
    declared = sizes(chosen[0])
    fits = len(declared) == len(shape) and all(
        old in (0, new) for old, new in zip(declared[1:], shape[1:], strict=True)
    )
    if not fits:
        shown = declared_shape(chosen[0])
        raise MisuseError(f"input `{chosen[0].name}` has shape {shown}, which {written(shape)} does not fit")
    for axis, length in zip(tensor.shape.dim[1:], shape[1:], strict=True):
        axis.dim_value = length


def single_batch(model: onnx.ModelProto, entry: onnx.ValueInfoProto, notes: list[str]) -> None:
    """Let a batch that is fixed above 1 be 1, also in the constant shapes that nodes read."""
    size = sizes(entry)
    if len(size) < 2 or size[0] < 2:
        return
    entry.type.tensor_type.shape.dim[0].dim_value = 1
    model.graph.output[0].type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    shapes = constants(model)
    for node in model.graph.node:
        shape = shapes.get(node.input[1]) if node.op_type in SHAPED and len(node.input) > 1 else None
        if shape is not None and shape.ndim == 1 and len(shape) > 1 and shape[0] == size[0]:
            name = f"{node.input[1]}.single"
            if name not in shapes:
                shapes[name] = np.array([1, *shape[1:]], np.int64)
                model.graph.initializer.append(numpy_helper.from_array(shapes[name], name))
            node.input[1] = name
    notes.append(f"input `{entry.name}` has a fixed batch of {size[0]}, which is compiled as 1")


def merge_axes(model: onnx.ModelProto, entry: onnx.ValueInfoProto, notes: list[str]) -> None:
    """Let an input of more axes than the engine has, such as a volume, be one whose first axes are merged, in place."""
    own = sizes(entry)
    if len(own) <= MOST_AXES + 1:
        return
    first = len(own) - MOST_AXES + 1
    merged = (int(np.prod(own[1:first])), *own[first:])
    name, shape = f"{entry.name}.merged", f"{entry.name}.shape"
    model.graph.initializer.append(numpy_helper.from_array(np.array([-1, *own[1:]], np.int64), shape))
    reshape = helper.make_node("Reshape", [name, shape], [entry.name], name=f"{entry.name}.split")
    model.graph.node.insert(0, reshape)
    notes.append(
        f"input `{entry.name}` of shape {written(own[1:])} is given as {written(merged)}, its first axes merged"
    )
    kind, batch = entry.type.tensor_type.elem_type, own[0] or "N"
    entry.CopyFrom(helper.make_tensor_value_info(name, kind, [batch, *merged]))


def constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Vectors of integers that are stored in the model."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        for entry in node.attribute if node.op_type == "Constant" else ():
            if entry.name == "value":
                tensors[node.output[0]] = entry.t
    return {
        name: numpy_helper.to_array(tensor)
        for name, tensor in tensors.items()
        if tensor.data_type == TensorProto.INT64 and len(tensor.dims) == 1
    }


def demand_sizes(entry: onnx.ValueInfoProto) -> None:
    """Raise `UnsupportedError` for an input without a batch, or with a size beside it that is not known."""
    size, shown = sizes(entry), declared_shape(entry)
    advice = f"pass the fixed size that you will run: --input-shape {entry.name}="
    if len(size) < 2:
        raise UnsupportedError(f"input `{entry.name}` has shape {shown}; its first dimension must be the batch")
    if min(size[1:]) < 1:
        example = written(
            [1, *(length or f"<{name}>" for length, name in zip(size[1:], names(entry)[1:], strict=True))]
        )
        raise UnsupportedError(
            f"input `{entry.name}` has shape {shown}, with a dynamic size beside the batch; {advice}{example}"
        )


def sizes(entry: onnx.ValueInfoProto) -> Sizes:
    """Lengths of the axes of an input, 0 where they are not known."""
    return tuple(max(axis.dim_value, 0) for axis in entry.type.tensor_type.shape.dim)


def names(entry: onnx.ValueInfoProto) -> list[str]:
    """What the axes are called, where they have a name."""
    return [axis.dim_param or "size" for axis in entry.type.tensor_type.shape.dim]


def declared_shape(entry: onnx.ValueInfoProto) -> str:
    """The shape for people, with the names of the sizes that are not known."""
    pairs = zip(sizes(entry), names(entry), strict=True)
    return f"[{', '.join(str(size or name) for size, name in pairs)}]"


def written(shape: Iterable[int | str]) -> str:
    """A shape as `--input-shape` takes it."""
    return "x".join(map(str, shape))
