"""Options by which servers and clients know each other, which several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Plaintext = Annotated[bool, typer.Option("--plaintext", help="No TLS; loopback only.")]

# These options are those of commands that serve.
ClientAuthority = Annotated[Path | None, typer.Option(help="Admit only clients this authority (PEM) vouches for.")]
ClientRevocations = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Certificates of --client-ca that are revoked (PEM).")
]
Tokens = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Tokens of clients (`tacit token`); every client must show one."),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="total=N,per-day=N,per-minute=N",
        help="Inputs of a client that has no budget of its own in the ledger. Default: no limit.",
    ),
]

# These options are those of commands that ask a server.
Pin = Annotated[str | None, typer.Option(help="Pin of the server's key, as `serve` prints it.")]
Authority = Annotated[Path | None, typer.Option(help="Authority (PEM) that vouches for the server.")]
ClientCertificate = Annotated[Path | None, typer.Option(help="Client certificate (PEM).")]
ClientKey = Annotated[Path | None, typer.Option(help="Private key of --certificate (PEM).")]
TokenFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the token that says who you are, if the server asks.")
]
