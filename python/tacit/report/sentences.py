"""What the command line says of texts: embeddings, how similar they are, and what a server learned of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text as Cell

from tacit.data.answers import answer, words
from tacit.data.inputs import Inputs
from tacit.data.text import Embeddings, Text, unit
from tacit.report.terminal import console

MOST_COMPARED = 12
LONGEST_NAME = 48


def content(text: Text | None, inputs: Inputs, outputs: NDArray[np.float64] | None) -> dict[str, Any]:
    """Fields for `--json` of a run on texts; none for other inputs, or where outputs (N, outputs) are not revealed."""
    if text is None or outputs is None:
        return {}
    fields: dict[str, Any] = {"sequence": text.sequence}
    if inputs.lengths is not None:
        fields["tokens"] = inputs.lengths.tolist()
    embeddings = text.embeddings(outputs, inputs.x)
    if embeddings is None:
        return fields | found(text, inputs, outputs)
    return {**fields, "embeddings": embeddings.tolist(), "cosines": similarity(embeddings).tolist()}


def found(text: Text, inputs: Inputs, outputs: NDArray[np.float64]) -> dict[str, Any]:
    """Labels of words, or answers, of texts that are known; outputs (N, outputs)."""
    if inputs.lengths is None or text.pooling not in ("tokens", "spans"):
        return {}
    rows = [(name, row.reshape(text.sequence, -1)) for name, row in zip(inputs.names, outputs, strict=True)]
    if text.pooling == "tokens":
        return {"words": [[word.content() for word in words(text, *row)] for row in rows]}
    return {"answers": [answer(text, *row).content() for row in rows]}


def show_found(text: Text, inputs: Inputs, outputs: NDArray[np.float64]) -> bool:
    """Labels of words, or answers, with what a server learned of the texts; says whether there are any."""
    content = found(text, inputs, outputs)
    for name, labelled in zip(inputs.names, content.get("words", ()), strict=False):
        said = " ".join(f"{entry['word']} [{entry['label']}]" for entry in labelled)
        console.print(f"{shortened(name)}: {said}", highlight=False, markup=False)
    for name, best in zip(inputs.names, content.get("answers", ()), strict=False):
        said = f"{best['answer']!r} ({best['start']} to {best['end']}, score {best['score']:.3f})"
        console.print(f"{shortened(name)}: {said}", highlight=False, markup=False)
    if content:
        console.print(bucket_line(text, len(inputs.names)), highlight=False)
    return bool(content)


def similarity(embeddings: Embeddings) -> Embeddings:
    """Cosines of all pairs (N, N)."""
    scaled = unit(embeddings)
    return np.asarray(scaled @ scaled.T)


def show(text: Text, inputs: Inputs, embeddings: Embeddings) -> None:
    """A row per text; and how similar each is to each, as long as they are few."""
    console.print(embedding_table(inputs, embeddings))
    if 1 < len(embeddings) <= MOST_COMPARED:
        console.print(cosine_table(similarity(embeddings)))
    console.print(bucket_line(text, len(embeddings)), highlight=False)


def bucket_line(text: Text, count: int) -> str:
    """What is revealed of texts in a private run."""
    which = "the text" if count == 1 else f"each of the {count} texts"
    return f"of {which} a server learns that it has at most {text.sequence} tokens, and nothing else"


def embedding_table(inputs: Inputs, embeddings: Embeddings) -> Table:
    """Tokens and length of the embedding of each text."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("", "text", "tokens", "length of embedding"):
        table.add_column(heading, justify="left" if heading in ("", "text") else "right", overflow="fold")
    lengths = np.linalg.norm(embeddings, axis=1)
    for index, (name, length) in enumerate(zip(inputs.names, lengths, strict=True)):
        kept = int(inputs.x[index, -1].sum())
        table.add_row(*map(Cell, (str(index + 1), shortened(name), str(kept), f"{length:.3f}")))
    return table


def cosine_table(cosines: Embeddings) -> Table:
    """A square of cosines."""
    table = Table(title="Cosine of embeddings", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    for index in range(len(cosines)):
        table.add_column(str(index + 1), justify="right")
    for index, row in enumerate(cosines):
        table.add_row(str(index + 1), *(f"{value:.3f}" for value in row))
    return table


def shortened(name: str) -> str:
    """A text for a table."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
