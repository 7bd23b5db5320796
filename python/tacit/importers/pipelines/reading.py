"""A fitted pipeline of scikit-learn as a schema for clients, and layers or trees for the server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tacit.data.schema import Column, Feature, Result, Schema
from tacit.data.tables import by_column, is_frame
from tacit.errors import MisuseError
from tacit.importers.pipelines.columns import Derived, Table, combined, refuse
from tacit.importers.pipelines.moved import moved
from tacit.importers.pipelines.scores import READERS, Dense, Scores, network, of_estimator
from tacit.importers.pipelines.transformers import converted
from tacit.importers.trees import Ensemble, is_ensemble
from tacit.importers.trees import of_estimator as ensemble_of
from tacit.importers.trees.estimators import kinds
from tacit.importers.trees.meaning import result_of

Floats = NDArray[np.float32]
SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
SPREAD = 3.0
"""Deviations from the middle in which typical values lie."""
SYNTHETIC = 256
"""Typical rows that calibrate a model without examples."""
NARROW = ("BaseDecisionTree", "BaseForest", "ForestClassifier", "BaseGradientBoosting", "XGBModel", "CatBoost")
"""Ensembles that compare float32 numbers, whatever they are given."""
MARKED = ("lookup", "missing")
"""Features of few values, of which rare ones may be missing among examples."""


@dataclass(frozen=True)
class Layers:
    """Scores of a pipeline: what the server's layers read, the first sum over it, and what follows.

    `names` are those of all columns that the pipeline was fitted with.
    """

    schema: Schema
    first: Dense
    scores: Scores
    table: Table
    names: tuple[str, ...]

    def model(self, units: NDArray[np.float64]) -> onnx.ModelProto:
        """The layers as a model of ONNX, of what clients send in `units` (features,)."""
        return network(self.scores, self.first, units)

    @property
    def total(self) -> Dense | None:
        """The one sum that makes the scores, if it is one."""
        if not self.scores.is_linear:
            return None
        last = self.scores.layers[0]
        assert isinstance(last, Dense)
        return Dense(last.weight @ self.first.weight, last.weight @ self.first.bias + last.bias)

    def examples(self, rows: Any) -> Floats:
        """Inputs (N, features) that calibrate the layers: of `rows`, or typical ones of the training data."""
        x = self.typical() if rows is None else encoded(self.schema, self.names, rows)
        marked = [at for at, each in enumerate(self.schema.features) if each.kind in MARKED]
        more = np.repeat(x[:1], len(marked), axis=0)
        for row, at in enumerate(marked):
            table = self.schema.features[at].table or (1.0,)
            more[row, at] = max(table, key=abs)
        return np.concatenate([x, more])

    def typical(self) -> Floats:
        """Rows as scalers saw them; raises `MisuseError` where no scaler saw a column."""
        lacking = [
            column.name
            for at, column in enumerate(self.schema.columns)
            if column.categories is None and at not in self.table.typical and self.reads(at)
        ]
        if lacking:
            shown = ", ".join(lacking[:10])
            raise MisuseError(f"nothing says how large {shown} are; give example rows: tacit.compile(pipeline, rows)")
        random = np.random.default_rng(0)
        values: dict[str, Any] = {}
        for at, column in enumerate(self.schema.columns):
            if column.categories is not None:
                given = np.empty(SYNTHETIC, object)
                given[:] = [
                    column.categories[place] for place in random.integers(len(column.categories), size=SYNTHETIC)
                ]
                values[column.name] = given
            else:
                middle, deviation = self.table.typical.get(at, (0.0, 1.0))
                values[column.name] = middle + deviation * SPREAD * random.uniform(-1, 1, SYNTHETIC)
        return self.schema.encode(values)

    def reads(self, column: int) -> bool:
        """Whether a feature is made of a column."""
        return any(column in (each.column, *each.together) for each in self.schema.features)


@dataclass(frozen=True)
class Trees:
    """Trees of a pipeline, for what clients send."""

    schema: Schema
    ensemble: Ensemble


def is_pipeline(model: Any) -> bool:
    """Whether an object is a pipeline of scikit-learn, or an estimator of it that is read without its exporter."""
    known = {name for package, name in kinds(model) if package == "sklearn"}
    if known & {"Pipeline", *SEARCHES}:
        return True
    return bool(known & set(READERS)) and hasattr(model, "predict")


def read(model: Any, example: Any = None) -> Layers | Trees:
    """A fitted pipeline or estimator.

    Thresholds of trees are those of the arithmetic that transformers do on `example`, which is float64 unless it is an
    array of float32. Raises `MisuseError` for one that is not fitted, `UnsupportedError` for what does not run.
    """
    try:
        return taken_apart(model, example)
    except AttributeError as error:
        raise MisuseError(
            f"{type(model).__name__} is not fitted, or of another version ({error}); call fit first"
        ) from error


def taken_apart(model: Any, example: Any) -> Layers | Trees:
    """As `read`; what is not fitted raises whatever it does."""
    if any(name in SEARCHES for _, name in kinds(model)):
        model = model.best_estimator_
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    table = Table([Column(name) for name in names_of(model, steps)])
    columns = table.begun()
    for step in steps[:-1]:
        columns = converted(table, step, columns)
    final = steps[-1]
    while hasattr(final, "steps"):
        for _, step in final.steps[:-1]:
            columns = converted(table, step, columns)
        final = final.steps[-1][1]
    if is_ensemble(final):
        return of_trees(final, table, columns, kind_of(example))
    scores = of_estimator(final)
    if scores is None:
        name = type(final).__name__
        refuse(f"estimator {name} at the end of a pipeline", "use a linear model, trees, k-means or naive Bayes")
    check_binary(final, columns)
    return of_layers(scores, table, columns)


def names_of(model: Any, steps: Sequence[Any]) -> list[str]:
    """The names of the columns that a model was fitted with, or x0, x1 and so on."""
    for each in (model, *steps):
        given = getattr(each, "feature_names_in_", None)
        if given is not None:
            return [str(name) for name in given]
        count = getattr(each, "n_features_in_", None)
        if count is not None:
            return [f"x{at}" for at in range(int(count))]
        if each is not model and each not in (None, "passthrough"):
            break
    raise MisuseError(f"{type(model).__name__} is not fitted; call fit first")


def kind_of(example: Any) -> type:
    """The numbers that transformers compute with."""
    return np.float32 if getattr(example, "dtype", None) == np.float32 else np.float64


def check_binary(final: Any, columns: Sequence[Derived]) -> None:
    """Raise `UnsupportedError` for Bernoulli naive Bayes of columns that may hold more than zeros and ones."""
    if type(final).__name__ != "BernoulliNB":
        return
    for column in columns:
        feature = column.feature
        binary = (
            feature is not None and not column.chain and (feature.kind == "missing" or set(feature.table) <= {0.0, 1.0})
        )
        if not binary or feature is None or feature.kind not in MARKED:
            refuse("BernoulliNB of columns that are not one-hot encoded", "encode them, or use GaussianNB or trees")


def with_columns(table: Table, features: Sequence[Feature], result: Result) -> Schema:
    """The schema; columns that nothing reads stay in it only where others come after them."""
    for each in features:
        if (each.kind != "lookup") == (table.columns[each.column].categories is not None):
            refuse(f"column `{table.columns[each.column].name}` as a category and as a number", "copy the column")
    used = sorted({at for each in features for at in (each.column, *each.together)})
    place = {old: new for new, old in enumerate(used)}
    kept = [
        replace(each, column=place[each.column], together=tuple(place[at] for at in each.together)) for each in features
    ]
    return Schema(tuple(table.columns[at] for at in used), tuple(kept), result)


def of_layers(scores: Scores, table: Table, columns: Sequence[Derived]) -> Layers:
    """The sums that columns are, as the first layer."""
    sums = [combined([column], np.ones(1), 0.0) for column in columns]
    features = list(dict.fromkeys(each for column in sums for each in column.terms or {}))
    if not features:
        refuse("a pipeline that reads nothing", "see that it keeps some columns")
    places = {each: at for at, each in enumerate(features)}
    weight = np.zeros((len(sums), len(features)))
    for row, column in enumerate(sums):
        for each, factor in (column.terms or {}).items():
            weight[row, places[each]] = factor
    first = Dense(weight, np.array([column.constant for column in sums]))
    schema = with_columns(table, features, scores.result)
    used = sorted({at for each in features for at in (each.column, *each.together)})
    typical = {new: table.typical[old] for new, old in enumerate(used) if old in table.typical}
    return Layers(
        schema, first, scores, Table(list(schema.columns), typical), tuple(each.name for each in table.columns)
    )


def of_trees(final: Any, table: Table, columns: Sequence[Derived], kind: type) -> Trees:
    """Trees with their thresholds where clients' numbers are."""
    ensemble = ensemble_of(final)
    if any(ensemble.categories):
        refuse(f"{ensemble.name} with categories of its own", "encode them in the pipeline, or compile it without one")
    tested = sorted({at for tree in ensemble.trees for at in tree.feature.tolist() if at >= 0}) or [0]
    features = list(dict.fromkeys(each for at in range(len(columns)) if (each := columns[at].feature) is not None))
    for at in tested:
        if columns[at].feature is None:
            refuse("trees behind PCA or another step that mixes columns", "train the trees on the columns themselves")
    narrow = any(name in NARROW for _, name in kinds(final))
    made = moved(ensemble, columns, features, kind, narrow)
    classes = tuple(map(str, np.asarray(getattr(final, "classes_", ())).tolist()))
    return Trees(with_columns(table, features, result_of(ensemble, classes)), made)


def encoded(schema: Schema, names: Sequence[str], rows: Any) -> Floats:
    """Inputs (N, features) of a data frame, of columns by name, or of an array (N, columns) of the columns `names`."""
    if is_frame(rows) or isinstance(rows, Mapping):
        return schema.encode(by_column(rows), "the example")
    x = np.asarray(rows)
    if x.ndim != 2 or x.shape[1] != len(names):
        raise MisuseError(f"the example has shape {list(x.shape)}; the pipeline reads rows of {len(names)} columns")
    return schema.encode(dict(zip(names, x.T, strict=True)), "the example")
