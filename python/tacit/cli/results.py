"""How commands show the results of a run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.inputs import Inputs
from tacit.data.text import Text
from tacit.report import sentences, terminal
from tacit.session.client import Prediction


def show_results(
    given: Inputs,
    text: Text | None,
    labels: NDArray[np.int64],
    values: NDArray[np.float64] | None,
    names: list[str],
    shape: tuple[int, ...],
    probabilities: NDArray[np.float64] | None = None,
) -> None:
    """Embeddings of texts where the outputs (N, outputs) are that; else the best classes of each input.

    Results of several axes, or of a single number, are no classes.
    """
    embeddings = None if text is None or values is None else text.embeddings(values, given.x)
    if text is not None and embeddings is not None:
        sentences.show(text, given, embeddings)
    elif values is not None and not are_classes(shape):
        terminal.show_values(given.names, values, shape)
    else:
        terminal.show_results(given.names, labels, values, names, probabilities)


def are_classes(shape: tuple[int, ...]) -> bool:
    """Whether a result is a score for each of several classes: one axis is longer than one."""
    return sum(length > 1 for length in shape) == 1


def show_prediction(given: Inputs, text: Text | None, prediction: Prediction) -> None:
    """The results of a private run."""
    names = prediction.report.get("labels", [])
    shape = prediction.shape
    show_results(given, text, prediction.classes, prediction.logits, names, shape, prediction.probabilities)


def logits(prediction: Prediction) -> dict[str, Any]:
    """Integer logits and the shape of a result when the server reveals them; probabilities when it reveals those."""
    revealed = prediction.reveals_logits
    shown = {"logits": prediction.outputs.tolist() if revealed else None}
    shown["shape"] = list(prediction.shape) if revealed else None
    probabilities = prediction.probabilities
    return shown if probabilities is None else {**shown, "probability": probabilities.tolist()}
