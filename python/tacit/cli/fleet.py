"""`tacit fleet`: many servers behind one address."""

import typer

from tacit.cli.door import door
from tacit.cli.expand import expand

fleet = typer.Typer(help="Serve with many servers behind one address.", no_args_is_help=True)
DOOR = "tacit fleet door --listen 0.0.0.0:7000 --control 10.0.0.1:7001 --secret fleet.secret --key-file fleet.key"
fleet.command("door", epilog=f"Example: `{DOOR}`")(expand(door))
