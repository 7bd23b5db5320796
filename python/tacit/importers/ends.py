"""Several inputs and several results, each as one flat tensor; and inputs that are kept from one example to the next.

The engine knows one private input and one result. Of a model with more, the inputs become slices of one tensor, and
the results become one tensor, before anything else looks at the model. Each part is divided by its unit, so that
parts of very different size share one scale.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.extents import computed, declared_shape, sizes
from tacit.importers.selection import listing, named, types
from tacit.importers.source import MOST_AXES, Part, Selection, Unit

INPUTS, RESULTS = "tacit.inputs", "tacit.results"
KEPT = ".kept"
"""What the flat form of a state, and of what it is after an example, has behind its name."""
Shape = tuple[int, ...]


def kept(selection: Selection) -> tuple[tuple[str, str], ...]:
    """The flat forms of the states: what is read, and what it is after an example."""
    return tuple((f"{before}{KEPT}", f"{after}{KEPT}") for before, after in selection.states)


def flatten_states(model: onnx.ModelProto, selection: Selection) -> Selection:
    """Let each state be a vector, in place: its batch may be any axis. Gives what is asked of the other inputs.

    Raises `MisuseError` for a state that is no input, and `UnsupportedError` for one of another type than float32.
    """
    entries = {entry.name: entry for entry in computed(model)}
    shapes = dict(selection.shapes)
    nodes, afters = [], []
    for (before, after), (flat, flat_after) in zip(selection.states, kept(selection), strict=True):
        if before not in entries:
            have = listing(entries) or "none"
            raise MisuseError(f"the result reads no input `{before}` that could be a state; inputs are {have}")
        entry = entries[before]
        if entry.type.tensor_type.elem_type != TensorProto.FLOAT:
            raise UnsupportedError(f"state `{before}` is no tensor of float32; export the model in float32")
        shape = shapes.get(before, tuple(max(size, 1) for size in sizes(entry)))
        length = int(np.prod(shape))
        nodes.append(reshape(model, flat, before, shape))
        model.graph.node.append(reshape(model, after, flat_after, (1, length)))
        entry.CopyFrom(helper.make_tensor_value_info(flat, TensorProto.FLOAT, [1, length]))
        afters.append(helper.make_tensor_value_info(flat_after, TensorProto.FLOAT, [1, length]))
    if not nodes:
        return selection
    made, asked = {after for _, after in selection.states}, named(selection.result, entries)
    results = [entry for entry in model.graph.output if entry.name not in made or entry.name in asked]
    del model.graph.output[:]
    model.graph.output.extend([*results, *afters])
    insert(model, nodes)
    states = {before for before, _ in selection.states}
    return replace(selection, shapes=tuple(pair for pair in selection.shapes if pair[0] not in states))


def join(model: onnx.ModelProto, selection: Selection, notes: list[str]) -> None:
    """Let the private inputs be one, and the results be one, in place; a single one of few axes stays as it is.

    Of several inputs `notes` say so.
    """
    units, states = dict(selection.units), {flat for flat, _ in kept(selection)}
    uneven = {name for name, unit in selection.units if isinstance(unit, tuple)}
    afters = {flat for _, flat in kept(selection)}
    inputs = [entry for entry in computed(model) if entry.name not in states]
    if len(inputs) > 1:
        names = listing(entry.name for entry in inputs)
        notes.append(f"the result needs {len(inputs)} inputs, {names}: a .npz file has an array for each")
    if len(inputs) > 1 or any(len(sizes(entry)) > MOST_AXES + 1 or entry.name in uneven for entry in inputs):
        join_inputs(model, inputs, units)
    results = [entry.name for entry in model.graph.output if entry.name not in afters]
    if len(results) > 1:
        join_results(model, results, units)


def join_inputs(model: onnx.ModelProto, entries: Sequence[onnx.ValueInfoProto], units: Mapping[str, Unit]) -> None:
    """Make slices of one input of all `entries`."""
    for entry in entries:
        if entry.type.tensor_type.elem_type != TensorProto.FLOAT:
            kind = TensorProto.DataType.Name(entry.type.tensor_type.elem_type)
            shown = f"{declared_shape(entry)} of type {kind}"
            raise UnsupportedError(
                f"the result needs {len(entries)} inputs, and `{entry.name}` is {shown}; export the model with inputs "
                "of float32, or choose a result that does not need it (--result NAME)"
            )
    shapes = {entry.name: sizes(entry)[1:] for entry in entries}
    batch = entries[0].type.tensor_type.shape.dim[0]
    joined = helper.make_tensor_value_info(INPUTS, TensorProto.FLOAT, ["N", sum(map(count, shapes.values()))])
    if batch.dim_value:
        joined.type.tensor_type.shape.dim[0].dim_value = batch.dim_value
    nodes, start = [], 0
    for name, shape in shapes.items():
        end = start + count(shape)
        part = f"{INPUTS}.{name}"
        alone = len(shapes) == 1 and isinstance(units.get(name), tuple)
        nodes.append(same(INPUTS, part) if alone else cut(model, INPUTS, part, (start, end)))
        if units.get(name, 1.0) != 1.0:
            nodes.append(scaled(model, part, f"{part}.scaled", units[name]))
            part = f"{part}.scaled"
        nodes.append(same(part, name) if alone else reshape(model, part, name, (0, *shape)))
        start = end
    others = [entry for entry in model.graph.input if entry.name not in shapes]
    del model.graph.input[:]
    model.graph.input.extend([joined, *others])
    insert(model, nodes)


def join_results(model: onnx.ModelProto, names: Sequence[str], units: Mapping[str, Unit]) -> None:
    """Concatenate the results `names`."""
    kinds = types(model)
    parts = []
    for name in names:
        if kinds.get(name, TensorProto.FLOAT) != TensorProto.FLOAT:
            kind = TensorProto.DataType.Name(kinds[name])
            raise UnsupportedError(f"result `{name}` is of type {kind}; leave it out of --result")
        flat = f"{RESULTS}.{name}"
        model.graph.node.append(helper.make_node("Flatten", [name], [flat], f"{name}.flat", axis=1))
        if units.get(name, 1.0) != 1.0:
            model.graph.node.append(scaled(model, flat, f"{flat}.scaled", 1 / np.array(units[name])))
            flat = f"{flat}.scaled"
        parts.append(flat)
    model.graph.node.append(helper.make_node("Concat", parts, [RESULTS], RESULTS, axis=1))
    rest = [entry for entry in model.graph.output if entry.name not in names]
    del model.graph.output[:]
    model.graph.output.extend([helper.make_tensor_value_info(RESULTS, TensorProto.FLOAT, None), *rest])


def input_parts(names: Mapping[str, Shape], selection: Selection) -> tuple[Part, ...]:
    """The inputs that were joined, from the shapes of all tensors with a batch of one; none if none were."""
    units, found = dict(selection.units), []
    start = f"{INPUTS}."
    for name in names:
        own = name.removeprefix(start)
        if name.startswith(start) and own in names:
            found.append(Part.with_unit(own, names[own][1:], units.get(own, 1.0)))
    return tuple(found)


def result_parts(order: Sequence[str], names: Mapping[str, Shape], selection: Selection) -> tuple[Part, ...]:
    """The results that were joined, in `order`."""
    units = dict(selection.units)
    shapes = {name: names.get(name) or names[f"{RESULTS}.{name}"] for name in order}
    return tuple(Part.with_unit(name, shape[1:], units.get(name, 1.0)) for name, shape in shapes.items())


def count(shape: Shape) -> int:
    """Elements of a tensor of that shape."""
    return int(np.prod(shape, dtype=np.int64))


def opset(model: onnx.ModelProto) -> int:
    """Version of ONNX's own operators."""
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)


def stored(model: onnx.ModelProto, name: str, value: object, kind: type[np.generic]) -> str:
    """A constant of the model; gives its name."""
    model.graph.initializer.append(numpy_helper.from_array(np.array(value, kind), name))
    return name


def same(read: str, write: str) -> onnx.NodeProto:
    """An Identity."""
    return helper.make_node("Identity", [read], [write], f"{write}.same")


def reshape(model: onnx.ModelProto, read: str, write: str, shape: Shape) -> onnx.NodeProto:
    """A Reshape; 0 keeps the length of an axis."""
    return helper.make_node("Reshape", [read, stored(model, f"{write}.shape", shape, np.int64)], [write], f"{write}.of")


def scaled(model: onnx.ModelProto, read: str, write: str, factor: object) -> onnx.NodeProto:
    """A product with a constant, or one for each value of an example."""
    return helper.make_node("Mul", [read, stored(model, f"{write}.factor", factor, np.float32)], [write], write)


def cut(model: onnx.ModelProto, read: str, write: str, ends: tuple[int, int]) -> onnx.NodeProto:
    """The values of a batch of vectors from one place to another."""
    start, end = ends
    if opset(model) < 10:
        return helper.make_node("Slice", [read], [write], write, starts=[start], ends=[end], axes=[1])
    roles = {"starts": start, "ends": end, "axes": 1}
    constants = [stored(model, f"{write}.{role}", [value], np.int64) for role, value in roles.items()]
    return helper.make_node("Slice", [read, *constants], [write], write)


def insert(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> None:
    """Put nodes before all others."""
    later = [onnx.NodeProto.FromString(node.SerializeToString()) for node in model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend([*nodes, *later])
