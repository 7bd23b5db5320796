"""`tacit card`: what a signer says of a model file."""

import json as jsons
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit import _core
from tacit.cli.expand import expand
from tacit.cli.options import AsJson, ModelFile
from tacit.errors import MisuseError
from tacit.report import serving, terminal
from tacit.session.models import LONGEST_CARD

card = typer.Typer(help="Sign model cards, and read them.", no_args_is_help=True, rich_markup_mode="markdown")


def key(
    file: Annotated[Path, typer.Argument(metavar="KEY.pem", help="File to write.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Make the key of a signer: Ed25519, PKCS #8 in PEM, readable by its owner only.

    Prints its public half, which clients give to `predict --card-key`. A key of `openssl genpkey -algorithm ed25519`
    will do, too.
    """
    public = _core.make_signer(str(file))
    if json:
        terminal.emit_json({"file": str(file), "key": public})
    else:
        terminal.console.print(f"wrote {file}: keep it to yourself", highlight=False)
        terminal.console.print(f"--card-key {public}", highlight=False, soft_wrap=True)


def sign(
    model: ModelFile,
    key: Annotated[Path, typer.Option(metavar="KEY.pem", help="The signer's key.")],
    name: Annotated[str, typer.Option(help="What the model is called.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="X.card", help="File to write.")],
    version: Annotated[str, typer.Option(help="Its version.")] = "",
    description: Annotated[str, typer.Option(help="What it is for, one line.")] = "",
    json: AsJson = False,
) -> None:
    """Sign what is said of a model file: its name, version and description, and the commitment to the file.

    `serve --card` shows the card to clients, and `predict --card-key` verifies it. A card is about one file: compile
    the model again, and it needs another card.
    """
    text = _core.sign_card(str(model), name, version, description, str(key))
    output.write_text(text + "\n")
    if json:
        terminal.emit_json({"file": str(output), "card": jsons.loads(_core.verified_card(text))})
    else:
        terminal.console.print(f"wrote {output}", highlight=False)
        serving.show_card(jsons.loads(_core.verified_card(text)))


def show(
    file: Annotated[Path, typer.Argument(metavar="X.card", help="A model card.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Show a model card whose signature holds. Who the signer is only its key tells."""
    found = read(file)
    if json:
        terminal.emit_json({"card": found})
    else:
        serving.show_card(found)


def read(file: Path) -> dict[str, Any]:
    """The card in a file; raises `MisuseError` for one whose signature does not hold."""
    try:
        with file.open("rb") as opened:
            content = opened.read(LONGEST_CARD + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise MisuseError(f"{file} holds no model card: {error}") from error
    if len(content) > LONGEST_CARD:
        raise MisuseError(f"{file} holds no model card: it has more than {LONGEST_CARD} bytes")
    found: dict[str, Any] = jsons.loads(_core.verified_card(text.rstrip()))
    return found


card.command("key", epilog="Example: `tacit card key signer.pem`")(expand(key))
card.command(
    "sign", epilog="Example: `tacit card sign mnist.tacit --key signer.pem --name digits --version 1 -o mnist.card`"
)(expand(sign))
card.command("show", epilog="Example: `tacit card show mnist.card`")(expand(show))
