"""`tacit run`."""

from tacit.cli.clipping import check
from tacit.cli.options import AsJson, InputFiles, ModelFile, Strict, Texts
from tacit.cli.pair import PlannedPairOptions
from tacit.cli.results import logits, show_prediction
from tacit.data.inputs import read
from tacit.model import Model
from tacit.report import sentences, terminal


def run(
    model: ModelFile,
    options: PlannedPairOptions,
    inputs: InputFiles = None,
    text: Texts = None,
    strict: Strict = False,
    json: AsJson = False,
) -> None:
    """Try a private prediction on this machine: client and server as two processes over TLS.

    Reports bytes, rounds, time and memory of both, and compares the result with `simulate`.
    """
    compiled = Model(model)
    given = read(inputs or [], text, compiled.wanted, compiled.preprocessing, compiled.text)
    clipped = check(given.x, compiled.bounds, strict)
    with terminal.progress("running") as advance:
        done = options.planned(compiled).run(given.x, given.y, advance)
    if json:
        fields = sentences.content(compiled.text, given, done.prediction.logits)
        terminal.emit_json({**done.report, **logits(done.prediction), "clipped": clipped, **fields})
        return
    show_prediction(given, compiled.text, done.prediction)
    terminal.show_run(done.report)
