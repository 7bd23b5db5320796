"""Sections about time: what a link takes of it, and what a plan said."""

from tacit.report.html import charts
from tacit.report.html.charts import Segment
from tacit.report.html.content import Cost, Run
from tacit.report.html.markup import Markup, element
from tacit.report.html.prediction import FAR, Beside, Prediction
from tacit.report.html.table import NONE, bar_cell, figure, name_cell, paragraph, seconds_cell, section, share, table


def link(run: Run) -> Markup:
    """What the time went into, as far as the link tells."""
    assert run.link is not None
    network = run.link.network
    rows = []
    for name, cost in (*run.costs.phases.items(), ("total", run.costs.total)):
        if cost.traffic or cost.rounds:
            sending = 8 * cost.traffic / network.bits_per_second
            waiting = cost.rounds * network.round_trip_seconds / 2
            rows.append(link_row(name, cost, sending, waiting, network.bits_per_second))
    headings = ["phase", "transmission", "round trips", "computing, rest", "time", "", "use to server", "use to client"]
    colours = charts.legend([("send", "transmission"), ("wait", "round trips"), ("compute", "computing and the rest")])
    about = (
        f"On {run.link.name}: transmission is bytes both ways divided by the bandwidth, round trips are half a round "
        "trip a round, the rest is computing. What overlaps is counted twice, so that the parts may exceed the time. "
        "Use is the share of a direction's bandwidth over the whole time."
    )
    return section("Link", colours, table("Time on the link", headings, rows, last=True), about=about)


def link_row(name: str, cost: Cost, sending: float, waiting: float, rate: float) -> list[Markup]:
    """One phase."""
    rest = None if cost.seconds is None else max(cost.seconds - sending - waiting, 0.0)
    parts = [
        Segment("send", sending, f"{name}: {sending:.4g} s of transmission"),
        Segment("wait", waiting, f"{name}: {waiting:.4g} s of round trips"),
        Segment("compute", rest or 0.0, f"{name}: {rest or 0.0:.4g} s of computing and the rest"),
    ]
    uses = [share(8 * count / rate, cost.seconds) for count in (cost.to_server, cost.to_client)]
    numbers = [seconds_cell(value) for value in (sending, waiting, rest, cost.seconds)]
    whole = sum(part.value for part in parts)
    return [name_cell(name), *numbers, bar_cell(parts, whole), *(figure(use) for use in uses)]


def prediction(found: Prediction) -> Markup:
    """Time measured for the time predicted, and whether bytes and rounds are those of the plan."""
    rows = [beside_row(row) for row in (*found.phases, *found.layers)]
    times = [row for row in (*found.phases, *found.layers) if row.ratio is not None]
    headings = ("", "phase", "bytes and rounds", "predicted", "measured", "ratio", "¼ to 4 times")
    note = f" The plan is of one run; its steps are multiplied by {found.factor:g}, and preparation is left out."
    about = f"Times more than {FAR:.0%} off the plan are marked, unless they are below 1 % of the whole."
    about += note if found.factor != 1 else ""
    return section("Plan and run", verdict(found, bool(times)), table("Plan and run", headings, rows), about=about)


def verdict(found: Prediction, timed: bool) -> Markup:
    """Say in a sentence how near the prediction was."""
    rows = (*found.phases, *found.layers)
    exact = sum(row.exact for row in rows)
    parts = [f"Bytes and rounds equal the plan's in {exact} of {len(rows)} rows."]
    if timed:
        parts.append(f" Times more than {FAR:.0%} off: {len(found.far)}.")
    return paragraph(*parts, style="far-text" if found.far or exact < len(rows) else None)


def beside_row(row: Beside) -> list[Markup]:
    """One layer or phase."""
    off = row.measured.traffic - row.predicted.traffic
    exact = "equal" if row.exact else f"{off:+,.0f} bytes, {row.measured.rounds - row.predicted.rounds:+g} rounds"
    said_ratio = NONE if row.ratio is None else f"{row.ratio:.2f}"
    says = f"{row.name}: {said_ratio} times the prediction"
    drawn = Markup() if row.ratio is None else charts.ratio_bar(row.ratio, FAR, says)
    return [
        name_cell(row.name),
        element("td", row.phase),
        element("td", exact, class_=None if row.exact else "far-text"),
        seconds_cell(row.predicted.seconds),
        seconds_cell(row.measured.seconds),
        figure(f"{said_ratio} ⚑" if row.far else said_ratio, style="number far-text" if row.far else "number"),
        element("td", drawn, class_="bars"),
    ]
