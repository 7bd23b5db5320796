"""Tables of papers, and tables of anything."""

from collections.abc import Sequence

from tacit.report.html import charts
from tacit.report.html.charts import Segment
from tacit.report.html.content import Cell, Column, Listing, Paper, PaperRow
from tacit.report.html.markup import Markup, element
from tacit.report.html.prediction import FAR
from tacit.report.html.table import (
    NONE,
    bar_cell,
    bytes_cell,
    count_cell,
    facts,
    figure,
    name_cell,
    paragraph,
    seconds_cell,
    section,
    table,
)

SPREAD = 30.0
"""Rows of a unit whose sizes differ by more have a scale each."""


def of_paper(paper: Paper) -> Markup:
    """Bars of the paper and ours, row by row."""
    scales = {unit: scale([row for row in paper.rows if row.unit == unit]) for unit in {row.unit for row in paper.rows}}
    rows = [paper_row(row, scales[row.unit], paper.theirs) for row in paper.rows]
    headings = ("", paper.theirs, "ours", "unit", f"ours/{paper.theirs}", f"{paper.theirs} above, ours below")
    about = "Bars of a unit have one scale" + (
        "." if all(scales.values()) else ", but where rows differ too much: there each row has its own."
    )
    colours = charts.legend((("paper", paper.theirs), ("ours", "ours")))
    notes = [paragraph(paper.note)] if paper.note else []
    shown = section("Side by side", *notes, colours, table(paper.name, headings, rows), facts(paper.facts), about=about)
    measured = [listing_section(listing, listing.name.capitalize()) for listing in paper.measured]
    return element("article", element("h2", paper.name), shown, *measured)


def scale(rows: Sequence[PaperRow]) -> float | None:
    """The value that fills the width, or None where each row needs its own."""
    positive = [largest for row in rows if (largest := max(row.paper or 0.0, row.ours)) > 0]
    if not positive or max(positive) / min(positive) > SPREAD:
        return None
    return max(positive)


def paper_row(row: PaperRow, full: float | None, theirs: str) -> list[Markup]:
    """One number."""
    values = (("paper", theirs, row.paper), ("ours", "ours", row.ours))
    widest = full or max(row.paper or 0.0, row.ours)
    drawn = [
        charts.bar([Segment(style, max(value or 0.0, 0.0), f"{row.name}, {name}: {value} {row.unit}")], widest)
        for style, name, value in values
    ]
    quotient = f"{row.ours / row.paper:.2f}" if row.paper else NONE
    numbers = [figure(NONE) if value is None else figure(f"{value:,.6g}", f"{value!r}") for _, _, value in values]
    return [
        name_cell(row.name),
        *numbers,
        element("td", row.unit),
        figure(quotient),
        element("td", *drawn, class_="bars"),
    ]


def of_listing(listing: Listing) -> Markup:
    """A table as a part of its own."""
    return element("article", element("h2", listing.name), listing_section(listing, "Table"))


def listing_section(listing: Listing, heading: str) -> Markup:
    """A table with bars in the columns that want them."""
    most = [full(listing, index) for index in range(len(listing.columns))]
    headings = [
        heading for column in listing.columns for heading in ([column.heading, ""] if column.bars else [column.heading])
    ]
    rows = []
    for row in listing.rows:
        cells: list[Markup] = []
        for column, value, largest in zip(listing.columns, row, most, strict=True):
            cells += shown(column, value, largest, first=not cells)
        rows.append(cells)
    wanted = None if listing.marked is None else (listing.marked,)
    marked = next((index for index, row in enumerate(listing.rows) if row[:1] == wanted), None)
    drawn = table(listing.name, headings, rows, marked=marked)
    return section(heading, drawn, facts(listing.facts), about=listing.note)


def full(listing: Listing, index: int) -> float:
    """What fills the width of a column's bars: of a sum in the last row no account is taken."""
    if listing.columns[index].unit == "share":
        return 1.0
    rows = [row for row in listing.rows if row[0] != "total"]
    return max((value for row in rows if isinstance(value := row[index], int | float)), default=0.0)


def shown(column: Column, value: Cell, largest: float, first: bool) -> list[Markup]:
    """A cell, and one for its bar."""
    cells = [cell(column, value, first)]
    if column.bars and column.unit == "ratio":
        cells.append(ratio_cell(column.heading, value))
    elif column.bars:
        drawn = value if isinstance(value, int | float) and value <= largest else 0.0
        cells.append(bar_cell([Segment("ours", max(drawn, 0.0), f"{column.heading}: {drawn:g}")], largest))
    return cells


def ratio_cell(heading: str, value: Cell) -> Markup:
    """A bar from the middle, or nothing where there is no ratio."""
    if not isinstance(value, int | float):
        return element("td", class_="bars")
    return element("td", charts.ratio_bar(value, FAR, f"{heading}: {value:.3g}"), class_="bars")


def cell(column: Column, value: Cell, first: bool) -> Markup:
    """A cell as its unit wants."""
    if value is None:
        return figure(NONE)
    if isinstance(value, str):
        return name_cell(value) if first else element("td", value)
    if column.unit == "ratio":
        return figure(f"{value:.2f}", f"{value!r}")
    cells = {"bytes": bytes_cell, "seconds": seconds_cell}
    if column.unit == "share":
        return figure(f"{value:.2%}", f"{value!r}")
    return cells.get(column.unit, count_cell)(value)
