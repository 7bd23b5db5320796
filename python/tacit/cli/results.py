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
    probabilities: NDArray[np.float64] | None = None,
) -> None:
    """Embeddings of texts where the outputs (N, outputs) are that, else the best classes of each input."""
    embeddings = None if text is None or values is None else text.embeddings(values, given.x)
    if text is None or embeddings is None:
        terminal.show_results(given.names, labels, values, names, probabilities)
    else:
        sentences.show(text, given, embeddings)


def show_prediction(given: Inputs, text: Text | None, prediction: Prediction) -> None:
    """The results of a private run."""
    names = prediction.report.get("labels", [])
    show_results(given, text, prediction.classes, prediction.logits, names, prediction.probabilities)


def logits(prediction: Prediction) -> dict[str, Any]:
    """Integer logits when the server reveals them, null otherwise; probabilities when it reveals those."""
    shown = {"logits": prediction.outputs.tolist() if prediction.reveals_logits else None}
    probabilities = prediction.probabilities
    return shown if probabilities is None else {**shown, "probability": probabilities.tolist()}
