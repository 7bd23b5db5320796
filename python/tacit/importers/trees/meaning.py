"""What results of ensembles mean to those who read them."""

from tacit.data.schema import Result
from tacit.importers.trees.ensemble import Ensemble

LOGISTIC = "logistic"
"""The link of scores whose probabilities are 1 / (1 + exp(-score))."""


def result_of(ensemble: Ensemble) -> Result:
    """What the results of an ensemble mean, as far as it says."""
    if len(ensemble.base) > 1:
        link = "probability" if any("results are probabilities" in note for note in ensemble.notes) else "softmax"
        return Result("scores", ensemble.labels or tuple(map(str, range(len(ensemble.base)))), link=link)
    return Result("margin", ("0", "1"), link=LOGISTIC) if ensemble.margin else Result("value")
