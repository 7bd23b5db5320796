"""How commands show the results of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.cli.rows import Results, RowOptions, are_rows
from tacit.data.inputs import Inputs
from tacit.data.links import Link
from tacit.data.parts import apart
from tacit.data.schema import Result, usual
from tacit.data.text import Text
from tacit.importers.source import Part
from tacit.report import sentences, terminal
from tacit.session.client import Prediction
from tacit.session.reveal import BUCKET


def show_results(
    given: Inputs,
    text: Text | None,
    labels: NDArray[np.int64],
    values: NDArray[np.float64] | None,
    names: list[str],
    shape: tuple[int, ...],
    probabilities: NDArray[np.float64] | None = None,
    parts: Sequence[Part] = (),
    link: Link | None = None,
) -> None:
    """Embeddings of texts where the outputs (N, outputs) are that; else the best classes of each input.

    Results of several axes, or of a single number, are no classes. Each of several results, `parts`, is shown alone.
    """
    if values is not None and len(parts) > 1:
        for part, own in zip(parts, apart(parts, values).values(), strict=True):
            terminal.show_part(part.name)
            flat = own.reshape(len(own), -1)
            show_results(given, None, flat.argmax(axis=1), flat, [], part.shape)
        return
    embeddings = None if text is None or values is None else text.embeddings(values, given.x)
    if text is not None and embeddings is not None:
        sentences.show(text, given, embeddings)
    elif text is not None and values is not None and sentences.show_found(text, given, values):
        return
    elif values is not None and not are_classes(shape):
        terminal.show_values(given.names, values, shape, link)
    else:
        shown = probabilities if link is None or values is None else link.estimates(values)
        terminal.show_results(given.names, labels, values, names, shown)


def are_classes(shape: tuple[int, ...]) -> bool:
    """Whether a result is a score for each of several classes: one axis is longer than one."""
    return sum(length > 1 for length in shape) == 1


def show_prediction(given: Inputs, text: Text | None, prediction: Prediction) -> None:
    """The results of a private run."""
    names = prediction.names
    shape = prediction.shape
    parts = prediction.parts("outputs")
    certain, link = prediction.probabilities, prediction.link
    show_results(given, text, prediction.classes, prediction.logits, names, shape, certain, parts, link)


def made(
    rows: RowOptions, given: Inputs, prediction: Prediction, meaning: Result | None, files: Sequence[str]
) -> Results | None:
    """Results of rows of a private run, written to a file where someone asks for that; None for other results."""
    if len(prediction.parts("outputs")) > 1 or not are_rows(given, rows, meaning, files):
        return None
    known = usual(prediction.outputs.shape[1], prediction.names, prediction.link)
    names = [] if meaning is not None and prediction.report["reveal"] != BUCKET else prediction.names
    found = rows.results(given, prediction.logits, prediction.classes, meaning or known, names)
    found = replace(found, certain=prediction.probabilities)
    if rows.output is not None:
        found.write(rows.output)
    return found


def by_name(results: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    """Several results in real units, by their names; nothing for a single one."""
    return {"results": {name: values.tolist() for name, values in results.items()}} if results else {}


def estimated(link: Link | None, values: NDArray[np.float64] | None) -> dict[str, Any]:
    """The model's link, and what it makes of real results, null where these are not revealed; nothing without one."""
    if link is None:
        return {}
    return {"link": link.content(), "estimates": None if values is None else link.estimates(values).tolist()}


def logits(prediction: Prediction) -> dict[str, Any]:
    """Integer logits and the shape of a result when the server reveals them; probabilities when it reveals those."""
    revealed = prediction.reveals_logits
    shown = {"logits": prediction.outputs.tolist() if revealed else None}
    shown["shape"] = list(prediction.shape) if revealed else None
    shown |= by_name(prediction.named)
    shown |= estimated(prediction.link, prediction.logits)
    probabilities = prediction.probabilities
    return shown if probabilities is None else {**shown, "probability": probabilities.tolist()}
