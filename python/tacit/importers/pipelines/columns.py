"""Columns of a table on their way through the transformers of a pipeline.

A column is known in two ways, as far as there are both. As a sum of what clients send, times weights, plus a constant:
linear models take these weights into their own, so that no mean, deviation or filled value leaves the server. And as
an increasing function of one number that clients send, computed by the transformers themselves: thresholds of trees
are moved through it.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.data.schema import Category, Column, Feature
from tacit.errors import UnsupportedError

Terms = Mapping[Feature, float]


@dataclass(frozen=True)
class Step:
    """What a fitted transformer does to the input at place `at` of `width`, as its output at place `out`."""

    transformer: Any
    at: int
    width: int
    out: int


@dataclass(frozen=True)
class Derived:
    """A column of the matrix between two steps; `constant` plus `terms` of features, and `chain` of `feature`.

    `terms` are None for what is no sum, `feature` is None for what is no increasing function of one number. `fill` is
    the category that stands in for a missing one.
    """

    terms: Terms | None
    constant: float = 0.0
    feature: Feature | None = None
    chain: tuple[Step, ...] = ()
    fill: Category = None

    @property
    def raw(self) -> int | None:
        """The column of the table that this is, before any transformer; None for any other."""
        plain = self.feature is not None and self.feature.kind == "value" and not self.chain
        return self.feature.column if plain and self.feature is not None else None

    def scaled(self, factor: float, shift: float, step: Step) -> "Derived":
        """The column times `factor` plus `shift`, which `step` computes."""
        terms = None if self.terms is None else {each: factor * weight for each, weight in self.terms.items()}
        return Derived(terms, factor * self.constant + shift, self.feature, (*self.chain, step))

    def stepped(self, step: Step) -> "Derived":
        """An increasing function of the column that is no sum, which `step` computes."""
        return Derived(None, 0.0, self.feature, (*self.chain, step))


def combined(columns: Sequence[Derived], weights: NDArray[np.float64], constant: float) -> Derived:
    """The sum of `columns` times `weights` (columns,) plus `constant`; `UnsupportedError` where one is no sum."""
    terms: dict[Feature, float] = {}
    for column, weight in zip(columns, weights.tolist(), strict=True):
        if column.terms is None:
            refuse("a column that is cut or binned before a linear step", "leave clip=True or the binning out")
        constant += weight * column.constant
        for each, factor in column.terms.items():
            terms[each] = terms.get(each, 0.0) + weight * factor
    return Derived(terms, constant)


@dataclass
class Table:
    """The columns of a row as they are read, with what transformers tell of them.

    `typical` are a middle and a deviation of columns in training, which calibrate a model without examples; they stay
    on this machine.
    """

    columns: list[Column]
    typical: dict[int, tuple[float, float]] = field(default_factory=dict)

    def begun(self) -> list[Derived]:
        """All columns before any transformer."""
        values = (Feature("value", at) for at in range(len(self.columns)))
        return [Derived({value: 1.0}, 0.0, value) for value in values]

    def categorical(self, at: int, categories: tuple[Category, ...], unknown: bool) -> None:
        """Say that a column holds categories; raises `UnsupportedError` where encoders differ in them."""
        column = Column(self.columns[at].name, categories, unknown)
        if self.columns[at].categories is not None and self.columns[at] != column:
            refuse(f"two encoders of column `{column.name}` with other categories", "encode it once")
        self.columns[at] = column

    def seen(self, column: Derived, middle: float, deviation: float) -> None:
        """Keep what a scaler tells of a column that nothing has changed yet."""
        if column.feature is not None and column.feature.kind in ("value", "filled"):
            imputed = all(type(step.transformer).__name__ == "SimpleImputer" for step in column.chain)
            if imputed and np.isfinite([middle, deviation]).all():
                self.typical.setdefault(column.feature.column, (middle, deviation))


def transformed(transformer: Any, x: NDArray[Any]) -> NDArray[np.float64]:
    """What a fitted transformer makes of `x` (N, columns), in its own arithmetic, as a dense array."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = transformer.transform(x)
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made)


def refuse(what: str, instead: str) -> NoReturn:
    """Raise `UnsupportedError`."""
    raise UnsupportedError(f"{what}; {instead}")
