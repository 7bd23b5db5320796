"""Fitted transformers of scikit-learn, read by their attributes. Nothing here imports the package."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.data.cells import is_missing
from tacit.data.schema import Category, Feature
from tacit.importers.pipelines.columns import Derived, Step, Table, combined, refuse, transformed
from tacit.importers.trees.estimators import kinds

Columns = Sequence[Derived]
Converter = Callable[[Table, Any, Columns], list[Derived]]
LEAST_SPREAD = 1e-12


def converted(table: Table, transformer: Any, columns: Columns) -> list[Derived]:
    """The columns behind a fitted transformer; raises `UnsupportedError` for one that does not run."""
    if transformer is None or transformer == "passthrough":
        return list(columns)
    found = next((CONVERTERS[kind] for package, kind in kinds(transformer) if kind in CONVERTERS), None)
    if found is not None:
        return found(table, transformer, columns)
    if hasattr(transformer, "get_support"):
        return selected(table, transformer, columns)
    name = type(transformer).__name__
    known = ", ".join(sorted(CONVERTERS))
    return refuse(f"transformer {name}", f"apply it before the pipeline, or use one of {known}")


def steps(transformer: Any, columns: Columns) -> Iterator[tuple[int, Derived, Step]]:
    """Each column with its place and the step of a transformer that keeps columns apart and in order."""
    for at, column in enumerate(columns):
        yield at, column, Step(transformer, at, len(columns), at)


def entries(given: Any, count: int, otherwise: float) -> list[float]:
    """Numbers (columns,) of an attribute that may be None."""
    return [otherwise] * count if given is None else np.asarray(given, np.float64).ravel().tolist()


def standard(table: Table, scaler: Any, columns: Columns) -> list[Derived]:
    """StandardScaler: (x - mean) / deviation."""
    means = entries(scaler.mean_ if scaler.with_mean else None, len(columns), 0.0)
    scales = entries(scaler.scale_ if scaler.with_std else None, len(columns), 1.0)
    known = getattr(scaler, "mean_", None)
    for column, middle, scale in zip(columns, entries(known, len(columns), 0.0), scales, strict=True):
        table.seen(column, middle, scale)
    return affine(scaler, columns, [1 / scale for scale in scales], means)


def affine(scaler: Any, columns: Columns, factors: Sequence[float], middles: Sequence[float]) -> list[Derived]:
    """(x - middle) * factor of each column."""
    return [column.scaled(factors[at], -middles[at] * factors[at], step) for at, column, step in steps(scaler, columns)]


def min_max(table: Table, scaler: Any, columns: Columns) -> list[Derived]:
    """MinMaxScaler: x * scale + min, cut to its range with `clip`."""
    for column, low, high in zip(columns, scaler.data_min_.tolist(), scaler.data_max_.tolist(), strict=True):
        table.seen(column, (low + high) / 2, (high - low) / 4)
    if getattr(scaler, "clip", False):
        return [column.stepped(step) for _, column, step in steps(scaler, columns)]
    factors, shifts = scaler.scale_.tolist(), scaler.min_.tolist()
    return [column.scaled(factors[at], shifts[at], step) for at, column, step in steps(scaler, columns)]


def max_abs(table: Table, scaler: Any, columns: Columns) -> list[Derived]:
    """MaxAbsScaler: x / scale."""
    for column, largest in zip(columns, scaler.max_abs_.tolist(), strict=True):
        table.seen(column, 0.0, largest / 2)
    return affine(scaler, columns, (1 / scaler.scale_).tolist(), [0.0] * len(columns))


def robust(table: Table, scaler: Any, columns: Columns) -> list[Derived]:
    """RobustScaler: (x - centre) / scale."""
    centres = entries(scaler.center_ if scaler.with_centering else None, len(columns), 0.0)
    scales = entries(scaler.scale_ if scaler.with_scaling else None, len(columns), 1.0)
    for column, middle, scale in zip(columns, centres, scales, strict=True):
        table.seen(column, middle, scale)
    return affine(scaler, columns, [1 / scale for scale in scales], centres)


def normalizer(_: Table, scaler: Any, columns: Columns) -> list[Derived]:
    """Normalizer: by the client, who knows all that it needs, where it comes first."""
    together = [column.raw for column in columns]
    if any(at is None for at in together):
        refuse("a Normalizer behind other transformers", "make it the first step of the pipeline")
    places = tuple(at for at in together if at is not None)
    made = (Feature("normalised", at, (), str(scaler.norm), places) for at in places)
    return [Derived({each: 1.0}, 0.0, each) for each in made]


def projected(_: Table, projection: Any, columns: Columns) -> list[Derived]:
    """PCA and TruncatedSVD: products with components, of what is left of the mean."""
    components = np.asarray(projection.components_, np.float64)
    mean = getattr(projection, "mean_", None)
    middle = np.zeros(len(columns)) if mean is None else np.asarray(mean, np.float64)
    if getattr(projection, "whiten", False):
        components = components / np.sqrt(np.asarray(projection.explained_variance_, np.float64))[:, None]
    return [combined(columns, row, float(-row @ middle)) for row in components]


def imputer(_: Table, filler: Any, columns: Columns) -> list[Derived]:
    """SimpleImputer: what stands in for a missing number becomes a weight or a branch of the server."""
    missing = filler.missing_values
    if not (is_missing(missing)):
        refuse(f"an imputer of {missing!r}", "let missing_values be NaN, and leave cells of missing values empty")
    made: list[Derived] = []
    for at, (column, value) in enumerate(zip(columns, list(filler.statistics_), strict=True)):
        if isinstance(value, str):
            made.append(replace(column, fill=value))
        elif not is_missing(value):
            made.append(filled(column, float(value), Step(filler, at, len(columns), len(made))))
    indicator = getattr(filler, "indicator_", None)
    for at in [] if indicator is None else indicator.features_.tolist():
        made.append(flagged(columns[at]))
    if not made:
        refuse("an imputer that leaves no columns", "drop columns without values")
    return made


def filled(column: Derived, value: float, step: Step) -> Derived:
    """A column with `value` in place of what is missing."""
    known = column.terms
    if column.feature is None or column.feature.kind != "value" or known is None or set(known) != {column.feature}:
        return column if column.feature is not None and column.feature.kind == "lookup" else unfillable()
    at, factor = column.feature.column, known[column.feature]
    terms = {Feature("filled", at): factor, Feature("missing", at): value - column.constant}
    return Derived(terms, column.constant, column.feature, (*column.chain, step))


def unfillable() -> Derived:
    """Raise `UnsupportedError`."""
    return refuse("an imputer behind a transformer that mixes columns", "fill missing values first")


def flagged(column: Derived) -> Derived:
    """Whether a column is missing."""
    if column.feature is None or column.feature.kind != "value":
        return unfillable()
    missing = Feature("missing", column.feature.column)
    return Derived({missing: 1.0}, 0.0, missing)


def indicator(_: Table, finder: Any, columns: Columns) -> list[Derived]:
    """MissingIndicator: whether columns are missing."""
    return [flagged(columns[at]) for at in finder.features_.tolist()]


def categories_of(encoder: Any, at: int) -> tuple[Category, ...]:
    """The categories of a column of an encoder, in its order; None is a missing value."""
    given = encoder.categories_[at]
    return tuple(None if is_missing(value) else plain(value) for value in given.tolist())


def plain(value: Any) -> Category:
    """A category as a schema has it."""
    return value if isinstance(value, str) else float(value)


def lookups(table: Table, encoder: Any, columns: Columns) -> Iterator[tuple[int, int, list[list[float]]]]:
    """Of each column of an encoder its place, the first of its outputs, and all by categories, the last unknown."""
    first = [given[:1] for given in encoder.categories_]
    base = np.array([each[0] for each in first], object)[None]
    start = 0
    for at, column in enumerate(columns):
        source = column.raw
        if source is None:
            refuse(f"{type(encoder).__name__} behind other transformers", "let encoders read columns of the table")
        categories = categories_of(encoder, at)
        rows = np.repeat(base, len(categories), axis=0)
        rows[:, at] = encoder.categories_[at]
        made = transformed(encoder, rows).astype(np.float64)
        count = outputs_of(encoder, at)
        tables = made[:, start : start + count].T.tolist()
        tables = [[*entries, other] for entries, other in zip(tables, unknown_of(encoder, at, count), strict=True)]
        table.categorical(source, *extended(column, categories, tables, encoder))
        yield source, start, tables
        start += count


def extended(
    column: Derived, categories: tuple[Category, ...], tables: list[list[float]], encoder: Any
) -> tuple[tuple[Category, ...], bool]:
    """Categories with a missing one at the end where an imputer stands in for it, in `tables` too."""
    known = str(encoder.handle_unknown) != "error"
    if column.fill is None or None in categories:
        return categories, known
    for entries in tables:
        at = categories.index(column.fill) if column.fill in categories else len(categories)
        entries.insert(len(categories), entries[at])
    return (*categories, None), known


def outputs_of(encoder: Any, at: int) -> int:
    """How many outputs a column of an encoder has."""
    if hasattr(encoder, "drop_idx_"):
        rare = getattr(encoder, "infrequent_categories_", [None] * (at + 1))[at]
        count = len(encoder.categories_[at]) - (0 if rare is None else len(rare) - 1)
        dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[at]
        return count - (dropped is not None)
    return 1


def unknown_of(encoder: Any, at: int, count: int) -> list[float]:
    """The outputs of a category that an encoder does not know."""
    policy = str(encoder.handle_unknown)
    if policy == "use_encoded_value":
        return [float(encoder.unknown_value)]
    rare = getattr(encoder, "infrequent_categories_", [None] * (at + 1))[at]
    found = [0.0] * count
    if policy in ("infrequent_if_exist", "warn") and rare is not None and count:
        found[-1] = 1.0
    return found


def encoder(table: Table, given: Any, columns: Columns) -> list[Derived]:
    """OneHotEncoder and OrdinalEncoder: clients send what the public list of categories says."""
    made: list[Derived] = []
    for source, _, tables in lookups(table, given, columns):
        for entries in tables:
            each = Feature("lookup", source, tuple(entries))
            terms = None if any(math.isnan(value) for value in entries) else {each: 1.0}
            made.append(Derived(terms, 0.0, each))
    return made


def binned(_: Table, bins: Any, columns: Columns) -> list[Derived]:
    """KBinsDiscretizer into numbers: an increasing function, for trees."""
    if bins.encode != "ordinal":
        refuse(f"KBinsDiscretizer(encode={bins.encode!r})", "use encode='ordinal' and trees, or no bins")
    return [column.stepped(step) for _, column, step in steps(bins, columns)]


def selected(_: Table, selector: Any, columns: Columns) -> list[Derived]:
    """SelectKBest, VarianceThreshold and all others that keep some columns."""
    return [columns[at] for at in np.flatnonzero(selector.get_support()).tolist()]


def function(_: Table, given: Any, columns: Columns) -> list[Derived]:
    """FunctionTransformer: of no function, or an increasing one of NumPy's, for trees."""
    if given.func is None:
        return list(columns)
    if getattr(given.func, "__name__", "") not in ("log1p", "log", "sqrt", "expm1", "exp", "cbrt", "log2", "log10"):
        refuse("a FunctionTransformer of its own", "apply the function before the pipeline")
    return [column.stepped(step) for _, column, step in steps(given, columns)]


def pipeline(table: Table, given: Any, columns: Columns) -> list[Derived]:
    """Pipeline of transformers."""
    found = list(columns)
    for _, step in given.steps:
        found = converted(table, step, found)
    return found


def union(table: Table, given: Any, columns: Columns) -> list[Derived]:
    """FeatureUnion: the columns of several transformers side by side."""
    if given.transformer_weights:
        refuse("a FeatureUnion with weights", "leave transformer_weights out")
    parts = [each for _, each in given.transformer_list if each != "drop"]
    return [column for part in parts for column in converted(table, part, columns)]


def column_transformer(table: Table, given: Any, columns: Columns) -> list[Derived]:
    """ColumnTransformer: transformers of some columns each, side by side."""
    if given.transformer_weights:
        refuse("a ColumnTransformer with weights", "leave transformer_weights out")
    found: list[Derived] = []
    for _, transformer, chosen in given.transformers_:
        if not (isinstance(transformer, str) and transformer == "drop"):
            picked = [columns[at] for at in places(given, chosen, len(columns))]
            found += converted(table, transformer, picked) if picked else []
    return found


def places(given: Any, chosen: Any, count: int) -> list[int]:
    """The columns that an entry of a ColumnTransformer reads."""
    if isinstance(chosen, slice) and not isinstance(chosen.start, str) and not isinstance(chosen.stop, str):
        return list(range(count))[chosen]
    names = [str(name) for name in getattr(given, "feature_names_in_", ())]
    if isinstance(chosen, slice):
        ends = [None if end is None else names.index(end) for end in (chosen.start, chosen.stop)]
        return list(range(count))[slice(ends[0], None if ends[1] is None else ends[1] + 1)]
    listed = [chosen] if isinstance(chosen, str | int) else list(chosen)
    if listed and all(isinstance(each, bool | np.bool_) for each in listed):
        return [at for at, wanted in enumerate(listed) if wanted]
    return [names.index(each) if isinstance(each, str) else range(count)[int(each)] for each in listed]


CONVERTERS: Mapping[str, Converter] = {
    "ColumnTransformer": column_transformer,
    "FeatureUnion": union,
    "FunctionTransformer": function,
    "KBinsDiscretizer": binned,
    "MaxAbsScaler": max_abs,
    "MinMaxScaler": min_max,
    "MissingIndicator": indicator,
    "Normalizer": normalizer,
    "OneHotEncoder": encoder,
    "OrdinalEncoder": encoder,
    "PCA": projected,
    "Pipeline": pipeline,
    "RobustScaler": robust,
    "SimpleImputer": imputer,
    "StandardScaler": standard,
    "TruncatedSVD": projected,
}
"""Converters by the name of a class; what only keeps some columns needs none."""
