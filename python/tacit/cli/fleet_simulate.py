"""`tacit fleet simulate`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tacit.cli.options import AsJson
from tacit.errors import MisuseError
from tacit.fleet.simulation import arrivals, costs, prices
from tacit.report import terminal

if TYPE_CHECKING:
    from tacit.fleet.simulation.model import Fleet
    from tacit.fleet.simulation.study import Study

HOURS = 24.0
PER_DAY = 1_000_000.0
SEEN = ("wait p50", "wait p99", "p50", "p95", "p99")


def numbers(text: str) -> tuple[int, ...]:
    """`1,2,4` as numbers of servers."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"`{text}` is not of the form N,N,..") from None
    if min(found) < 1:
        raise typer.BadParameter("a fleet has at least one server")
    return found


@dataclass(frozen=True)
class LoadOptions:
    """Who comes when."""

    sessions: Annotated[float | None, typer.Option(min=1, help="Sessions in --hours. Default: 1,000,000.")] = None
    hours: Annotated[float, typer.Option(min=0.001, max=24 * 366, help="How long is simulated.")] = HOURS
    profile: Annotated[
        str,
        typer.Option(
            metavar="flat|day|FILE",
            help="How --sessions lie in --hours: evenly, as working hours do, or by a file with the weight of each of "
            "several equal parts per line. Within a part they come at random (Poisson).",
        ),
    ] = "flat"
    clients: Annotated[
        int | None,
        typer.Option(min=1, help="In place of --sessions: so many clients who ask again when they have an answer."),
    ] = None
    think: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="With --clients: how long each waits before it asks.")
    ] = 0.0

    def load(self) -> arrivals.Load:
        """The load that was asked for."""
        seconds = self.hours * arrivals.HOUR
        if self.clients is not None:
            if self.sessions is not None or self.profile != "flat":
                raise MisuseError("--clients come back by themselves: leave --sessions and --profile out")
            return arrivals.Closed(self.clients, seconds, self.think)
        return arrivals.Open(self.sessions or PER_DAY, seconds, arrivals.profile(self.profile))


@dataclass(frozen=True)
class FleetOptions:
    """The servers, the way to them, and their prices."""

    cores: Annotated[int, typer.Option(min=1, max=1024, help="Cores of each server.")] = 2
    session_limit: Annotated[
        int | None, typer.Option(min=1, help="`--sessions` of each server. Default: 8 for each core.")
    ] = None
    queue: Annotated[int, typer.Option(min=1, help="`--queue` of the door and of each server.")] = 256
    balance: Annotated[
        Literal["door", "random", "turns"],
        typer.Option(help="Who chooses servers: a door, or clients at random or in turn, without any."),
    ] = "door"
    heartbeat: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="How often servers tell the door how many they allow; 0: at once."),
    ] = 0.2
    fullness: Annotated[
        Literal["room", "limit"],
        typer.Option(
            help="What the door compares sessions of a server with: its limit, or those it allows now and one."
        ),
    ] = "limit"
    door_ms: Annotated[float, typer.Option(min=0, help="What the door adds to a session beside round trips.")] = 3.0
    network: Annotated[
        str | None,
        typer.Option(
            metavar="LINK",
            help="Between clients and servers: loopback, lan, wan or RTTms,Mbps. Default: what the costs were "
            "measured on; those of another link keep the plan that was made for it.",
        ),
    ] = None
    card: Annotated[
        float, typer.Option(min=0.001, metavar="GBPS", help="Network card of each server, which its sessions share.")
    ] = 10.0
    clients_share_cores: Annotated[
        bool,
        typer.Option(
            "--clients-share-cores", help="All servers and all clients are on one machine with --cores cores."
        ),
    ] = False
    wake_ms: Annotated[
        float,
        typer.Option(
            min=0,
            max=1000,
            help="How long a party that a message wakes waits for a core on average, while all cores are busy.",
        ),
    ] = 1.0
    contention: Annotated[
        float | None,
        typer.Option(
            min=costs.LEAST_CONTENTION,
            max=16,
            metavar="FACTOR",
            help="Processor time of a session while all cores are busy, over that of one alone. Default: as the costs "
            "say, or 1.",
        ),
    ] = None

    def slowed(self, costs_: costs.Costs) -> costs.Costs:
        """Costs with the contention that was asked for."""
        return costs_ if self.contention is None else replace(costs_, contention=self.contention)

    def fleet(self, costs_: costs.Costs) -> "Fleet":
        """The fleet that was asked for, of one server."""
        from tacit.fleet.simulation.door import DoorSettings
        from tacit.fleet.simulation.model import Fleet

        return Fleet(
            cores=self.cores,
            sessions=self.session_limit,
            queue=self.queue,
            balance=self.balance,
            door=DoorSettings(self.queue, self.heartbeat, by_limit=self.fullness == "limit"),
            door_seconds=self.door_ms / 1e3,
            card=self.card * 1e9,
            link=costs.link_of(self.network or costs_.network),
            clients_share_cores=self.clients_share_cores,
            wake_seconds=self.wake_ms / 1e3,
        )


def simulate_fleet(
    measured: Annotated[
        Path,
        typer.Argument(
            metavar="COSTS.json",
            help="A session, as `bench model --json` or `plan --json` printed it.",
            show_default=False,
        ),
    ],
    load: LoadOptions,
    options: FleetOptions,
    servers: Annotated[
        str | None, typer.Option(metavar="N,N,..", help="Numbers of servers, 1 to 10,000 each. Default: 1.")
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="Find the fewest servers so that 99 of 100 sessions take no longer."
        ),
    ] = None,
    core_hour: Annotated[float, typer.Option(min=0, metavar="DOLLARS", help="Price of a core and an hour.")] = (
        prices.CORE_HOUR
    ),
    egress_gb: Annotated[
        float, typer.Option(min=0, metavar="DOLLARS", help="Price of 10^9 bytes from servers to clients.")
    ] = prices.EGRESS_GB,
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn: the same gives the same sessions.")] = 0,
    json: AsJson = False,
) -> None:
    """Simulate a fleet under a load: waits, durations, how busy servers are, and dollars.

    Sessions cost what was measured of one; they share cores and network cards, wait for their links, and wait at the
    door and at servers as those decide it. Clients compute on machines of their own. With --target the fewest
    servers are found that keep it; otherwise --servers says how many there are. Nothing is measured here: measure costs
    on a machine like those of the fleet, with `tacit bench model X.tacit --threads 1 --repeat 20 --network LINK`.
    """
    counts = numbers(servers) if servers is not None else () if target is not None else (1,)
    made = study(costs.read(measured, options.network), load, options, prices.Prices(core_hour, egress_gb), seed)
    from tacit.fleet.simulation.sizing import Target

    with terminal.progress("simulating") as advance:
        content = made.report(counts, None if target is None else Target(target), advance)
    if json:
        terminal.emit_json(content)
        return
    for shown in tables(content):
        terminal.console.print(shown)


def study(
    measured: costs.Costs, load: LoadOptions, options: FleetOptions, dollars: prices.Prices, seed: int
) -> "Study":
    """What is simulated; raises `MisuseError` where the library of the simulator is missing."""
    try:
        from tacit.fleet.simulation.study import Study
    except ModuleNotFoundError as error:
        raise MisuseError(f"the simulator needs {error.name}: pip install 'tacit[fleet]'") from error
    return Study(options.slowed(measured), options.fleet(measured), load.load(), dollars, seed)


def tables(content: dict[str, Any]) -> Iterator[Table]:
    """What sessions saw, and what fleets had to do, a row for each fleet."""
    saw = headed(f"Sessions of {content['model']}", ("servers", "sessions", "refused", *SEEN))
    used = headed(
        "Use and dollars", ("servers", "cores", "cores busy", "network busy", "egress", "dollars", "a million")
    )
    for run in content["runs"]:
        waits, sessions, dollars, busy = run["wait"], run["session"], run["dollars"], run["utilisation"]
        seconds = (waits["p50"], waits["p99"], sessions["p50"], sessions["p95"], sessions["p99"])
        times = ("-" if each is None else terminal.duration(each) for each in seconds)
        saw.add_row(*(f"{run[name]:,}" for name in ("servers", "sessions", "refused")), *times)
        million = "-" if dollars["per_million"] is None else f"${dollars['per_million']:,.2f}"
        shares = (f"{100 * busy[name]:.1f} %" for name in ("cores", "network"))
        gigabytes, total = f"{dollars['egress_gb']:,.1f} GB", f"${dollars['total']:,.2f}"
        used.add_row(f"{run['servers']:,}", f"{run['cores']:,}", *shares, gigabytes, total, million)
    yield from (saw, used)


def headed(title: str, headings: Sequence[str]) -> Table:
    """A table of numbers."""
    made = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in headings:
        made.add_column(heading, justify="right")
    return made
