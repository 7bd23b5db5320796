"""`tacit evaluate`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tacit.cli.options import AsJson, ModelFile
from tacit.cli.pair import PairOptions
from tacit.cli.remote import RemoteOptions
from tacit.cli.writing import Drafted, draft_of, draft_pass, text_of
from tacit.data.examples import Examples
from tacit.errors import MisuseError
from tacit.measure import evaluation, tables
from tacit.measure.quality import Metric
from tacit.measure.writing import Answers
from tacit.model import Model
from tacit.report import terminal
from tacit.session.drafts import Guesses
from tacit.session.pair import Pair


def evaluate(
    model: ModelFile,
    options: PairOptions,
    remote: RemoteOptions,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA.npz|ROWS.csv|TEXTS.tsv",
            help="Inputs `x` (or pixels) and labels `y`; rows of a table (.csv, .parquet) with --target; or texts, "
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
    metric: Annotated[
        Metric,
        typer.Option(help="How results are compared with the float model's. auto: by the shape of a result."),
    ] = "auto",
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Of a table: the column of true classes, or of true numbers."),
    ] = None,
    expected: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Of a table: the column of the library's own scores, to compare with."),
    ] = None,
    answers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Of a language model: each line of a .txt file is a prompt, and what is looked at are the float "
            "model's answers of up to N tokens. Without it the lines themselves are.",
        ),
    ] = None,
    draft: Drafted = None,
    json: AsJson = False,
) -> None:
    """Measure accuracy on labelled data, in float, in integers or in a private run.

    With --model, say how near results are to those of the float model: labels by the best class, regression
    by errors in real units, tokens by the best class of each, segmentation by intersection over union, embedding by
    the cosine; and one word: faithful (a score of 0.99 or more), close (0.95) or poor.

    Of two classes: F1 and Matthews' correlation too; of estimated scores: Pearson's and Spearman's. Classifiers
    read both sentences of a pair at once. Of sentence encoders: cosines with the float embeddings, and how
    well those of pairs rank their scores.

    With --server a private run goes to a server elsewhere, or to all servers behind the door of a fleet, in sessions of
    --inputs, --workers at a time; what breaks off is tried again, and --results keeps what is done.

    Of language models compiled with --context: how often the best next token is the float model's, and how well both
    foresee the texts (perplexity). With --answers and --draft: how many tokens a run of --pass P tokens writes.

    Of rows of a table with --target: accuracy, area under the ROC curve, log loss and the statistic of Kolmogorov and
    Smirnov of classifiers; root mean square error, mean absolute error and R2 of estimates.
    """
    pair = remote.reached(options.pair(Model(model)), mode, options.threads)
    with terminal.progress("evaluating") as advance:
        kept = tuple(dict.fromkeys(name for name in (target, expected) if name is not None))
        given = evaluation.read(pair.model, data, limit, kept)
        if isinstance(given, Examples) and kept:
            content = tables.evaluate(mode, pair, given, tables.Columns(target, expected), advance)
        else:
            reference = evaluation.Reference(source, metric, looked_at(pair, answers, draft))
            content = evaluation.evaluate(mode, pair, given, reference, advance)
    if json:
        terminal.emit_json(content)
    else:
        terminal.show_run(content)


def looked_at(pair: Pair, answers: int | None, draft: str | None) -> Answers | None:
    """Answers of a language model, and what guesses them; raises `MisuseError` for a draft without answers."""
    if answers is None:
        if draft is not None:
            raise MisuseError("--draft guesses answers: give --answers N too")
        return None
    if draft is None:
        return Answers(answers)
    found = draft_of(draft, text_of(pair.model))
    return Answers(answers, Guesses(found, draft_pass(found) if pair.pass_inputs == 1 else pair.pass_inputs))
