"""Histogram-based gradient boosting of scikit-learn, whose thresholds have 64 bits.

Decisions are those of `_predict_one_from_raw_data` (sklearn/ensemble/_hist_gradient_boosting/_predictor.pyx).
Categories are numbers as the estimator was trained with; those that it does not know go where missing values go.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.links import Link
from tacit.errors import UnsupportedError
from tacit.importers.trees.cuts import Cuts, at_most, equal_to
from tacit.importers.trees.ensemble import Ensemble, Tree, interleaved
from tacit.importers.trees.grower import Grower

LINKS = {"LogLink": "exp", "LogitLink": "sigmoid", "HalfLogitLink": "sigmoid", "MultinomialLogit": "softmax"}
"""Links by the name of the class of scikit-learn's own."""
IDENTITY = "IdentityLink"


def histogram_boosted(estimator: Any) -> Ensemble:
    """The trees of a fitted estimator; scores before the link."""
    name = type(estimator).__name__
    kind = type(estimator._loss.link).__name__
    if kind not in LINKS and kind != IDENTITY:
        raise UnsupportedError(f"{name} with the link {kind}; use a loss of scikit-learn")
    link = None if kind == IDENTITY else Link(LINKS[kind], 2.0 if kind == "HalfLogitLink" else 1.0)
    known = Columns(estimator)
    stages = estimator._predictors
    results = len(stages[0])
    classes = tuple(map(str, getattr(estimator, "classes_", ())))
    return Ensemble(
        name=name,
        features=int(estimator.n_features_in_),
        base=tuple(np.broadcast_to(np.ravel(estimator._baseline_prediction), (results,)).astype(float).tolist()),
        trees=interleaved([[tree(stage[result], known) for stage in stages] for result in range(results)]),
        labels=classes if len(classes) == results else (),
        columns=tuple(map(str, getattr(estimator, "feature_names_in_", ()))),
        notes=() if link is None else (f"results are scores: {link.words}",),
        link=link,
    )


class Columns:
    """Where the features of trees stand in rows, and what the codes of categories are."""

    def __init__(self, estimator: Any) -> None:
        """Read the encoder, which has the columns of categories in front."""
        count = int(estimator.n_features_in_)
        self.places = np.arange(count)
        self.codes: dict[int, NDArray[np.float64]] = {}
        flags = getattr(estimator, "is_categorical_", None)
        if getattr(estimator, "_preprocessor", None) is None or flags is None:
            return
        flags = np.asarray(flags, np.bool_)
        self.places = np.concatenate([np.flatnonzero(flags), np.flatnonzero(~flags)])
        encoder = estimator._preprocessor.named_transformers_["encoder"]
        for at, values in enumerate(encoder.categories_):
            try:
                self.codes[at] = np.asarray(values, np.float64)
            except (TypeError, ValueError) as error:
                raise UnsupportedError(
                    f"{type(estimator).__name__} with categories that are no numbers, in column {self.places[at]}; "
                    "encode them as numbers before training (OrdinalEncoder)"
                ) from error


def tree(predictor: Any, known: Columns) -> Tree:
    """One tree of a `TreePredictor`."""
    nodes = predictor.nodes
    grower = Grower(len(nodes))
    for at, node in enumerate(nodes):
        if node["is_leaf"]:
            grower.leaf(at, float(node["value"]))
            continue
        feature, missing_left = int(node["feature_idx"]), bool(node["missing_go_to_left"])
        if node["is_categorical"]:
            words = predictor.raw_left_cat_bitsets[int(node["bitset_idx"])]
            cuts = category(np.asarray(words, np.uint32), known.codes[feature], missing_left)
        else:
            cuts = at_most(float(node["num_threshold"]), missing_left)
        grower.test(at, int(known.places[feature]), cuts, (int(node["left"]), int(node["right"])))
    return grower.tree()


def category(words: NDArray[np.uint32], values: NDArray[np.float64], missing_left: bool) -> Cuts:
    """Categories whose code is in the set go left, known ones that are not go right."""
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little").astype(bool)
    left = np.zeros(len(values), np.bool_)
    left[: min(len(values), len(bits))] = bits[: len(values)]
    numbers = np.isfinite(values)
    chosen = values[numbers & (~left if missing_left else left)]
    return equal_to(chosen.tolist(), missing_left, inside_left=not missing_left)
