"""`tacit run`."""

from tacit.cli.clipping import check
from tacit.cli.options import AsJson, InputFiles, ModelFile, Strict, Texts
from tacit.cli.pair import PlannedPairOptions
from tacit.cli.results import logits, made, show_prediction
from tacit.cli.rows import RowOptions
from tacit.cli.writing import TOKENS, Asked, Drafted, DrawOptions, Prompt, Tokens, draft_of, text_of, write
from tacit.data.inputs import read
from tacit.errors import MisuseError
from tacit.model import Model
from tacit.report import sentences, terminal


def run(
    model: ModelFile,
    options: PlannedPairOptions,
    rows: RowOptions,
    drawn: DrawOptions,
    inputs: InputFiles = None,
    text: Texts = None,
    strict: Strict = False,
    json: AsJson = False,
    prompt: Prompt = None,
    tokens: Tokens = TOKENS,
    draft: Drafted = None,
) -> None:
    """Try a private prediction on this machine: client and server as two processes over TLS.

    Reports bytes, rounds, time and memory of both, and compares the result with `simulate`. With --prompt a language
    model writes up to --tokens tokens, of which the client alone learns each.
    """
    compiled = Model(model)
    if prompt is not None:
        if inputs or text:
            raise MisuseError("--prompt stands alone: leave inputs and --text out")
        guesses = None if draft is None else draft_of(draft, text_of(compiled))
        write(compiled, options, Asked(prompt, tokens, drawn, guesses), json)
        return
    wanted = compiled.wanted._replace(kept=rows.kept)
    given = read(inputs or [], text, wanted, compiled.preprocessing, compiled.text)
    clipped = check(given.x, compiled.bounds, strict)
    with terminal.progress("running") as advance:
        done = options.planned(compiled).run(given.x, given.y, advance)
    meaning = None if compiled.schema is None else compiled.schema.result
    found = made(rows, given, done.prediction, meaning, inputs or [])
    if json:
        fields = sentences.content(compiled.text, given, done.prediction.logits)
        fields |= {} if found is None else found.fields()
        terminal.emit_json({**done.report, **logits(done.prediction), "clipped": clipped, **fields})
        return
    if found is None:
        show_prediction(given, compiled.text, done.prediction)
    else:
        found.show()
    terminal.show_run(done.report)
