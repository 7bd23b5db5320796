"""Sections of phases and layers, and the sums through the network."""

from collections.abc import Sequence
from functools import reduce

from tacit.report.html import charts
from tacit.report.html.charts import Segment, Series
from tacit.report.html.content import PHASES, Cost, Costs, Layer, Run
from tacit.report.html.markup import Markup, element
from tacit.report.html.table import (
    bar_cell,
    bytes_cell,
    cost_cells,
    count_cell,
    figure,
    name_cell,
    seconds_cell,
    section,
    share,
    table,
    time_segment,
    ways,
)

DIRECTIONS = (("up", "client to server"), ("down", "server to client"))
QUANTITIES = (
    ("to server", "{:,.0f} bytes"),
    ("to client", "{:,.0f} bytes"),
    ("rounds", "{:,.10g}"),
    ("time", "{:.6g} s"),
)
FEWEST_FOR_LINES = 3
COLOURS = 6
"""How many colours the lines of several runs have."""


def phases(run: Run) -> Markup:
    """A row per phase, and the whole as stacked bars."""
    total = run.costs.total
    rows = []
    for name, cost in (*run.costs.phases.items(), ("total", total)):
        shares = [figure(share(cost.traffic, total.traffic)), figure(share(cost.seconds, total.seconds))]
        rows.append([name_cell(name), *cost_cells(cost), *shares])
    headings = ("phase", "to server", "to client", "rounds", "time", "of bytes", "of time")
    colours = charts.legend([(phase, phase) for phase in PHASES])
    return section("Phases", table("Cost by phase", headings, rows, last=True), stacks(run.costs), colours)


def stacks(costs: Costs) -> Markup:
    """Each quantity of the whole, divided among the phases."""
    rows = []
    for index, (name, unit) in enumerate(QUANTITIES):
        values = {phase: cost[index] or 0.0 for phase, cost in costs.phases.items()}
        whole = sum(values.values())
        if whole:
            says = {
                phase: f"{phase}, {name}: {unit.format(value)}, {value / whole:.1%}" for phase, value in values.items()
            }
            parts = [Segment(phase, value, says[phase]) for phase, value in values.items()]
            rows.append([name_cell(name), bar_cell(parts, whole, "wide")])
    return table("Shares of the phases", ("", "setup, offline, online"), rows)


def kinds(run: Run) -> Markup:
    """Layers of the same operator together, the most bytes first; nothing where all differ."""
    groups: dict[tuple[str, str], list[Layer]] = {}
    for layer in run.costs.layers:
        groups.setdefault((layer.operator, layer.phase), []).append(layer)
    if len(groups) == len(run.costs.layers):
        return Markup()
    rows = [sum_of(found) for found in groups.values()]
    rows.sort(key=lambda row: -row.cost.traffic)
    drawn = layer_table("Cost by operator", "operator", rows, run.costs.total)
    return section(
        "Operators", charts.legend(DIRECTIONS), drawn, about="Layers of a kind together, the most bytes first."
    )


def sum_of(layers: Sequence[Layer]) -> Layer:
    """Layers of an operator as one."""
    many = f"{len(layers)} layers" if len(layers) > 1 else layers[0].name
    return Layer(layers[0].operator, many, "", layers[0].phase, reduce(Cost.plus, (layer.cost for layer in layers)))


def layers(run: Run) -> Markup:
    """All layers in network order."""
    about = "In network order; setup and the correlations that all layers share have rows of their own."
    if run.costs.total.seconds is not None and not run.planned:
        about += " Times are the client's: a layer that only sends ends early, and the next one waits for it."
    drawn = layer_table("Cost by layer", "layer", run.costs.layers, run.costs.total)
    return section("Layers", charts.legend(DIRECTIONS), drawn, about=about)


def layer_table(caption: str, first: str, rows: Sequence[Layer], total: Cost) -> Markup:
    """A row per layer, with bars for bytes and for time."""
    widest = max(layer.cost.traffic for layer in rows)
    slowest = max(layer.cost.seconds or 0.0 for layer in rows)
    timed = any(layer.cost.seconds is not None for layer in rows)
    headings = [first, "phase", "to server", "to client", "bytes", "of bytes", "rounds"]
    headings += ["time", "", "of time"] if timed else []
    return table(caption, headings, [layer_row(row, total, widest, slowest if timed else None) for row in rows])


def layer_row(layer: Layer, total: Cost, widest: float, slowest: float | None) -> list[Markup]:
    """One layer."""
    cost = layer.cost
    row = [
        name_cell(layer.name, layer.operator, layer.protocol),
        element("td", layer.phase),
        bytes_cell(cost.to_server),
        bytes_cell(cost.to_client),
        bar_cell(ways(cost, layer.name), widest),
        figure(share(cost.traffic, total.traffic)),
        count_cell(cost.rounds),
    ]
    if slowest is None:
        return row
    bars = bar_cell(time_segment("time", layer.name, cost), slowest)
    return [*row, seconds_cell(cost.seconds), bars, figure(share(cost.seconds, total.seconds))]


def cumulative(runs: list[Run]) -> Markup:
    """Bytes and time from the first row to the last, a line per run and direction."""
    runs = [run for run in runs if len(run.costs.layers) >= FEWEST_FOR_LINES]
    if not runs:
        return Markup()
    several = len(runs) > 1
    drawn = [
        element("figure", charts.lines(traffic_lines(runs), "Megabytes up to each layer", "layer"), caption_of("MB"))
    ]
    timed = [run for run in runs if run.costs.total.seconds is not None]
    if timed:
        chart = charts.lines(time_lines(timed), "Seconds up to each layer", "layer")
        drawn.append(element("figure", chart, caption_of("seconds")))
    names = [(f"s{index % 6}", run.name) for index, run in enumerate(runs)]
    colours = charts.legend(names if several else [*DIRECTIONS, ("time", "time")])
    about = "Sums from the start of the session, layer by layer in network order."
    return section("Through the network", colours, element("div", *drawn, class_="pair"), about=about)


def caption_of(unit: str) -> Markup:
    """The caption of a chart of sums."""
    return element("figcaption", f"{unit} from the start")


def traffic_lines(runs: list[Run]) -> list[Series]:
    """Megabytes: both ways together of several runs, each way of one."""
    if len(runs) > 1:
        return [
            series(f"s{index % 6}", run, run.name, [layer.cost.traffic / 1e6 for layer in run.costs.layers], "MB")
            for index, run in enumerate(runs)
        ]
    (run,) = runs
    sent = [layer.cost.to_server / 1e6 for layer in run.costs.layers]
    received = [layer.cost.to_client / 1e6 for layer in run.costs.layers]
    return [series("up", run, "to server", sent, "MB"), series("down", run, "to client", received, "MB")]


def time_lines(runs: list[Run]) -> list[Series]:
    """Seconds."""
    styles = ["time"] if len(runs) == 1 else [f"s{index % 6}" for index in range(len(runs))]
    return [
        series(style, run, run.name, [layer.cost.seconds or 0.0 for layer in run.costs.layers], "s")
        for style, run in zip(styles, runs, strict=True)
    ]


def series(style: str, run: Run, name: str, values: list[float], unit: str) -> Series:
    """Sums of values, one per layer."""
    points = []
    for layer, value, total in zip(run.costs.layers, values, charts.running(values), strict=True):
        points.append((total, f"{name}, {layer.name}: +{value:.4g} {unit}, {total:.4g} {unit} so far"))
    return Series(style, name, points)
