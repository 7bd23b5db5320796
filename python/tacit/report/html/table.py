"""Tables whose numbers are short to read and exact to point at."""

from collections.abc import Iterable, Sequence

from tacit.report.html.charts import Segment, bar
from tacit.report.html.content import Cost
from tacit.report.html.markup import Markup, element, join
from tacit.report.terminal import duration, size

NONE = "\N{EN DASH}"


def exactly(count: float, unit: str = "bytes") -> str:
    """A count with all its digits."""
    return f"{count:,.0f} {unit}" if float(count).is_integer() else f"{count:,.1f} {unit}"


def seconds(value: float | None) -> str:
    """A time for people, or a dash."""
    return NONE if value is None else duration(value)


def share(part: float | None, whole: float | None) -> str:
    """A part of a whole in percent."""
    return NONE if part is None or not whole else f"{part / whole:.1%}"


def figure(shown: str, exact: str | None = None, style: str = "number") -> Markup:
    """A cell with a number."""
    return element("td", shown, class_=style, title=exact)


def bytes_cell(count: float) -> Markup:
    """A cell with a number of bytes."""
    return figure(size(count), exactly(count))


def seconds_cell(value: float | None) -> Markup:
    """A cell with a time."""
    return figure(seconds(value), None if value is None else f"{value:.9g} s")


def count_cell(value: float) -> Markup:
    """A cell with a count."""
    return figure(f"{value:,.10g}")


def bar_cell(segments: Sequence[Segment], full: float, style: str = "bars") -> Markup:
    """A cell with a bar."""
    return element("td", bar(segments, full), class_=style)


def name_cell(name: str, *below: str) -> Markup:
    """The head of a row, with what explains it in small letters below."""
    small = (element("small", line) for line in below if line)
    return element("th", element("span", name), *small, scope="row")


def cost_cells(cost: Cost) -> list[Markup]:
    """Bytes each way, rounds and time."""
    return [
        bytes_cell(cost.to_server),
        bytes_cell(cost.to_client),
        count_cell(cost.rounds),
        seconds_cell(cost.seconds),
    ]


def ways(cost: Cost, name: str) -> list[Segment]:
    """Segments of a bar: bytes to the server, then to the client."""
    return [
        Segment("up", cost.to_server, f"{name}: {exactly(cost.to_server)} to server"),
        Segment("down", cost.to_client, f"{name}: {exactly(cost.to_client)} to client"),
    ]


def time_segment(style: str, name: str, cost: Cost) -> list[Segment]:
    """One segment of a bar of time, if it is known."""
    return [] if cost.seconds is None else [Segment(style, cost.seconds, f"{name}: {cost.seconds:.6g} s")]


def table(
    caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]], last: bool = False, marked: int | None = None
) -> Markup:
    """Rows of cells under headings; with `last` the last row is a sum. The row of index `marked` stands out."""
    content = list(rows)
    above = content[0] if content else [""] * len(headings)
    columns = zip(headings, above, strict=True)
    head = element("tr", *(element("th", heading, scope="col", class_=stands(cell)) for heading, cell in columns))
    body = [
        element("tr", *cells, class_="marked" if index == marked else None)
        for index, cells in enumerate(content[:-1] if last else content)
    ]
    foot = element("tfoot", element("tr", *content[-1])) if last and content else Markup()
    parts = (element("caption", caption), element("thead", head), element("tbody", *body), foot)
    return element("div", element("table", *parts), class_="scroll")


def stands(cell: str) -> str | None:
    """The class of a heading: it stands like the cells below it."""
    return "number" if cell.startswith('<td class="number') else None


def section(heading: str, *content: str, about: str = "") -> Markup:
    """A part of the page under a heading."""
    note = element("p", about, class_="about") if about else Markup()
    return element("section", element("h3", heading), note, *content)


def facts(rows: Iterable[tuple[str, str]]) -> Markup:
    """Names and values."""
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in rows]
    return element("dl", *pairs, class_="facts") if pairs else Markup()


def paragraph(*content: str, style: str | None = None) -> Markup:
    """Text."""
    return element("p", join(content), class_=style)
