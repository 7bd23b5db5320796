"""`tacit fleet`: a command per module, each with a line here."""

from collections.abc import Callable

import typer

from tacit.cli.door import door
from tacit.cli.expand import expand
from tacit.cli.fleet_ray import drain, scale, status, up
from tacit.cli.fleet_simulate import simulate_fleet

fleet = typer.Typer(help="Many servers behind one door.", no_args_is_help=True, rich_markup_mode="markdown")
DOOR = "--listen 0.0.0.0:7000 --control 10.0.0.1:7001 --secret fleet.secret --key-file fleet.key"
COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "door": (door, DOOR),
    "up": (up, "fleet.toml"),
    "status": (status, "fleet.toml"),
    "drain": (drain, "fleet.toml --all"),
    "scale": (scale, "fleet.toml 4"),
    "simulate": (simulate_fleet, "costs.json --servers 1,2,4 --sessions 1000000"),
}
"""Commands by name, in the order of the help, each with the arguments of its example."""

for name, (function, arguments) in COMMANDS.items():
    fleet.command(name, epilog=f"Example: `tacit fleet {name} {arguments}`")(expand(function))
