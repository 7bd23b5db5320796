"""Several runs beside each other."""

from collections.abc import Sequence

from tacit.report.html import charts
from tacit.report.html.charts import Segment
from tacit.report.html.content import PHASES, Cost, Layer, Place, Run
from tacit.report.html.layers import cumulative
from tacit.report.html.markup import Markup, element
from tacit.report.html.run_section import anchor, said
from tacit.report.html.table import (
    NONE,
    bar_cell,
    bytes_cell,
    count_cell,
    exactly,
    figure,
    name_cell,
    paragraph,
    seconds_cell,
    section,
    table,
    ways,
)
from tacit.report.terminal import size

MOST_COLUMNS = 4
"""Runs whose layers fit beside each other."""


def compared(runs: Sequence[Run]) -> Markup:
    """The whole of all runs, and their layers where these are the same."""
    parts = [element("h2", "Side by side"), overview(runs), bars(runs), quality(runs)]
    shared = [run for run in runs if run.costs.layers]
    if len(shared) > 1:
        parts += [layers(shared), cumulative(shared)]
    return element("article", *parts)


def overview(runs: Sequence[Run]) -> Markup:
    """A row per run, with its times of the first one."""
    headings = ["run", "inputs", "link", "to server", "to client", "rounds", "time", "of first run", "peak memory"]
    rows = [overview_row(run, runs[0].costs.total) for run in runs]
    note = ""
    if len({run.costs.inputs for run in runs}) > 1:
        note = "These sessions have different numbers of inputs; costs are those of whole sessions."
    return section("Overview", table("All of each session", headings, rows), about=note)


def quality(runs: Sequence[Run]) -> Markup:
    """A row per measure, a column per run or, where these are many, the other way round."""
    names = list(dict.fromkeys(measure.name for run in runs for measure in run.measures))
    found = [{measure.name: said(measure) for measure in run.measures} for run in runs]
    if not names:
        return Markup()
    if len(runs) > MOST_COLUMNS:
        rows = [
            [name_cell(run.name), *(figure(row.get(name, NONE)) for name in names)]
            for run, row in zip(runs, found, strict=True)
        ]
        return section("Accuracy", table("Quality of the results", ["run", *names], rows))
    rows = [[name_cell(name), *(figure(row.get(name, NONE)) for row in found)] for name in names]
    return section("Accuracy", table("Quality of the results", ["", *(run.name for run in runs)], rows))


def overview_row(run: Run, base: Cost) -> list[Markup]:
    """One run, beside the first."""
    total = run.costs.total
    memory = max(run.memory.values()) if run.memory else None
    link = element("a", run.name, href=f"#{anchor(run.name)}")
    lines = ("" if run.model == run.name else run.model, f"suite {run.suite}", "planned" if run.planned else "")
    below = (element("small", line) for line in lines if line)
    return [
        element("th", link, *below, scope="row"),
        count_cell(run.costs.inputs),
        element("td", run.link.name if run.link else NONE, class_="word"),
        bytes_cell(total.to_server),
        bytes_cell(total.to_client),
        count_cell(total.rounds),
        seconds_cell(total.seconds),
        figure(f"{times(total.traffic, base.traffic)} bytes, {times(total.seconds, base.seconds)} time"),
        figure(NONE) if memory is None else figure(size(memory), exactly(memory)),
    ]


def times(value: float | None, base: float | None) -> str:
    """How many times the first."""
    return NONE if value is None or not base else f"{value / base:.2f}\N{MULTIPLICATION SIGN}"


def bars(runs: Sequence[Run]) -> Markup:
    """Traffic, rounds and time of each run, divided among the phases, on one scale."""
    timed = any(run.costs.total.seconds is not None for run in runs)
    most = [max(amounts(run.costs.total)[index] for run in runs) for index in range(3)]
    rows = []
    for run in runs:
        shown = amounts(run.costs.total)
        row = [name_cell(run.name)]
        for index, cell in enumerate(
            (bytes_cell(shown[0]), count_cell(shown[1]), seconds_cell(run.costs.total.seconds))
        ):
            if index < 2 or timed:
                row += [cell, bar_cell(stack(run, index), most[index])]
        rows.append(row)
    headings = ["run", "bytes", "", "rounds", ""] + (["time", ""] if timed else [])
    colours = charts.legend([(phase, phase) for phase in PHASES])
    return section("Phases", colours, table("Phases of each session", headings, rows))


def amounts(cost: Cost) -> tuple[float, float, float]:
    """Bytes, rounds and seconds."""
    return cost.traffic, cost.rounds, cost.seconds or 0.0


def stack(run: Run, index: int) -> list[Segment]:
    """A quantity of each phase."""
    units = ("{:,.0f} bytes", "{:,.10g} rounds", "{:.6g} s")
    values = {phase: amounts(cost)[index] for phase, cost in run.costs.phases.items()}
    return [
        Segment(phase, value, f"{run.name}, {phase}: {units[index].format(value)}") for phase, value in values.items()
    ]


def layers(runs: Sequence[Run]) -> Markup:
    """Bytes and time of each layer in each run."""
    found = [run.costs.places() for run in runs]
    shared = set(found[0]).intersection(*found[1:])
    if 2 * len(shared) < max(len(places) for places in found) or len(runs) > MOST_COLUMNS:
        few = len(runs) <= MOST_COLUMNS
        why = "they have few layers in common" if few else f"there are more than {MOST_COLUMNS} of them"
        return paragraph(f"Layers of these runs are not put side by side: {why}.", style="about")
    widest = max(layer.cost.traffic for places in found for layer in places.values())
    slowest = max(layer.cost.seconds or 0.0 for places in found for layer in places.values())
    rows = [layer_row(place, runs, found, widest, slowest) for place in merged(found)]
    headings = ["layer", "phase", "run", "bytes", "", "rounds", "time", ""]
    return section(
        "Layers",
        charts.legend((("up", "client to server"), ("down", "server to client"), ("time", "time"))),
        table("Layers of each run", headings, [row for group in rows for row in group]),
    )


def merged(found: Sequence[dict[Place, Layer]]) -> list[Place]:
    """All layers in network order; what only later runs have stands behind what it follows there."""
    order = list(found[0])
    for places in found[1:]:
        at = 0
        for place in places:
            if place in order:
                at = order.index(place) + 1
            else:
                order.insert(at, place)
                at += 1
    return order


def layer_row(
    place: Place, runs: Sequence[Run], found: Sequence[dict[Place, Layer]], widest: float, slowest: float
) -> list[list[Markup]]:
    """A row per run that has the layer; the first names it."""
    having = [(run, places[place]) for run, places in zip(runs, found, strict=True) if place in places]
    rows = []
    for index, (run, layer) in enumerate(having):
        head = [spanning("th", place.name, len(having)), spanning("td", place.phase, len(having))] if index == 0 else []
        time = (
            []
            if layer.cost.seconds is None
            else [Segment("time", layer.cost.seconds, f"{run.name}, {place.name}: {layer.cost.seconds:.6g} s")]
        )
        rows.append(
            [
                *head,
                element("td", run.name, title=layer.protocol),
                bytes_cell(layer.cost.traffic),
                bar_cell(ways(layer.cost, f"{run.name}, {place.name}"), widest),
                count_cell(layer.cost.rounds),
                seconds_cell(layer.cost.seconds),
                bar_cell(time, slowest),
            ]
        )
    return rows


def spanning(tag: str, text: str, rows: int) -> Markup:
    """A cell beside several rows."""
    return element(tag, text, rowspan=rows, scope="rowgroup" if tag == "th" else None)
