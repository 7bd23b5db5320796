"""What a plan said beside what a run took."""

from typing import NamedTuple

from tacit.report.html.content import PHASES, Cost, Costs

FAR = 0.3
"""A time this far from the prediction is marked."""
SMALLEST = 0.01
"""Shares of the whole time below this are noise, and never marked."""


class Beside(NamedTuple):
    """One row: a phase, a layer or the whole."""

    name: str
    phase: str
    predicted: Cost
    measured: Cost
    counts: bool

    @property
    def ratio(self) -> float | None:
        """Seconds measured for each predicted."""
        if not self.predicted.seconds or self.measured.seconds is None:
            return None
        return self.measured.seconds / self.predicted.seconds

    @property
    def far(self) -> bool:
        """Whether the time is far from the plan, and matters."""
        return self.counts and self.ratio is not None and abs(self.ratio - 1) > FAR

    @property
    def exact(self) -> bool:
        """Whether bytes and rounds are those of the plan."""
        return self.predicted[:3] == self.measured[:3]


class Prediction(NamedTuple):
    """All rows. `factor` is how many runs of the plan the session made."""

    phases: tuple[Beside, ...]
    layers: tuple[Beside, ...]
    factor: float

    @property
    def far(self) -> list[Beside]:
        """Rows whose time is far from the plan."""
        return [row for row in (*self.phases, *self.layers) if row.far]


def compare(run: Costs, plan: Costs) -> Prediction:
    """A run beside its plan.

    A plan of one run, held against a session of several, is multiplied, but for the setup. Preparation is left
    out then: correlations are made in bulk, and what one run leaves over serves the next.
    """
    factor = repeats(run, plan)
    whole = [run.total.seconds, None if plan.total.seconds is None else plan.total.seconds * factor]
    least = SMALLEST * max((seconds for seconds in whole if seconds is not None), default=0.0)
    places, layers = plan.places(), []
    for place, layer in run.places().items():
        if place in places and compared(place.phase, factor):
            predicted = repeated(places[place].cost, place.phase, factor)
            layers.append(beside((place.name, place.phase), predicted, layer.cost, least))
    phases = [
        beside((phase, phase), repeated(plan.phases[phase], phase, factor), run.phases[phase], least)
        for phase in PHASES
        if compared(phase, factor)
    ]
    if factor == 1:
        phases.append(beside(("total", ""), plan.total, run.total, least))
    return Prediction(tuple(phases), tuple(layers), factor)


def repeats(run: Costs, plan: Costs) -> float:
    """How many runs of the plan the session made: online bytes tell, and else the inputs."""
    once = plan.phases["online"]
    if once.traffic and once.traffic == run.phases["online"].traffic:
        return 1
    return run.runs / max(plan.runs, 1)


def compared(phase: str, factor: float) -> bool:
    """Whether a plan says what so many runs of a phase take."""
    return factor == 1 or phase != "offline"


def repeated(cost: Cost, phase: str, factor: float) -> Cost:
    """What so many runs of a phase cost; setup happens once."""
    return cost if phase == "setup" else cost.times(factor)


def beside(place: tuple[str, str], predicted: Cost, measured: Cost, least: float) -> Beside:
    """A row of a name and a phase."""
    counts = max(predicted.seconds or 0.0, measured.seconds or 0.0) >= least
    return Beside(*place, predicted, measured, counts)
