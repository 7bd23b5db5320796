"""`tacit plan`: what a prediction will cost."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tacit.cli.options import AsJson, Batch, Offline, PostQuantum, Protocols, RevealTo, Suite, Transfers
from tacit.errors import MisuseError
from tacit.measure.architectures import ARCHITECTURES
from tacit.measure.he_operations import plan_architecture
from tacit.model import Model
from tacit.report import terminal
from tacit.session.network import parse
from tacit.session.terms import Terms

COMPILED = "as compiled"
"""Share widths of a plan that are those of the model."""
SHOWN = 5e-5
"""Seconds from which a difference is more than zero in the tables."""


@dataclass(frozen=True)
class PlanOptions:
    """What is planned, and what is shown of it."""

    link: Annotated[
        str | None, typer.Option("--network", metavar="LINK", help="Plan for loopback, lan, wan or RTTms,Mbps.")
    ] = None
    reveal: RevealTo = "output"
    ot: Transfers = "auto"
    post_quantum: PostQuantum = False
    offline: Offline = 0
    batch: Batch = 1
    protocols: Protocols = "auto"
    explain: Annotated[
        str | None,
        typer.Option(metavar="LAYER", help="All ways to run this layer, what each costs, and why it was not taken."),
    ] = None
    compare: Annotated[
        bool, typer.Option("--compare", help="All suites that can run the model, and fixed protocols, side by side.")
    ] = False
    suite: Annotated[Suite, typer.Option(help="Of a NAME: gazelle or gala.")] = Suite.GALA
    slots: Annotated[
        int | None,
        typer.Option(min=2, metavar="N", help="Of a NAME: slots in which rotations are cyclic, a power of 2."),
    ] = None

    def terms(self) -> Terms:
        """What the session is planned by."""
        return Terms(
            reveal=self.reveal,
            ot=self.ot,
            post_quantum=self.post_quantum,
            network=self.link,
            offline=self.offline,
            batch=self.batch,
            protocols=self.protocols,
        )


def plan(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="X.tacit|NAME",
            help=f"Compiled model; or, to count operations without weights, one of {', '.join(ARCHITECTURES)}.",
            show_default=False,
        ),
    ],
    options: PlanOptions,
    json: AsJson = False,
) -> None:
    """Show what one prediction, or a whole batch of them, will cost, layer by layer, before running it.

    Bytes and rounds equal those of a run exactly; seconds are a model of this machine (`tacit calibrate` measures
    it) and of the link. With --network, protocols and share widths are those that are soonest done on that link, as a
    server plans them; the last column says what the next best would take more. Of a published network (NAME,
    CIFAR-10 shapes) the homomorphic operations of its linear layers are counted; that takes no weights.
    """
    if str(model) in ARCHITECTURES and not model.exists():
        show_operations(str(model), options.suite, options.slots, json)
        return
    opened, link = Model(model), options.link
    if options.compare:
        show_comparison(str(model), opened.compare_suites(options.terms()), json)
        return
    explained = options.explain is not None or link is not None
    planned = {**opened.plan(options.terms(), explain=explained), "model": str(model)}
    if link is not None:
        planned["network_seconds"] = parse(link).seconds(planned)
    if options.explain is not None:
        show_layer(planned, options.explain, json)
    elif json:
        terminal.emit_json(planned)
    else:
        show_plan(planned, link)


def show_operations(name: str, suite: Suite, slots: int | None, json: bool) -> None:
    """Homomorphic operations of a published network."""
    counted = plan_architecture(name, str(suite), slots)
    if json:
        terminal.emit_json(counted)
    else:
        terminal.console.print(terminal.operation_table(counted))


def show_plan(planned: dict[str, Any], link: str | None) -> None:
    """Tables by layer and phase, and what the sources of correlations would take."""
    terminal.console.print(plan_table(planned))
    terminal.console.print(terminal.phase_table(planned))
    if (bits := planned.get("failure_bits")) is not None:
        terminal.console.print(f"a run fails with probability below 2^-{bits:.1f}", highlight=False)
    if link is None:
        return
    if planned["widths"] != COMPILED:
        terminal.console.print(f"share widths of its own for this link: {planned['widths']}", highlight=False)
    terminal.console.print(
        f"time on the wire ({link}): {terminal.duration(planned['network_seconds'])}", highlight=False
    )
    tried = ", ".join(f"{name} {terminal.duration(seconds)}" for name, seconds in planned["sources"])
    terminal.console.print(f"with the best protocols for each source of transfers: {tried}", highlight=False)


def plan_table(planned: dict[str, Any]) -> Table:
    """A row per layer with what the runner-up would take more."""
    table = Table(title="Plan by layer", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("layer", "protocol", "phase"):
        table.add_column(heading, overflow="fold")
    for heading in (*terminal.COST, "memory"):
        table.add_column(heading, justify="right")
    table.add_column("runner-up", overflow="fold")
    alternatives = planned.get("alternatives", {})
    for layer in planned["layers"]:
        memory = terminal.size(layer["memory_bytes"]) if "memory_bytes" in layer else "-"
        lost = runner_up(alternatives.get(layer["name"], []))
        table.add_row(layer["name"], layer["protocol"], layer["phase"], *terminal.cells(layer), memory, lost)
    return table


def runner_up(ways: list[dict[str, Any]]) -> str:
    """The next best way of a layer, and why it lost."""
    chosen = next((way for way in ways if way["chosen"]), None)
    others = [way for way in ways if not way["chosen"]]
    if chosen is None or not others:
        return ""
    return f"{(best := min(others, key=lambda way: float(way['slower'])))['choice']}: {reason(best, chosen)}"


def reason(way: dict[str, Any], chosen: dict[str, Any]) -> str:
    """What `way` would take more than the one that was chosen, or less where that saves rounds for next to nothing."""
    sent, rounds = way["bytes"] - chosen["bytes"], way["rounds"] - chosen["rounds"]
    size = f"{'+' if sent >= 0 else '-'}{terminal.size(abs(sent))}"
    more = float(way["slower"]) - float(chosen["slower"])
    sign = "-" if more < -SHOWN else "+"
    time = f"{sign}{terminal.duration(abs(more))}"
    return f"{time} ({size}, {rounds:+d} rounds)"


def show_layer(planned: dict[str, Any], layer: str, json: bool) -> None:
    """All ways to run a layer."""
    known = {entry["name"]: entry for entry in planned["layers"]}
    if layer not in known:
        raise MisuseError(f"there is no layer `{layer}`; these are: {', '.join(known)}")
    ways = sorted(planned["alternatives"].get(layer, []), key=lambda way: float(way["slower"]))
    if json:
        terminal.emit_json({"layer": known[layer], "alternatives": ways})
        return
    runs = next((way for way in ways if way["chosen"]), None)
    facts = known[layer]
    sent, received = terminal.traffic(facts)
    about = f"{facts['operator']}, {facts['protocol']}: {sent} to the server, {received} to the client"
    terminal.console.print(f"{layer}: {about}, {facts['rounds']} rounds, {terminal.duration(facts['seconds'])}")
    if runs is None:
        terminal.console.print("There is one way to run it.")
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("protocols", "bytes", "rounds", "seconds", "the whole plan"):
        table.add_column(heading, justify="left" if heading == "protocols" else "right")
    for way in ways:
        figures = (terminal.size(way["bytes"]), str(way["rounds"]), terminal.duration(way["seconds"]))
        table.add_row(way["choice"], *figures, "chosen" if way is runs else reason(way, runs))
    terminal.console.print(table)


def show_comparison(model: str, rows: list[dict[str, Any]], json: bool) -> None:
    """What every suite takes, or why it cannot run."""
    if json:
        terminal.emit_json({"model": model, "suites": rows})
        return
    table = Table(title="Suites", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("suite", "protocols"):
        table.add_column(heading)
    for heading in terminal.COST:
        table.add_column(heading, justify="right")
    for row in rows:
        cost = row.get("report")
        cells = terminal.cells(cost) if cost else ("-", "-", "-", "-")
        table.add_row(row["suite"], row["protocols"], *cells)
    terminal.console.print(table)
    for row in rows:
        if "reason" in row:
            terminal.console.print(f"{row['suite']}: {row['reason']}", highlight=False)
