"""From the other JSON of commands, and from the files of bench/results, to what a report shows."""

from collections.abc import Iterator
from functools import reduce

from tacit.report.html.content import (
    PHASES,
    Cell,
    Column,
    Cost,
    Costs,
    Fact,
    Item,
    Listing,
    Measure,
    Paper,
    PaperRow,
    Run,
)
from tacit.report.html.fields import Field
from tacit.report.html.runs import cost_of, facts_of, measures_of, parties_of, run_of

OPERATIONS = ("rotations", "multiplications", "additions", "ciphertexts", "responses")
LONGEST_CELL = 60


def paper_of(given: Field, name: str) -> Paper:
    """A table of `tacit reproduce`."""
    rows = [row_of(row) for row in given["rows"].rows()]
    title = given["table"].text() if "table" in given else given["command"].text()
    note = given["note"].text() if "note" in given else ""
    measured = [] if "measured" not in given else list(tables("measured", given["measured"]))
    return Paper(title or name, tuple(rows), tuple(facts_of(given)), tuple(measured), note)


def row_of(given: Field) -> PaperRow:
    """A number of a paper and ours."""
    paper = given.optional("paper")
    known = None if paper is None else paper.number()
    return PaperRow(given["name"].text(), known, given["ours"].number(), given["unit"].text())


def papers_of(given: Field) -> list[Item]:
    """All tables of `tacit reproduce --all` that are done."""
    return [paper_of(table, "") for table in given["tables"].rows() if "rows" in table]


def peers_of(given: Field) -> list[Item]:
    """bench/results/peers/peers-spu.json: traffic and time of another system beside ours."""
    entries = list(given.fields().values())
    quantities = (("traffic", "bytes", 1e6, "MB"), ("time", "seconds", 1.0, "s"))
    return [
        Paper(
            f"SPU and Tacit, {name}",
            tuple(row for entry in entries for row in peer_rows(entry, key, scale, unit)),
            tuple(facts_of(entries[0])),
            theirs="SPU",
        )
        for name, key, scale, unit in quantities
    ]


def peer_rows(entry: Field, key: str, scale: float, unit: str) -> Iterator[PaperRow]:
    """A row for a cold run, and one for a warm one; the other system has no number where it failed."""
    failed = ", SPU failed" if "error" in entry["spu"] else ""
    for mode in ("cold", "warm"):
        ours = entry["tacit"][mode][key].count() / scale
        theirs = None if failed else entry["spu"][mode][key].count() / scale
        yield PaperRow(f"{entry['title'].text()}, {mode}{failed}", theirs, ours, unit)


def tables(name: str, given: Field) -> Iterator[Listing]:
    """Anything as tables: one of plain values, however deep, and one for every list of objects."""
    plain: list[tuple[Cell, ...]] = []
    for path, value in leaves(given, ""):
        if isinstance(value.value, list) and any(isinstance(row, dict) for row in value.value):
            objects = [row for row in value.rows() if isinstance(row.value, dict)]
            yield table_of(f"{name}, {path}" if path else name, objects)
        else:
            plain.append((path or name, in_words(value)))
    if plain:
        yield Listing(name, (Column("name"), Column("value")), tuple(plain))


def leaves(given: Field, path: str) -> Iterator[tuple[str, Field]]:
    """What is no object, under the keys that lead there."""
    if not isinstance(given.value, dict):
        yield path, given
        return
    for key, value in given.fields().items():
        yield from leaves(value, f"{path}, {key}" if path else key)


def in_words(given: Field) -> str:
    """A value beside others of other kinds."""
    found = cell_of(given)
    return f"{found:,.10g}" if isinstance(found, int | float) else str(found)


def table_of(name: str, objects: list[Field]) -> Listing:
    """A row per object, a column per key."""
    keys = list(dict.fromkeys(key for row in objects for key in row.fields()))
    columns = tuple(Column(key, "number") for key in keys)
    return Listing(name, columns, tuple(tuple(cell(row.fields().get(key)) for key in keys) for row in objects))


def cell(given: Field | None) -> Cell:
    """A value that may be missing."""
    return None if given is None else cell_of(given)


def cell_of(given: Field) -> Cell:
    """A number, or a short text."""
    if isinstance(given.value, int | float) and not isinstance(given.value, bool):
        return given.number()
    if isinstance(given.value, list):
        return shortened(", ".join(str(row.value) for row in given.rows()))
    if isinstance(given.value, dict):
        return shortened(", ".join(f"{key} {value.value}" for key, value in given.fields().items()))
    return None if given.value is None else shortened(given.text())


def shortened(text: str) -> str:
    """A text for a table."""
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def operations_of(given: Field, name: str) -> Listing:
    """Homomorphic operations of `tacit plan NAME`."""
    columns = (Column("layer"), *(Column(key, "number", key == "rotations") for key in OPERATIONS), Column("protocol"))
    rows: list[tuple[Cell, ...]] = []
    for row in given["layers"].rows():
        numbers = [row[key].count() for key in OPERATIONS]
        rows.append((row["name"].text(), *numbers, row["protocol"].text() if "protocol" in row else ""))
    rows.append(("total", *(given["operations"][key].count() for key in OPERATIONS), ""))
    facts = [(key, given[key].text()) for key in ("model", "suite", "slots") if key in given]
    return Listing(f"Operations of {given['model'].text()}", columns, tuple(rows), tuple(facts), name)


def accuracy_of(given: Field, name: str) -> Listing:
    """`tacit evaluate` in the clear."""
    columns = (Column("measure"), Column("value", "number"), Column("share", "share", True))
    rows = [(found.name, found.value, found.value if found.is_share else None) for found in measures_of(given)]
    facts = [(key, given[key].text()) for key in ("model", "source", "inputs", "seconds") if key in given]
    title = f"Accuracy of {name}, mode {given['mode'].text()}"
    return Listing(title, columns, tuple(rows), (*facts, *facts_of(given)))


def networks_of(given: Field) -> list[Item]:
    """bench/results/models/networks.json and encoders.json: costs of one input of each network."""
    return [network_of(entry) for entry in given.fields().values()]


def network_of(given: Field) -> Run:
    """An entry of those, per input."""
    private, name = given["private"], given["title"].text()
    inputs = private["images" if "images" in private else "inputs"].count()
    phases = {phase: cost_of(private["phases"][phase]) for phase in PHASES}
    facts: list[Fact] = [("costs", f"of one input, in a session of {inputs:g}"), *facts_of(given)]
    return Run(
        name,
        name,
        private["suite"].text(),
        planned=False,
        costs=Costs(reduce(Cost.plus, phases.values()), phases, (), 1),
        memory=parties_of(private, "peak_memory_bytes"),
        processor_seconds=parties_of(private, "cpu_seconds"),
        measures=tuple(accuracies(given, private)),
        facts=tuple(facts),
    )


def accuracies(given: Field, private: Field) -> Iterator[Measure]:
    """Accuracy of an entry of networks.json, or cosines and correlations of one of encoders.json."""
    names = {"float": "top-1 accuracy of the float model", "integers": "top-1 accuracy", "agreement": "agreement"}
    if "accuracy" in given:
        found = given["accuracy"]
        yield from (Measure(name, found[key].number(), True) for key, name in names.items() if key in found)
    for group, keys in (("cosine", ("min", "mean")), ("spearman", ("float", "integers"))):
        if group in given:
            yield from (Measure(f"{group}, {key}", given[group][key].number(), True) for key in keys)
    if "max_error" in private:
        yield Measure("largest difference from the interpreter, last places", private["max_error"].number(), False)


def sweep_of(given: Field) -> Listing:
    """bench/results/operations/linear-sweep.json."""
    ways = (Column("to server", "bytes", True), Column("to client", "bytes", True))
    columns = (Column("layer"), *ways, Column("time", "seconds", True), Column("protocol"))
    rows: list[tuple[Cell, ...]] = []
    for name, row in given["layers"].fields().items():
        sent = [row["bytes"][way].count() for way in ("client_to_server", "server_to_client")]
        rows.append((name, *sent, row["seconds"].count(), row["protocol"].text()))
    return Listing(given["bench"].text(), columns, tuple(rows), tuple(facts_of(given)))


def kernels_of(given: Field) -> list[Item]:
    """bench/results/operations/kernels.json, a table per group of kernels."""
    groups: dict[str, list[tuple[Cell, ...]]] = {}
    facts: dict[str, tuple[Fact, ...]] = {}
    for name, row in given.fields().items():
        group, _, kernel = name.rpartition("/")
        groups.setdefault(group or "kernels", []).append((kernel, row["median_ns"].count() / 1e9))
        facts.setdefault(group or "kernels", tuple(facts_of(row)))
    columns = (Column("kernel"), Column("median", "seconds", True))
    return [Listing(group, columns, tuple(rows), facts[group]) for group, rows in groups.items()]


def models_of(given: Field) -> list[Item]:
    """bench/results/papers/comet-mrpc.json: several runs of one file."""
    facts = tuple(facts_of(given))
    found = [run_of(row, name) for name, row in given["models"].fields().items()]
    return [Run(**{**vars(run), "planned": False, "facts": facts}) for run in found]


def tasks_of(given: Field) -> list[Item]:
    """bench/results/papers/comet-glue.json: measures of tasks, before and after."""
    results = (Column("original", "share", True), Column("unified", "share", True))
    columns = (Column("task"), Column("measure"), Column("inputs", "number"), *results)
    rows: list[tuple[Cell, ...]] = []
    for name, row in given["tasks"].fields().items():
        numbers = [row[key].number() for key in ("inputs", "original", "unified")]
        rows.append((name, row["measure"].text(), *numbers))
    return [Listing("Measures of tasks", columns, tuple(rows), tuple(facts_of(given)))]


def points_of(given: Field) -> list[Item]:
    """bench/results/papers/ufo-tradeoff.json: accuracy against bytes."""
    columns = (Column("mean bits", "number"), Column("traffic", "bytes", True), Column("top-1", "share", True))
    keys = ("mean_bits", "bytes", "top1")
    rows = tuple(tuple(row[key].count() for key in keys) for row in given["points"].rows())
    return [Listing(given["network"].text(), columns, rows, tuple(facts_of(given)))]


def writers_of(given: Field) -> list[Item]:
    """bench/results/models/language-models.json: what tokens cost, and how well they are chosen."""
    entries = list(given.fields().values())
    facts = tuple(facts_of(entries[0]))
    spending = (Column("traffic of a token", "bytes", True), Column("rounds", "number"))
    costs = (Column("model"), Column("link"), *spending, Column("time of its run", "seconds", True))
    shares = (Column("integers as float", "share", True), Column("with default rounding", "share", True))
    perplexities = (Column("perplexity", "number"), Column("of the float model", "number"))
    chosen = (Column("texts"), Column("positions", "number"), *shares, *perplexities)
    priced: list[tuple[Cell, ...]] = []
    compared: list[tuple[Cell, ...]] = []
    for entry in entries:
        title = entry["title"].text()
        if "cost" in entry:
            cost = entry["cost"]
            mean, link = cost["planned"]["mean_per_token"], cost.optional("network")
            spent = [mean[key].count() for key in ("bytes", "rounds")]
            seconds = cost["per_token"]["seconds"].count()
            priced.append((title, "loopback" if link is None else link.text(), *spent, seconds))
        else:
            found = entry["quality"]
            keys = ("positions", "agreement", "stochastic_agreement", "perplexity", "float_perplexity")
            compared.append((title, *(found[key].number() for key in keys)))
    tokens = Listing("Tokens of language models", costs, tuple(priced), facts)
    texts = Listing("How well tokens are chosen", chosen, tuple(compared), facts)
    return [listing for listing in (tokens, texts) if listing.rows]
