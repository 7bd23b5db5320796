"""`tacit evaluate`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tacit.cli.options import AsJson, ModelFile
from tacit.cli.pair import PairOptions
from tacit.measure import evaluation
from tacit.model import Model
from tacit.report import terminal


def evaluate(
    model: ModelFile,
    options: PairOptions,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA.npz|TEXTS.tsv",
            help="Inputs `x` (or pixels) and labels `y`; or texts, "
            "with columns sentence1, sentence2 and score or label, or sentence and label.",
            show_default=False,
        ),
    ],
    mode: Annotated[
        Literal["plain", "simulate", "private"], typer.Option(help="Float source, interpreter, or two processes.")
    ] = "simulate",
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N inputs or pairs.")] = None,
    source: Annotated[
        Path | None,
        typer.Option("--model", metavar="M.onnx|DIR", help="Float source: for --mode plain, or to compare with."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Measure accuracy on labelled data, in float, in integers or in a private run.

    Of two classes: F1 and Matthews' correlation too; of estimated scores: Pearson's and Spearman's. Classifiers
    read both sentences of a pair at once. Of sentence encoders: cosines with the float embeddings, and how
    well those of pairs rank their scores.
    """
    pair = options.pair(Model(model))
    with terminal.progress("evaluating") as advance:
        content = evaluation.evaluate(mode, pair, evaluation.read(pair.model, data, limit), source, advance)
    if json:
        terminal.emit_json(content)
    else:
        terminal.show_run(content)
