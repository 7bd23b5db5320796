"""The page: a head, a list of what is on it, and an article for each part. It asks the network for nothing."""

from collections.abc import Sequence
from importlib.resources import files

from tacit.report.html.content import Costs, Item, Listing, Paper, Run
from tacit.report.html.listings import of_listing, of_paper
from tacit.report.html.markup import Markup, element
from tacit.report.html.run_section import anchor, of_run
from tacit.report.html.side_by_side import compared

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(items: Sequence[Item], plan: Costs | None, title: str, made: str) -> str:
    """The whole file. `plan` is held against every run; `made` says by what the page was made."""
    runs = [item for item in items if isinstance(item, Run)]
    parts = [contents(runs)] if len(runs) > 1 else []
    parts += [compared(runs)] if len(runs) > 1 else []
    parts += [article(item, plan) for item in items]
    body = (element("header", element("h1", title)), element("main", *parts), element("footer", made))
    document = element("html", head(title), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{document}\n"


def head(title: str) -> Markup:
    """Title, style, and a policy that forbids the browser to load anything."""
    style = Markup(files("tacit").joinpath("report", "html", "style.css").read_text(encoding="utf-8"))
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", style),
    )


def contents(runs: Sequence[Run]) -> Markup:
    """Links to all runs."""
    links = [element("li", element("a", run.name, href=f"#{anchor(run.name)}")) for run in runs]
    return element("nav", element("ul", *links), aria_label="Runs")


def article(item: Item, plan: Costs | None) -> Markup:
    """One part."""
    if isinstance(item, Run):
        return of_run(item, plan)
    if isinstance(item, Paper):
        return of_paper(item)
    assert isinstance(item, Listing)
    return of_listing(item)


def title_of(items: Sequence[Item]) -> str:
    """What a page is called unless it is named."""
    first = items[0]
    what = first.model.rpartition("/")[2] if isinstance(first, Run) else first.name
    kind = "Plan" if isinstance(first, Run) and first.planned else "Report"
    return f"{kind}: {what}" + (f" and {len(items) - 1} more" if len(items) > 1 else "")
