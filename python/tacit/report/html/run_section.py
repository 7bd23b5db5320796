"""One run: its numbers in short, then section by section."""

from collections.abc import Iterator

from tacit.report.html import charts
from tacit.report.html.charts import Segment
from tacit.report.html.content import PARTIES, Costs, Measure, Run
from tacit.report.html.layers import cumulative, kinds, layers, phases
from tacit.report.html.markup import Markup, element, join
from tacit.report.html.prediction import compare
from tacit.report.html.table import exactly, facts, figure, name_cell, seconds, section, table
from tacit.report.html.timing import link, prediction
from tacit.report.terminal import size


def of_run(run: Run, plan: Costs | None) -> Markup:
    """Everything about a run."""
    heading = element("h2", run.name, id=anchor(run.name))
    predicted = plan or run.predicted
    parts = [heading, headline(run), phases(run)]
    if run.costs.layers:
        parts += [kinds(run), layers(run), cumulative([run])]
    if run.link is not None:
        parts.append(link(run))
    if predicted is not None:
        parts.append(prediction(compare(run.costs, predicted)))
    if run.measures:
        parts.append(accuracy(run.measures))
    parts.append(settings(run))
    return element("article", *parts)


def anchor(name: str) -> str:
    """The place of a run on the page."""
    return "run-" + "".join(letter if letter.isalnum() else f"-{ord(letter):x}-" for letter in name)


def headline(run: Run) -> Markup:
    """The numbers that matter, as tiles."""
    return element("div", *(tile(*entry) for entry in headlines(run)), class_="tiles")


def tile(name: str, value: str, below: str = "", exact: str | None = None) -> Markup:
    """A number with its name above and what it consists of below."""
    parts = (element("span", name, class_="name"), element("b", value, title=exact), element("small", below))
    return element("div", *parts, class_="tile")


def headlines(run: Run) -> Iterator[tuple[str, ...]]:
    """Name, value, explanation, exact value."""
    costs, total = run.costs, run.costs.total
    what = "planned, nothing ran" if run.planned else f"suite {run.suite}"
    yield "model", stem(run.model), what
    ways_below = f"{size(total.to_server)} to server, {size(total.to_client)} to client"
    yield "traffic", size(total.traffic), ways_below, exactly(total.traffic)
    yield "rounds", f"{total.rounds:,.10g}", f"{costs.phases['online'].rounds:,.10g} online"
    yield from times(run)
    yield "inputs", f"{costs.inputs:g}", per_input(costs)
    if run.link is not None:
        network = run.link.network
        rate = f"{network.bits_per_second / 1e6:g} Mbit/s"
        yield "link", run.link.name, f"{network.round_trip_seconds * 1e3:g} ms round trip, {rate}"
    if run.memory is not None:
        most = max(run.memory, key=lambda party: run.memory[party] if run.memory else 0)
        yield "peak memory", size(run.memory[most]), ", ".join(f"{size(run.memory[p])} {p}" for p in run.memory)
    for measure in run.measures[:3]:
        yield measure.name, said(measure)


def times(run: Run) -> Iterator[tuple[str, ...]]:
    """The time it took, or what is known of it beforehand."""
    total = run.costs.total.seconds
    if total is not None:
        online = run.costs.phases["online"].seconds
        yield "predicted time" if run.planned else "time", seconds(total), f"{seconds(online)} online", f"{total:.9g} s"
    if run.wire_seconds is not None:
        yield "time on the wire", seconds(run.wire_seconds), "transmission and round trips", f"{run.wire_seconds:.9g} s"


def stem(model: str) -> str:
    """A model's name without its folder."""
    return model.rstrip("/").rpartition("/")[2] or model


def per_input(costs: Costs) -> str:
    """What one input costs beside the setup."""
    if costs.inputs <= 1:
        return ""
    parts = [costs.phases[phase] for phase in ("offline", "online")]
    traffic = sum(part.traffic for part in parts) / costs.inputs
    if any(part.seconds is None for part in parts):
        return f"{size(traffic)} each, after setup"
    return f"{size(traffic)}, {seconds(sum(part.seconds or 0.0 for part in parts) / costs.inputs)} each, after setup"


def accuracy(measures: tuple[Measure, ...]) -> Markup:
    """What is known about the result; shares as bars."""
    rows = []
    for measure in measures:
        drawn = Markup()
        if measure.is_share:
            says = f"{measure.name}: {said(measure)}"
            drawn = charts.bar([Segment("share", max(measure.value, 0.0), says)], 1.0)
        number = figure(said(measure), f"{measure.value:.9g}")
        rows.append([name_cell(measure.name), number, element("td", drawn, class_="bars")])
    return section("Accuracy", table("Quality of the result", ("measure", "value", "0 to 100 %"), rows))


def said(measure: Measure) -> str:
    """A measure for people."""
    return f"{measure.value:.2%}" if measure.is_share else f"{measure.value:,.6g}"


def settings(run: Run) -> Markup:
    """Machine, version, options, parameters."""
    rows = [("model", run.model), ("suite", run.suite), *run.facts]
    if run.link is not None:
        rows.append(("network", run.link.name))
    for name, values in (("CPU seconds", run.processor_seconds), ("peak memory", run.memory)):
        if values is not None:
            shown = size if name == "peak memory" else seconds
            rows.append((name, ", ".join(f"{party} {shown(values[party])}" for party in PARTIES if party in values)))
    items = [element("li", line) for line in run.parameters]
    listed = join((element("h4", "Parameters"), element("ul", *items))) if items else Markup()
    return section("Settings", facts(rows), listed)
