"""Arguments and options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer


class Suite(StrEnum):
    """Choices of protocols; this version runs `auto`."""

    AUTO = "auto"
    UFO = "ufo"
    GALA = "gala"
    GAZELLE = "gazelle"
    LOLA = "lola"
    COMET = "comet"
    FALCON = "falcon"
    FALCON_NTT = "falcon-ntt"


Reveal = Literal["output", "label"]
ModelFile = Annotated[Path, typer.Argument(metavar="X.tacit", help="Compiled model.", show_default=False)]
InputFile = Annotated[
    Path, typer.Argument(metavar="IN.npy", help="float32 input, or a batch with a leading axis.", show_default=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object.")]
RevealTo = Annotated[Reveal, typer.Option(help="What the client learns: all logits, or only the best label.")]
Transfers = Annotated[
    Literal["auto", "ferret", "softspoken2", "softspoken4", "softspoken8"],
    typer.Option("--ot", help="Where correlated transfers come from; auto suits --network, or else 400 Mbit/s."),
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
        max=64,
        metavar="B",
        help="Inputs of one run: they share rounds and ciphertexts. The last run is filled up with zeros.",
    ),
]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds without a byte from the peer before giving up.")]
ConnectTimeout = Annotated[float, typer.Option(min=0.1, help="Seconds for the connection and the TLS handshake.")]
SessionTimeout = Annotated[float, typer.Option(min=0.1, help="Seconds for a whole session, however busy.")]
Network = Annotated[
    str | None,
    typer.Option(
        metavar="LINK", help="Imitate a link and plan for it: lan, wan or RTTms,Mbps (both sides alike). Default: none."
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


def class_names(path: Path | None) -> tuple[str, ...]:
    """One name per line of a file; none without a file."""
    return () if path is None else tuple(path.read_text(encoding="utf-8").splitlines())
