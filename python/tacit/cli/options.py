"""Arguments and options that several commands share."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from tacit.data.preprocess import PRESETS
from tacit.errors import MisuseError
from tacit.session.patience import LONGEST_TIMEOUT
from tacit.session.reveal import Reveal


class Suite(StrEnum):
    """Choices of protocols."""

    AUTO = "auto"
    UFO = "ufo"
    GALA = "gala"
    GAZELLE = "gazelle"
    LOLA = "lola"
    COMET = "comet"
    FALCON = "falcon"
    FALCON_NTT = "falcon-ntt"


SECURE_AGAINST_CLIENT = "checked"
"""The suite whose server is secure against a client that sends anything."""


def against_client(suite: Suite, nonlinear: str | None) -> str:
    """The suite of `--secure-against client`; raises `BadParameter` where other protocols were asked for besides."""
    if suite is not Suite.AUTO or nonlinear is not None:
        raise typer.BadParameter(
            "models that are secure against their client have protocols of their own; drop --suite and --nonlinear",
            param_hint="'--secure-against'",
        )
    return SECURE_AGAINST_CLIENT


class Switch(StrEnum):
    """Passes of suite ufo that may be left out."""

    WINOGRAD = "winograd"
    FUSION = "fusion"
    RESIDUAL = "residual"
    SIGN = "sign"
    REWEIGHTING = "reweighting"


def limit(seconds: float) -> float:
    """The value of an option that is a limit in seconds; raises `BadParameter` for what is none."""
    # A comparison with nan is never true, so that the option's own bounds let it pass.
    if not 0 < seconds <= LONGEST_TIMEOUT:
        raise typer.BadParameter(f"{seconds:g} is no limit: name 0.1 to {LONGEST_TIMEOUT:,.0f} seconds")
    return seconds


AcceptLeakage = Annotated[
    bool,
    typer.Option(
        "--accept-leakage", help="Allow suite falcon (and flooding), which leak; for experiments, never for data."
    ),
]
RevealWord = Literal["output", "label", "probability", "bucket"]
ModelFile = Annotated[Path, typer.Argument(metavar="X.tacit", help="Compiled model.", show_default=False)]
InputFiles = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="IN...",
        help="Inputs: .npy, .npz (float32, or uint8 pixels; one or a batch with a leading axis), .csv, .png or "
        ".jpg; or texts, for a model that reads text.",
        show_default=False,
    ),
]
Texts = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="FILE|TEXT", help="Texts: a .txt file (a line each), a .tsv file, or a text."),
]
Tokenizer = Annotated[
    Path | None,
    typer.Option(
        "--tokenizer", metavar="X.text", help="How text becomes inputs: the file `compile` wrote for clients."
    ),
]
Preprocess = Annotated[
    str | None,
    typer.Option(
        "--preprocess",
        metavar="NAME|SPEC.json",
        help=f"How pixels become inputs: {', '.join(PRESETS)}, or a JSON file.",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse inputs beside the range the model was calibrated for.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")]


def reveal(text: str) -> str:
    """Give the text back if it says what may be revealed; raises `BadParameter` if it does not."""
    try:
        Reveal.of(text)
    except MisuseError as error:
        raise typer.BadParameter(str(error)) from error
    return text


RevealTo = Annotated[
    str,
    typer.Option(
        metavar="output|label|probability|bucket:EDGES",
        parser=reveal,
        help="What the client learns: all logits (or score, the same), only the best label, it and its softmax "
        "probability, or only the bucket of a score between edges, as bucket:-1,0.5,2, which stay secret.",
    ),
]
Transfers = Annotated[
    Literal["auto", "ferret", "softspoken2", "softspoken4", "softspoken8"],
    typer.Option("--ot", help="Where correlated transfers come from; auto suits --network, or else 400 Mbit/s."),
]
PostQuantum = Annotated[
    bool,
    typer.Option(
        "--post-quantum",
        help="Base transfers by ML-KEM-768 as well as by elliptic curves: 0.87 MB and some milliseconds more.",
    ),
]
Protocols = Annotated[
    str,
    typer.Option(
        metavar="auto|plain|measured|HOW",
        help="How layers run: auto plans each for --network (plain without one); measured (only `serve`): for the "
        "link to each client, measured when it connects. Or one way for all layers that have it: digits1 to digits8: "
        "comparisons by transfers of so many bits at a time; chain: in one message; ripple: by carries from "
        "bit to bit; masked: ReLUs that the client begins; circuits: garbled; rows1 to rows8, stages1 to stages8, "
        "tables1 to tables8, these with -chain or -ripple in place of the number, table, packing1 to packing4, "
        "folded1 to folded8, transfers, ahead, ahead2 to ahead64, or turns, turns+shallow or "
        "turns+shallow+near, behind one of these: see the documentation of the planner.",
    ),
]
Offline = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="K",
        help="Prepare K runs before their inputs, linear layers too: little is left for online.",
    ),
]
Batch = Annotated[
    int,
    typer.Option(
        min=1,
        max=16384,
        metavar="B",
        help="Inputs of one run, up to 64, of rows of numbers 1024, of lola 16384: they share rounds and ciphertexts. "
        "The last run is filled up with zeros.",
    ),
]
READS = "Of a language model with --context: read a prompt P tokens at a time, in the rounds of one; 1: one by one."
PassInputs = Annotated[int, typer.Option("--pass", min=1, max=64, metavar="P", help=READS)]
SuitedPass = Annotated[
    int | None,
    typer.Option(
        "--pass",
        min=1,
        max=64,
        metavar="P",
        help=f"{READS} Default: 1, of text that is written over a --network of 5 ms or more 16.",
    ),
]
SuitedBatch = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=16384,
        metavar="B",
        help="Inputs of one run, up to 64, of rows of numbers 1024, of lola 16384: they share rounds and ciphertexts. "
        "The last run is filled up with zeros. Default: 1, of a table with several rows what takes least time.",
    ),
]
Timeout = Annotated[
    float, typer.Option(min=0.1, callback=limit, help="Seconds without a byte from the peer before giving up.")
]
ConnectTimeout = Annotated[
    float, typer.Option(min=0.1, callback=limit, help="Seconds for the connection and the TLS handshake.")
]
SessionTimeout = Annotated[
    float, typer.Option(min=0.1, callback=limit, help="Seconds for a whole session, however busy.")
]
Network = Annotated[
    str | None,
    typer.Option(
        metavar="LINK",
        help="Imitate a link and plan for it: loopback (nothing is imitated), lan, wan or RTTms,Mbps (both sides "
        "alike). Default: none.",
    ),
]
MaxInputs = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Query budget: most inputs in one session. Default: 1,000,000."),
]
Threads = Annotated[int | None, typer.Option(min=1, max=64, help="Threads of this party, or of both. Default: 1.")]


def interval(text: str) -> tuple[float, float]:
    """`lo,hi` as two numbers."""
    low, _, high = text.partition(",")
    try:
        bounds = float(low), float(high)
    except ValueError:
        raise typer.BadParameter(f"`{text}` is not of the form lo,hi") from None
    if not -float("inf") < bounds[0] < bounds[1] < float("inf"):
        raise typer.BadParameter(f"`{text}` is no interval: lo must be below hi")
    return bounds


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`NAME=1x3x224x224` as the name of an input, empty if it is left out, and its shape."""
    name, _, sizes = text.rpartition("=")
    try:
        found = tuple(int(size) for size in sizes.split("x"))
    except ValueError:
        raise typer.BadParameter(f"`{text}` is not of the form NAME=1x3x224x224") from None
    if min(found) < 1 or len(found) < 2:
        raise typer.BadParameter(f"`{text}` is no shape: name the batch and at least one size, all 1 or more")
    return name, found


def pair(text: str) -> tuple[str, str]:
    """`IN=OUT` as two names."""
    before, sign, after = text.partition("=")
    if not (before and sign and after):
        raise typer.BadParameter(f"`{text}` is not of the form IN=OUT")
    return before, after


def assigned(text: str) -> tuple[str, float]:
    """`NAME=VALUE` as the name of an input and a number."""
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not name or not math.isfinite(number):
        raise typer.BadParameter(f"`{text}` is not of the form NAME=VALUE, with a number")
    return name, number


def widths(text: str) -> tuple[int, ...]:
    """`B,B,..` as numbers of bits."""
    try:
        bits = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"`{text}` is not of the form B,B,..") from None
    if not all(2 <= width <= 12 for width in bits):
        raise typer.BadParameter(f"widths are 2 to 12 bits, not {text}")
    return bits


def class_names(path: Path | None) -> tuple[str, ...]:
    """One name per line of a file; of a .tsv file, those of its column `name` or `class_name`. None without a file."""
    if path is None:
        return ()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise MisuseError(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise MisuseError(f"{path} is no text in UTF-8: {error}") from error
    return column(path, lines) if path.suffix == ".tsv" else tuple(lines)


def column(path: Path, lines: list[str]) -> tuple[str, ...]:
    """The class names of a table whose first line names its columns; a column `class_index` must count up from 0."""
    heading, *rows = [line.split("\t") for line in lines] or [[]]
    names = [name for name in ("name", "class_name") if name in heading]
    if not names or any(len(row) != len(heading) for row in rows):
        raise MisuseError(f"{path} is no table with a column `name` or `class_name` in every line")
    if "class_index" in heading:
        indices = [row[heading.index("class_index")] for row in rows]
        if indices != [str(index) for index in range(len(rows))]:
            raise MisuseError(f"{path} has a column `class_index` that does not count up from 0; sort and complete it")
    return tuple(row[heading.index(names[0])] for row in rows)
