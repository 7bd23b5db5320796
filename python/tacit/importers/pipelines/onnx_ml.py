"""Nodes of ONNX before an ensemble of trees: scalers, imputers, and what picks and joins columns.

Trees get thresholds for the model's own inputs, as onnxruntime computes: in float32.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from tacit.data.schema import Column, Feature, Schema
from tacit.errors import MisuseError
from tacit.importers.onnx import load
from tacit.importers.pipelines.columns import Derived, Step, Table
from tacit.importers.pipelines.moved import moved
from tacit.importers.pipelines.reading import with_columns
from tacit.importers.trees import Ensemble
from tacit.importers.trees.meaning import result_of
from tacit.importers.trees.onnx_graph import Found, find, of_node
from tacit.importers.trees.onnx_nodes import attributes, refuse

Columns = list[Derived]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Context:
    """The constants of a graph by their names, and the columns of its inputs."""

    constants: Mapping[str, NDArray[Any]]
    table: Table


Converter = Callable[[onnx.NodeProto, list[Columns], Context], Columns]


class Scaler:
    """(x - offset) * scale in float32."""

    def __init__(self, offset: Floats, scale: Floats) -> None:
        """Keep both, one number for each column or for all."""
        self.offset, self.scale = offset, scale

    def transform(self, x: Floats) -> Floats:
        """Scaled rows."""
        return np.asarray((x - self.offset) * self.scale, np.float32)


class Arithmetic:
    """Sums and products with constants in float32."""

    def __init__(self, function: Callable[[Floats, Floats], Floats], values: Floats) -> None:
        """Keep the function, and one number for each column or for all."""
        self.function, self.values = function, values

    def transform(self, x: Floats) -> Floats:
        """Changed rows."""
        return np.asarray(self.function(x, self.values), np.float32)


class Imputer:
    """Numbers in place of missing ones."""

    def __init__(self, values: Floats) -> None:
        """Keep what stands in for them, one number for each column or for all."""
        self.values = values

    def transform(self, x: Floats) -> Floats:
        """Filled rows."""
        return np.asarray(np.where(np.isnan(x), self.values, x), np.float32)


def is_trees_behind(path: Path) -> bool:
    """Whether a file is an ensemble of trees behind nodes that are known here."""
    found = find(load(path))
    return found is not None and all(node.op_type in CONVERTERS for node in found.before)


def read(path: Path) -> tuple[Ensemble, Schema | None]:
    """The ensemble of such a file, and how rows become its inputs where inputs of the model are single columns.

    Raises `UnsupportedError` naming the node for what does not run, `MisuseError` for nodes that do not hold together.
    """
    model = load(path)
    found = find(model)
    assert found is not None
    try:
        return of_graph(model, found, path.stem)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        what = f"{path} has nodes that do not fit together ({type(error).__name__}: {error})"
        raise MisuseError(f"{what}; export the model again") from error


def of_graph(model: onnx.ModelProto, found: Found, name: str) -> tuple[Ensemble, Schema | None]:
    """As `read`, of a graph and the ensemble in it."""
    constants: dict[str, NDArray[Any]] = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    columns, names = inputs(model, found)
    context = Context(constants, Table([Column(each) for each in names]))
    raw = [each.feature for made in columns.values() for each in made if each.feature is not None]
    for node in found.before:
        given = [columns[each] for each in node.input if each in columns]
        lost = [each for each in node.input if each and each not in columns and each not in constants]
        if lost or not given:
            refuse(node, f"of `{', '.join(lost)}`", "compile the pipeline itself")
        columns[node.output[0]] = CONVERTERS[node.op_type](node, given, context)
    final = columns[found.node.input[0]]
    made = of_node(model, found, name, len(final))
    if max((int(tree.feature.max()) for tree in made.trees), default=0) >= len(final):
        refuse(found.node, f"that tests more columns than the {len(final)} before it", "export the model again")
    if all(column.categories is None for column in context.table.columns):
        ensemble = moved(made, final, raw, np.float32)
        schema = Schema.plain(names, result_of(ensemble)) if len(names) == len(raw) > 1 else None
        return ensemble, schema
    features = list(dict.fromkeys(each.feature for each in final if each.feature is not None))
    ensemble = moved(made, final, features, np.float32)
    return ensemble, with_columns(context.table, features, result_of(ensemble))


def inputs(model: onnx.ModelProto, found: Found) -> tuple[dict[str, Columns], list[str]]:
    """The columns of each input of the model, and their names; columns of a broad input are numbered."""
    stored = {each.name for each in model.graph.initializer}
    read_by = {name for node in (*found.before, found.node) for name in node.input}
    columns: dict[str, Columns] = {}
    names: list[str] = []
    for entry in model.graph.input:
        if entry.name in stored or entry.name not in read_by:
            continue
        kind = entry.type.tensor_type
        sizes = [int(axis.dim_value) for axis in kind.shape.dim]
        if kind.elem_type not in READ or len(sizes) != 2 or not sizes[1]:
            refuse(
                found.node, f"that reads input `{entry.name}`, which is no matrix of float32", "compile the pipeline"
            )
        values = [Feature("value", at) for at in range(len(names), len(names) + sizes[1])]
        columns[entry.name] = [Derived({each: 1.0}, 0.0, each) for each in values]
        names += [entry.name] if sizes[1] == 1 else [f"{entry.name}{at}" for at in range(sizes[1])]
    return columns, names if len(columns) == len(names) else []


def same(node: onnx.NodeProto, given: list[Columns], _: Context) -> Columns:
    """Identity, and Cast of float32 to float32."""
    if node.op_type == "Cast" and int(attributes(node)["to"]) not in NUMBERS:
        refuse(node, "to other numbers than float32", "export the model again, of float32 inputs")
    return given[0]


def joined(_: onnx.NodeProto, given: list[Columns], __: Context) -> Columns:
    """Concat and FeatureVectorizer: columns side by side."""
    return [column for columns in given for column in columns]


def picked(node: onnx.NodeProto, given: list[Columns], context: Context) -> Columns:
    """ArrayFeatureExtractor and Gather of constant places."""
    places = context.constants.get(node.input[1])
    if places is None or (node.op_type == "Gather" and int(attributes(node).get("axis", 0)) not in (1, -1)):
        refuse(node, "of computed places, or of rows", "compile the pipeline itself")
    return [given[0][int(at)] for at in np.ravel(places)]


def scaler(node: onnx.NodeProto, given: list[Columns], _: Context) -> Columns:
    """Scaler."""
    found = attributes(node)
    offset, scale = (np.asarray(found.get(name, (start,)), np.float32) for name, start in (("offset", 0), ("scale", 1)))
    if (scale <= 0).any():
        refuse(node, "with a factor that is not positive", "leave the column out")
    return stepped(Scaler(offset, scale), given[0])


def imputer(node: onnx.NodeProto, given: list[Columns], _: Context) -> Columns:
    """Imputer of NaN."""
    found = attributes(node)
    values = np.asarray(found.get("imputed_value_floats", ()), np.float32)
    if not len(values) or not np.isnan(found.get("replaced_value_float", 0.0)):
        refuse(node, "of other values than NaN", "let the imputer replace NaN")
    return stepped(Imputer(values), given[0])


def arithmetic(node: onnx.NodeProto, given: list[Columns], context: Context) -> Columns:
    """Add, Sub, Mul and Div of columns and constants."""
    at = 0 if node.input[0] in context.constants else 1
    values = context.constants.get(node.input[at])
    width = len(given[0])
    fits = (
        values is not None and values.dtype == np.float32 and values.shape in ((), (1,), (1, 1), (width,), (1, width))
    )
    if values is None or not fits or (at == 0 and node.op_type in ("Sub", "Div")):
        refuse(node, "of other things than columns and constants", "compile the pipeline itself")
    if node.op_type in ("Mul", "Div") and (values <= 0).any():
        refuse(node, "with a factor that is not positive", "leave the column out")
    return stepped(Arithmetic(FUNCTIONS[node.op_type], np.ravel(values)), given[0])


def stepped(transformer: Scaler | Imputer | Arithmetic, columns: Columns) -> Columns:
    """Columns behind a transformer that keeps them apart."""
    return [column.stepped(Step(transformer, at, len(columns), at)) for at, column in enumerate(columns)]


NUMBERS = (onnx.TensorProto.FLOAT,)
READ = (onnx.TensorProto.FLOAT, onnx.TensorProto.STRING)


def reshaped(node: onnx.NodeProto, given: list[Columns], context: Context) -> Columns:
    """Reshape that keeps columns apart, as exporters write behind encoders."""
    sizes = np.ravel(context.constants.get(node.input[1], np.zeros(0))).tolist()
    if sizes not in ([-1, len(given[0])], [0, len(given[0])], [0, -1]):
        refuse(node, "that mixes rows and columns", "compile the pipeline itself")
    return given[0]


def one_hot(node: onnx.NodeProto, given: list[Columns], context: Context) -> Columns:
    """OneHotEncoder of a column of texts."""
    found = attributes(node)
    categories = list(found.get("cats_strings", ()))
    if not categories or len(given[0]) != 1:
        refuse(node, "of numbers, or of several columns", "compile the pipeline itself")
    rows = np.eye(len(categories) + 1)[: len(categories)].tolist()
    column = Column(node.input[0], tuple(categories), bool(found.get("zeros", 1)))
    return encoded(node, given[0][0], rows, column, context)


def label_encoder(node: onnx.NodeProto, given: list[Columns], context: Context) -> Columns:
    """LabelEncoder of a column of texts, into whole numbers."""
    found = attributes(node)
    categories, codes = list(found.get("keys_strings", ())), list(found.get("values_int64s", ()))
    if not categories or len(codes) != len(categories) or len(given[0]) != 1:
        refuse(node, "of other things than texts and whole numbers", "compile the pipeline itself")
    row = [float(code) for code in (*codes, found.get("default_int64", -1))]
    return encoded(node, given[0][0], [row], Column(node.input[0], tuple(categories), True), context)


def encoded(node: onnx.NodeProto, read: Derived, rows: list[list[float]], column: Column, context: Context) -> Columns:
    """What clients send of a column of texts, a number for each of `rows`; `column` has its categories."""
    at = read.raw
    if at is None:
        refuse(node, "behind other nodes than inputs", "compile the pipeline itself")
    context.table.categorical(at, column.categories or (), column.unknown)
    made = [Feature("lookup", at, tuple(row)) for row in rows]
    return [Derived({each: 1.0}, 0.0, each) for each in made]


FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Div": np.divide,
    "Mul": np.multiply,
    "Sub": np.subtract,
}
CONVERTERS: Mapping[str, Converter] = {
    **dict.fromkeys(FUNCTIONS, arithmetic),
    "ArrayFeatureExtractor": picked,
    "Cast": same,
    "Concat": joined,
    "FeatureVectorizer": joined,
    "Gather": picked,
    "Identity": same,
    "Imputer": imputer,
    "LabelEncoder": label_encoder,
    "OneHotEncoder": one_hot,
    "Reshape": reshaped,
    "Scaler": scaler,
}
"""Converters by operator."""
