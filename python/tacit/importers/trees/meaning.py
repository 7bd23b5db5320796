"""What rows and results of ensembles mean to those who have them."""

import math

from tacit.data.schema import Column, Feature, Result, Schema, usual
from tacit.importers.trees.ensemble import Ensemble


def result_of(ensemble: Ensemble, classes: tuple[str, ...] = ()) -> Result:
    """What the results of an ensemble mean: of `classes`, where they are known, or else what its link says."""
    count = len(ensemble.base)
    if count == 1 and len(classes) == 2:
        return Result("margin", classes, link=ensemble.link)
    names = classes if len(classes) == count else ensemble.labels
    return usual(count, names, ensemble.link)


def schema_of(ensemble: Ensemble) -> Schema | None:
    """The columns of an ensemble's rows, of which categories become the codes that trees test; None without names."""
    if not ensemble.columns:
        return None
    plain = Schema.plain(ensemble.columns, result_of(ensemble))
    if not any(ensemble.categories):
        return plain
    columns, features = list(plain.columns), list(plain.features)
    for at, values in enumerate(ensemble.categories):
        if values:
            columns[at] = Column(ensemble.columns[at], (*values, None), ensemble.unknown_is_missing)
            codes = (*map(float, range(len(values))), math.nan, math.nan)
            features[at] = Feature("lookup", at, codes)
    return Schema(tuple(columns), tuple(features), plain.result)
