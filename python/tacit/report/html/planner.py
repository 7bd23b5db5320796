"""bench/results/planner/planner.json: the planner's plans beside fixed settings and other suites, by model and link."""

from tacit.report.html.content import Cell, Column, Item, Listing
from tacit.report.html.fields import Field
from tacit.report.html.runs import facts_of

PLANNED = "planned"
"""The setting that is the planner's."""
SUMMARY = (
    Column("model"),
    Column("link"),
    Column(PLANNED, "seconds"),
    Column("best other"),
    Column("its time", "seconds"),
    Column("planned/best other", "ratio", True),
)
SETTINGS = (
    Column("setting"),
    Column("measured", "seconds", True),
    Column("predicted", "seconds"),
    Column("predicted/measured", "ratio", True),
    Column("traffic", "bytes"),
    Column("rounds", "number"),
    Column("transfers"),
)
ABOUT = "Quickest first; the planner's row stands out. Ratios below 1: it took longer than was predicted."
ABOUT_ALL = (
    "Ratios below 1: the plan was quicker than every fixed setting and every other suite. Settings that are close were "
    "held against the plan again, in sessions by turns: then the ratio is the median of these, not that of the times."
)


def is_planner(given: Field) -> bool:
    """Whether an object has, by model and link, `settings` anywhere."""
    models = given.fields().values()
    return any(
        "settings" in link for model in models if isinstance(model.value, dict) for link in model.fields().values()
    )


def planner_of(given: Field) -> list[Item]:
    """A summary of all models and links, then a table of settings for each."""
    links = [(model, link, entry) for model, of in given.fields().items() for link, entry in of.fields().items()]
    rows = tuple((model, link, *beside_best(entry)) for model, link, entry in links)
    tables = [settings_of(f"{model} on {link}", entry) for model, link, entry in links]
    return [Listing("The planner and fixed settings", SUMMARY, rows, note=ABOUT_ALL), *tables]


def beside_best(entry: Field) -> tuple[Cell, ...]:
    """Seconds of the plan, the best of the other settings with its seconds, and the quotient, by turns if known."""
    settings = entry["settings"]
    ours = settings[PLANNED]["seconds"].count()
    others = {name: row["seconds"].count() for name, row in settings.fields().items() if name != PLANNED}
    if not others:
        raise settings.wrong(f"has no setting but `{PLANNED}`")
    if "duels" in entry:
        best = entry["best_other"].text()
        return ours, best, settings[best]["seconds"].count(), entry["over_best"].count()
    best = min(others, key=lambda name: others[name])
    return ours, best, others[best], quotient(ours, others[best])


def settings_of(name: str, entry: Field) -> Listing:
    """A row per setting of one model on one link, and where and when it was measured."""
    rows = sorted((row_of(*row) for row in entry["settings"].fields().items()), key=lambda row: row[1])
    exact = "equal the plan's" if entry["bytes_and_rounds_exact"].truth() else "differ from the plan's"
    facts = (*facts_of(entry), ("bytes and rounds", exact))
    return Listing(name, SETTINGS, tuple(rows), facts, ABOUT, marked=PLANNED)


def row_of(name: str, row: Field) -> tuple[str, float, float, float | None, float, float, str]:
    """One setting, as the columns want it."""
    measured, predicted = row["seconds"].count(), row["predicted"].count()
    costs = row["bytes"].count(), row["rounds"].count()
    return (name, measured, predicted, quotient(predicted, measured), *costs, row["ot"].text())


def quotient(part: float, whole: float) -> float | None:
    """None where nothing was measured."""
    return part / whole if whole else None
