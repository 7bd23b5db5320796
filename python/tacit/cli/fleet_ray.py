"""`tacit fleet up`, `status`, `drain` and `scale`: many servers behind one door, on Ray."""

import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.options import AsJson
from tacit.cli.signals import SIGNALLED, handled
from tacit.errors import MisuseError, TacitError
from tacit.fleet import cluster
from tacit.fleet.config import Fleet, read
from tacit.fleet.output import own_output
from tacit.fleet.running import Running, ask
from tacit.fleet.status import tables
from tacit.report import serving, terminal
from tacit.session.log import now

FleetFile = Annotated[
    Path, typer.Argument(metavar="FLEET.toml", help="The fleet: door, models, servers.", show_default=False)
]
OfModel = Annotated[str | None, typer.Option(metavar="NAME", help="The model, where the fleet has several.")]


def up(
    file: FleetFile,
    address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Ray's cluster, or `auto`. Default: as the file says.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return when the fleet is ready; it stays.")] = False,
    json: AsJson = False,
) -> None:
    """Start a fleet and tell what happens there until Ctrl-C or SIGTERM, which drain it.

    Needs Ray: `pip install 'tacit[ray]'`. Without a cluster in the file or in --address, Ray starts on this machine.
    Where the fleet runs already, the file is applied to it: models that differ are replaced server by server, new ones
    ready before old ones drain, and the command returns. SIGHUP does the same for a fleet in the foreground.
    """
    fleet = read(file)
    if address is not None:
        fleet = replace(fleet, ray=replace(fleet.ray, address=address, cpus=None, dashboard=None))
    with own_output():
        running = Running(fleet, detach)
        if running.found is not None:
            show_change(fleet, running.apply(fleet), json)
        else:
            follow(running, file, detach, json)


def follow(running: Running, file: Path, detach: bool, json: bool) -> None:
    """Tell what happens until the fleet has ended or, detached, until it is ready."""
    ready = False
    with signals(running, file):
        for line in running.lines():
            if line is not None:
                tell(line, json)
            elif not ready and (state := running.status()) and started(state):
                ready = True
                show_ready(state, json)
                if detach:
                    return
    running.close()


def started(state: dict[str, Any]) -> bool:
    """Whether each model has as many servers as wanted at least."""
    return all(row["ready"] >= row["min"] for row in state["models"])


def signals(running: Running, file: Path) -> AbstractContextManager[None]:
    """Signals as `handled` has them: the first drains, the second ends all at once, SIGHUP reads the file anew."""

    def stop() -> None:
        terminal.note(f"stopping: sessions may end within {running.fleet.drain:g} s; again to stop at once")
        running.drain()

    def end(number: int) -> None:
        running.close()
        sys.exit(SIGNALLED + number)

    def reload() -> None:
        try:
            running.apply(replace(read(file), ray=running.fleet.ray))
        except TacitError as error:
            terminal.warn(f"not applied, the fleet goes on as it was: {error}")

    return handled(stop, end, reload)


def status(file: FleetFile, json: AsJson = False) -> None:
    """Show the models and servers of a running fleet."""
    with own_output():
        state = ask(cluster.find(read(file)).status)
    if json:
        terminal.emit_json(state)
        return
    for table in tables(state):
        terminal.console.print(table)


def drain(
    file: FleetFile,
    server: Annotated[str | None, typer.Argument(metavar="SERVER", help="As `fleet status` calls it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All servers: the fleet ends.")] = False,
    json: AsJson = False,
) -> None:
    """Let a server finish its sessions and leave; another takes its place as far as the model wants one."""
    if everything == (server is not None):
        raise MisuseError("say what drains: the name of a server, or --all")
    fleet = read(file)
    with own_output():
        drained = ask(cluster.find(fleet).drain, server)
    if json:
        terminal.emit_json({"fleet": fleet.name, "draining": drained})
    else:
        terminal.note(f"draining: {', '.join(drained) or 'nothing'}")


def scale(
    file: FleetFile,
    count: Annotated[str, typer.Argument(metavar="N|auto", help="Servers, or as many as the load needs.")],
    model: OfModel = None,
    json: AsJson = False,
) -> None:
    """Give a model so many servers, whatever the load, or leave the number to the load again."""
    if count != "auto" and not (count.isascii() and count.isdigit() and int(count) <= 100_000):
        raise MisuseError(f"the number of servers is a whole number or `auto`, not `{count}`")
    fleet = read(file)
    with own_output():
        asked = ask(cluster.find(fleet).scale, model, None if count == "auto" else int(count))
    if json:
        terminal.emit_json({"fleet": fleet.name, **asked})
    else:
        terminal.note(f"{asked['model']}: {asked['before']} servers before, {count} from now on")


def show_ready(state: dict[str, Any], json: bool) -> None:
    """The fleet is ready: where clients find it."""
    if json:
        terminal.emit_json({"time": now(), "ready": True, **state})
        return
    door = state["door"]
    serving.show_address(door["address"], door["pin"], state["metrics"], door["websocket"])
    for table in tables(state):
        terminal.console.print(table)


def show_change(fleet: Fleet, found: dict[str, list[str]], json: bool) -> None:
    """What becomes of the models of a fleet that runs already."""
    if json:
        terminal.emit_json({"fleet": fleet.name, **found})
        return
    for what, models in found.items():
        if models:
            terminal.note(f"{what}: {', '.join(models)}")


def tell(line: str, json: bool) -> None:
    """Something that happened in the fleet."""
    if json:
        terminal.emit_json({"time": now(), "event": line})
    else:
        terminal.note(line)
