"""From the JSON of a session, a bench or a plan to what a report shows."""

from collections.abc import Iterator

from tacit.report.html.content import PARTIES, PHASES, Cost, Costs, Fact, Layer, Link, Measure, Run
from tacit.report.html.fields import Field
from tacit.session.network import Network, parse

MEASURES = {
    "top1": ("top-1 accuracy", True),
    "float_top1": ("top-1 accuracy of the float model", True),
    "agreement": ("labels equal to the interpreter's", True),
    "cosine_mean": ("cosine with the float embedding, mean", True),
    "cosine_min": ("cosine with the float embedding, least", True),
    "f1": ("F1", True),
    "float_f1": ("F1 of the float model", True),
    "matthews": ("Matthews' correlation", False),
    "pearson": ("Pearson's correlation", False),
    "spearman": ("Spearman's correlation", False),
    "float_spearman": ("Spearman's correlation of the float model", False),
    "max_error": ("largest difference from the interpreter, last places", False),
    "equal_outputs": ("inputs with every output equal to the interpreter's", False),
    "max_probability_error": ("largest error of a probability", False),
    "real_error": ("largest difference from the real function, last places", False),
    "checked": ("results checked", False),
}
PLAIN = ("bench", "mode", "operation", "reveal", "ot", "offline", "batch", "threads", "repeat", "end")
RAN = ("digest", "cpu_seconds", "end", "bench")


def cost_of(given: Field) -> Cost:
    """Bytes each way, rounds, and seconds if there are any."""
    sent = given["bytes"]
    seconds = given.optional("seconds")
    up, down = (sent[way].count() for way in ("client_to_server", "server_to_client"))
    return Cost(up, down, given["rounds"].count(), None if seconds is None else seconds.count())


def layer_of(given: Field) -> Layer:
    """A row of `layers`."""
    name, operator, protocol, phase = (given[key].text() for key in ("name", "operator", "protocol", "phase"))
    if phase not in PHASES:
        raise given["phase"].wrong(f"is none of {', '.join(PHASES)}")
    return Layer(name, operator, protocol, phase, cost_of(given))


def costs_of(given: Field) -> Costs:
    """The whole, its phases, its layers."""
    phases = {phase: cost_of(given["phases"][phase]) for phase in PHASES}
    layers = tuple(layer_of(row) for row in given["layers"].rows()) if "layers" in given else ()
    inputs = given["inputs"].count() if "inputs" in given else 1
    batch = given["batch"].count() if "batch" in given else 1
    return Costs(cost_of(given), phases, layers, inputs, max(batch, 1))


def measures_of(given: Field) -> Iterator[Measure]:
    """What is known about the result."""
    against = "float model" if "source" in given else "interpreter"
    for key, (name, share) in MEASURES.items():
        if key in given:
            yield Measure(name.replace("interpreter", against), given[key].number(), share)


def link_of(given: Field, fallback: str | None) -> Link | None:
    """The link that was imitated, or planned for; `fallback` names that of files that do not."""
    name = given["network"].text() if "network" in given else fallback
    if name is not None:
        return Link(name, parse(name))
    if "network_seconds" in given and "bandwidth" in given:
        return planned_link(given)
    return None


def planned_link(given: Field) -> Link:
    """The link of a plan, from its bandwidth and its time on the wire."""
    cost, bandwidth = cost_of(given), max(given["bandwidth"].count(), 1.0)
    waiting = max(given["network_seconds"].count() - 8 * cost.traffic / bandwidth, 0.0)
    trip = round(2 * waiting / max(cost.rounds, 1), 9)
    return Link(f"{trip * 1e3:g}ms,{bandwidth / 1e6:g}", Network(trip, bandwidth))


def parties_of(given: Field, key: str) -> dict[str, float] | None:
    """A quantity of both parties; a server's log has its own only."""
    found = given.optional(key)
    if found is None:
        return None
    if isinstance(found.value, dict):
        return {party: found[party].count() for party in PARTIES}
    return {"server": found.count()}


def facts_of(given: Field) -> Iterator[Fact]:
    """Machine, version, commit and settings, as far as they are named."""
    for key in ("version", "commit", "date"):
        if key in given:
            yield key, given[key].text()
    machine = given.optional("machine")
    if machine is not None:
        yield from machine_of(machine)
    for key in PLAIN:
        if key in given:
            yield key, given[key].text()
    if "all_seconds" in given:
        yield "seconds of all repeats", ", ".join(f"{row.count():.4g}" for row in given["all_seconds"].rows())
    if "digest" in given:
        yield "digest of the plan", given["digest"].text()


def machine_of(machine: Field) -> Iterator[Fact]:
    """Where it was measured: a name, or its parts."""
    if not isinstance(machine.value, dict):
        yield "machine", machine.text()
        return
    for key, value in machine.fields().items():
        parts = [row.text() for row in value.rows()] if isinstance(value.value, list) else [value.text()]
        yield key, " ".join(parts)


def run_of(given: Field, name: str, link: str | None = None) -> Run:
    """A session, a bench or a plan."""
    wire, predicted = given.optional("network_seconds"), given.optional("predicted")
    return Run(
        name,
        given["model"].text() if "model" in given else name,
        given["suite"].text() if "suite" in given else "auto",
        not any(key in given for key in RAN),
        costs_of(given),
        link_of(given, link),
        parties_of(given, "peak_memory_bytes"),
        parties_of(given, "cpu_seconds"),
        None if wire is None else wire.count(),
        tuple(measures_of(given)),
        tuple(facts_of(given)),
        tuple(row.text() for row in given["parameters"].rows()) if "parameters" in given else (),
        None if predicted is None else costs_of(predicted),
    )
