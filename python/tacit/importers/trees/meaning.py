"""What results of ensembles mean to those who read them."""

from tacit.data.schema import Result, usual
from tacit.importers.trees.ensemble import Ensemble


def result_of(ensemble: Ensemble, classes: tuple[str, ...] = ()) -> Result:
    """What the results of an ensemble mean: of `classes`, where they are known, or else what its link says."""
    count = len(ensemble.base)
    if count == 1 and len(classes) == 2:
        return Result("margin", classes, link=ensemble.link)
    names = classes if len(classes) == count else ensemble.labels
    return usual(count, names, ensemble.link)
