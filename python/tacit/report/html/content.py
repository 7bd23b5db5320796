"""What a report can show: runs with costs, tables of papers, and other listings."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from tacit.session.network import Network

PHASES = ("setup", "offline", "online")
PARTIES = ("client", "server")


class Cost(NamedTuple):
    """Bytes each way, rounds, and seconds where they are known."""

    to_server: float
    to_client: float
    rounds: float
    seconds: float | None

    @property
    def traffic(self) -> float:
        """Bytes both ways."""
        return self.to_server + self.to_client

    def plus(self, other: "Cost") -> "Cost":
        """Both together; a time that is not known counts as none."""
        known = [cost.seconds for cost in (self, other) if cost.seconds is not None]
        ways = (self.to_server + other.to_server, self.to_client + other.to_client)
        return Cost(*ways, self.rounds + other.rounds, sum(known) if known else None)

    def times(self, factor: float) -> "Cost":
        """The cost of so many."""
        return Cost(*(None if value is None else value * factor for value in self))  # type: ignore[arg-type]


class Layer(NamedTuple):
    """A step of a network, or setup and preparation, which have rows of their own."""

    name: str
    operator: str
    protocol: str
    phase: str
    cost: Cost


class Place(NamedTuple):
    """A layer within a report: a name may come back."""

    name: str
    phase: str
    occurrence: int


class Link(NamedTuple):
    """How the parties are connected, and in which words."""

    name: str
    network: Network


class Measure(NamedTuple):
    """A number about the result; shares are drawn as bars."""

    name: str
    value: float
    is_share: bool


Fact = tuple[str, str]


@dataclass(frozen=True)
class Costs:
    """What a session costs: in all, by phase, by layer in network order."""

    total: Cost
    phases: dict[str, Cost]
    layers: tuple[Layer, ...]
    inputs: float
    batch: float = 1

    @property
    def runs(self) -> float:
        """Times the network is computed: every run takes a batch."""
        return -(-self.inputs // self.batch)

    def places(self) -> dict[Place, Layer]:
        """Layers by name."""
        found: dict[Place, Layer] = {}
        for layer in self.layers:
            occurrence = 0
            while (place := Place(layer.name, layer.phase, occurrence)) in found:
                occurrence += 1
            found[place] = layer
        return found


@dataclass(frozen=True)
class Run:
    """A session that ran, or the plan of one."""

    name: str
    model: str
    suite: str
    planned: bool
    costs: Costs
    link: Link | None = None
    memory: dict[str, float] | None = None
    processor_seconds: dict[str, float] | None = None
    wire_seconds: float | None = None
    measures: tuple[Measure, ...] = ()
    facts: tuple[Fact, ...] = ()
    parameters: tuple[str, ...] = ()
    predicted: Costs | None = None

    def called(self, name: str) -> "Run":
        """The run under another name."""
        return replace(self, name=name)


class PaperRow(NamedTuple):
    """A number of a paper and ours."""

    name: str
    paper: float | None
    ours: float
    unit: str


class Column(NamedTuple):
    """A column of a listing. `unit`: text, bytes, seconds, share, ratio or number; quantities may have bars."""

    heading: str
    unit: str = "text"
    bars: bool = False


Cell = str | float | None


@dataclass(frozen=True)
class Listing:
    """A table of anything. The row whose first cell is `marked` stands out."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    facts: tuple[Fact, ...] = ()
    note: str = ""
    marked: str | None = None


@dataclass(frozen=True)
class Paper:
    """A table of a paper, or the numbers of another system, beside ours."""

    name: str
    rows: tuple[PaperRow, ...]
    facts: tuple[Fact, ...] = ()
    measured: tuple[Listing, ...] = ()
    note: str = ""
    theirs: str = "paper"


Item = Run | Paper | Listing
