"""Text that a private language model writes, as commands show it: `tacit run --prompt` and `tacit chat`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.options import AsJson, ModelFile
from tacit.cli.pair import PlannedPairOptions
from tacit.data import corpus
from tacit.data.text import Text
from tacit.errors import MisuseError, TacitError
from tacit.model import Model
from tacit.report import terminal
from tacit.session.client import Session
from tacit.session.drafts import Draft, NGrams
from tacit.session.generate import Piece, runs
from tacit.session.network import parse
from tacit.session.pair import Pair
from tacit.session.sampling import HOTTEST, Sampling

TOKENS = 32
MOST_TOKENS = 4096
NGRAMS = "ngrams"
"""The value of --draft that names no file."""
LEARNT = "label"
"""What a client learns of the numbers of all tokens: which one is largest."""
NUMBERS = "output"
"""The same, where tokens that it draws are cut off: all numbers."""
LINK = "lan"
"""What a session on this machine is planned for: a plan for loopback weighs bytes so little that it moves many more."""
FAR_SECONDS = 0.005
"""From this round trip on prompts are read in passes."""
FAR_PASS = 16
DRAFT_PASS = 4
"""Tokens of a run with a draft: the last one that is known, and guesses."""
MODEL_PASS = 8
"""Tokens of a run where a model guesses, which is right more often than n-grams are."""
PATIENCE_SECONDS = 300.0
"""How long a party may work without a byte: to prepare for many tokens takes long, more so on a busy machine."""
Tokens = Annotated[int, typer.Option("--tokens", min=1, max=MOST_TOKENS, help="Write at most so many tokens.")]
Drafted = Annotated[
    str | None,
    typer.Option(
        "--draft",
        metavar="ngrams|TEXTS.txt|MODEL",
        help="Of a language model with --context: guess what follows, and have --pass P tokens read at once (4 by "
        "itself, 8 with a model). ngrams: as the text or the package's own texts went on before; TEXTS.txt: as these "
        "lines do, too; MODEL: a public model of the same tokens, a directory or a .gguf file, which the client runs "
        "in the clear.",
    ),
]
Prompt = Annotated[str | None, typer.Option("--prompt", help="Continue this text with a language model.")]


@dataclass(frozen=True)
class DrawOptions:
    """How tokens of a language model are drawn."""

    temperature: Annotated[
        float,
        typer.Option(
            min=0,
            max=HOTTEST,
            help="Draw tokens of a language model by softmax of their numbers over this, by noise of the client's that "
            "the server does not see; 0: always the best one.",
        ),
    ] = 0.0
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draw the same tokens again. Default: noise of the system's.")
    ] = None
    top_k: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            min=1,
            help="Draw among the K best tokens. The client then learns the numbers of all tokens, not one token.",
        ),
    ] = None
    top_p: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            min=0,
            max=1,
            help="Draw among the best tokens that have this share of the probability together. The client then learns "
            "the numbers of all tokens.",
        ),
    ] = None

    def sampling(self) -> Sampling:
        """How tokens are drawn; raises `MisuseError` for options that do not go together."""
        return Sampling(self.temperature, self.seed, self.top_k, self.top_p)


@dataclass(frozen=True)
class Asked:
    """A prompt, how many tokens of an answer are wanted, how they are drawn, and what guesses them."""

    prompt: str
    tokens: int = TOKENS
    drawn: DrawOptions = DrawOptions()
    draft: Draft | None = None


@dataclass
class Answer:
    """The pieces of an answer so far."""

    prompt: str
    pieces: list[Piece] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What was written."""
        return "".join(piece.text for piece in self.pieces)

    def fields(self) -> dict[str, Any]:
        """The answer for JSON."""
        tokens = [
            {
                "token": piece.token,
                "seconds": piece.seconds,
                "bytes": piece.bytes,
                "rounds": piece.rounds,
                "drafted": piece.drafted,
            }
            for piece in self.pieces
        ]
        return {"prompt": self.prompt, "text": self.text, "tokens": tokens}

    def cost(self) -> str:
        """What a token took, for people."""
        count = max(len(self.pieces), 1)
        seconds = sum(piece.seconds for piece in self.pieces) / count
        total = sum(piece.bytes for piece in self.pieces) / count
        rounds = sum(piece.rounds for piece in self.pieces) / count
        guessed = sum(piece.drafted for piece in self.pieces)
        rightly = f" ({guessed} of them guessed rightly)" if guessed else ""
        return f"{len(self.pieces)} tokens{rightly}, each {seconds:.1f} s, {total / 1e6:.1f} MB and {rounds:.0f} rounds"


def text_of(model: Model) -> Text:
    """How a model's prompts become inputs; raises `MisuseError` for a model that writes no text."""
    if model.text is None or model.text.decoding is None:
        raise MisuseError(f"{model.path} writes no text: compile a language model (a directory, or a .gguf file)")
    return model.text


def suited_pass(options: PlannedPairOptions, text: Text, draft: Draft | None = None) -> int:
    """How many tokens are read at once, where nobody says.

    With a draft a few. Without one those of a prompt are read one by one where rounds take little time.
    """
    stepped = text.decoding is not None and text.decoding.steps is not None
    if options.pass_inputs is not None or options.offline or not stepped:
        return options.pass_inputs or 1
    if draft is not None:
        return draft_pass(draft)
    is_far = options.network is not None and parse(options.network).round_trip_seconds >= FAR_SECONDS
    return FAR_PASS if is_far else 1


def draft_pass(draft: Draft) -> int:
    """How many tokens a run reads with a draft, where nobody says."""
    return DRAFT_PASS if isinstance(draft, NGrams) else MODEL_PASS


def draft_of(named: str, text: Text) -> Draft:
    """What guesses, by the value of --draft.

    Raises `MisuseError` for a file that does not exist, and for a model whose tokens are others.
    """
    if named != NGRAMS and not named.endswith(".txt"):
        # Models are read by packages that a client without a draft does not need.
        from tacit.session.draft_model import DraftModel

        return DraftModel.of(Path(named), text)
    texts = [*corpus.own(), *(() if named == NGRAMS else corpus.load(Path(named)).texts)]
    return NGrams(text.plain.encode(one, add_special_tokens=False).ids for one in texts)


def planned_for_link(pair: Pair) -> Pair:
    """The pair, which plans for `LINK` and imitates nothing, where no network is imitated."""
    return pair if pair.network is not None else replace(pair, link=LINK)


@contextmanager
def opened(
    options: PlannedPairOptions, model: Model, inputs: int, at_once: int, reveal: str = LEARNT
) -> Iterator[Session]:
    """A session of both parties on this machine, in which the client learns the next token and nothing else.

    Where `reveal` is "output" it learns the numbers of all tokens. Layers run as is soonest done in a local network,
    where no other one is named, and passes have `at_once` tokens.
    """
    patience = max(options.timeout, PATIENCE_SECONDS)
    options = replace(options, reveal=reveal, timeout=patience, pass_inputs=at_once)
    pair = planned_for_link(options.planned(model))
    with pair.server() as server, pair.dial(server).session(inputs) as session:
        yield session


def answered(session: Session, text: Text, asked: Asked, json: bool) -> Answer:
    """The answer to a prompt, shown while it is written; an error shows what there is before it is raised."""
    answer = Answer(asked.prompt)
    try:
        drawn = asked.drawn
        for piece in session.generate(
            text,
            asked.prompt,
            asked.tokens,
            drawn.temperature,
            drawn.seed,
            draft=asked.draft,
            top_k=drawn.top_k,
            top_p=drawn.top_p,
        ):
            answer.pieces.append(piece)
            if not json:
                typer.echo(piece.text, nl=False)
    except TacitError:
        if json:
            terminal.emit_json({**answer.fields(), "complete": False})
        raise
    finally:
        if not json:
            typer.echo()
    return answer


def learnt(drawn: DrawOptions) -> str:
    """What the client learns of the numbers of all tokens; raises `MisuseError` for options that do not go together."""
    return NUMBERS if drawn.sampling().cuts else LEARNT


def write(model: Model, options: PlannedPairOptions, asked: Asked, json: bool) -> None:
    """Continue one prompt."""
    text = text_of(model)
    at_once = suited_pass(options, text, asked.draft)
    inputs = runs(text, asked.prompt, asked.tokens, at_once, asked.draft is not None)
    with opened(options, model, inputs, at_once, learnt(asked.drawn)) as session:
        answer = answered(session, text, asked, json)
    if json:
        terminal.emit_json({**answer.fields(), "complete": True})
    else:
        terminal.note(answer.cost())


def chat(
    model: ModelFile,
    options: PlannedPairOptions,
    drawn: DrawOptions,
    tokens: Tokens = TOKENS,
    draft: Drafted = None,
    json: AsJson = False,
) -> None:
    """Talk to a private language model on this machine: client and server as two processes over TLS.

    Each line of standard input is a prompt, and stands alone: earlier ones are not part of it. The text appears token
    by token, and behind each answer what a token took. The server sees runs of one size and nothing else.
    """
    compiled = Model(model)
    text = text_of(compiled)
    guesses = None if draft is None else draft_of(draft, text)
    at_once = suited_pass(options, text, guesses)
    inputs = MOST_TOKENS * (1 if guesses is None else at_once)
    with opened(options, compiled, inputs, at_once, learnt(drawn)) as session:
        for line in prompts(json):
            answer = answered(session, text, Asked(line, tokens, drawn, guesses), json)
            if isinstance(guesses, NGrams):
                guesses.learn([*text.prompt(line), *(piece.token for piece in answer.pieces)])
            if json:
                terminal.emit_json({**answer.fields(), "complete": True})
            else:
                terminal.note(answer.cost())


def prompts(json: bool) -> Iterator[str]:
    """Lines of standard input that have something in them."""
    while True:
        if not json:
            typer.echo("> ", nl=False)
        line = typer.get_text_stream("stdin").readline()
        if not line:
            return
        if line.strip():
            yield line.strip()
