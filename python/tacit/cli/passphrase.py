"""Passphrases of secret keys: out of a file or from the terminal, never from the command line."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from tacit.errors import MisuseError
from tacit.report import terminal
from tacit.session import lola_files

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="File with the passphrase of NAME.secret. Default: ask for it, if one is needed.",
    ),
]
OTHERS = 0o077
LONGEST = 1024


def read(file: Path) -> str:
    """The passphrase in a file, without the end of its line; warns of a file that others may read."""
    try:
        with file.open("rb") as opened:
            content = opened.read(LONGEST + 1)
        text = content.decode().removesuffix("\n").removesuffix("\r")
        shared = file.stat().st_mode & OTHERS
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"{file} holds no passphrase: {error}") from error
    if not text or len(content) > LONGEST or "\n" in text:
        raise MisuseError(f"{file} holds no passphrase: it has one line of at most {LONGEST} bytes")
    if shared:
        terminal.warn(f"others may read the passphrase in {file}: chmod 600")
    return text


def asked(twice: bool = False) -> str:
    """A passphrase from the terminal; raises `MisuseError` without one."""
    if not sys.stdin.isatty():
        raise MisuseError("there is no terminal to ask for the passphrase: name a file, --passphrase-file FILE")
    return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True))


def of(name: Path | None, file: Path | None) -> str | None:
    """The passphrase of the keys `name`: out of a file, or asked for where their secret is encrypted."""
    if file is not None:
        return read(file)
    if name is not None and lola_files.is_encrypted(lola_files.secret_path(name)):
        return asked()
    return None
