"""Charts as inline SVG: bars in cells of tables, and lines. Every mark says its number when pointed at."""

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log, log10
from typing import NamedTuple

from tacit.report.html.markup import Markup, element, join

WIDTH = 1000.0
BAR = 14.0
LINES = (560.0, 240.0)
MARGIN = (64.0, 12.0, 14.0, 34.0)
"""Left, right, top and bottom of a chart of lines."""
LABEL = 6.6
"""Width of a letter of the labels."""
RATIOS = 4.0
"""A bar of ratios goes from 1/4 to 4."""
TICKS = 4


class Segment(NamedTuple):
    """A part of a bar: its class for the style, its value, and what it says."""

    style: str
    value: float
    title: str


class Series(NamedTuple):
    """A line: its class for the style, its name, and a value and title per point."""

    style: str
    name: str
    points: Sequence[tuple[float, str]]


def number(value: float) -> str:
    """A coordinate."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def title(text: str) -> Markup:
    """What a mark says when pointed at."""
    return element("title", text)


def drawing(width: float, height: float, label: str, *content: str, **attributes: object) -> Markup:
    """An SVG with a description."""
    box = f"0 0 {number(width)} {number(height)}"
    return element("svg", title(label), *content, viewBox=box, role="img", aria_label=label, **attributes)


def rectangle(x: float, width: float, style: str, says: str, height: float = BAR) -> Markup:
    """A bar's part."""
    return element("rect", title(says), class_=style, x=number(x), y="0", width=number(width), height=number(height))


def bar(segments: Sequence[Segment], full: float) -> Markup:
    """Segments one after another; `full` fills the width."""
    parts, x = [], 0.0
    for segment in segments:
        width = 0.0 if full <= 0 else WIDTH * max(segment.value, 0.0) / full
        width = min(width, WIDTH - x)
        if segment.value > 0:
            parts.append(rectangle(x, width, segment.style, segment.title))
        x += width
    says = "; ".join(segment.title for segment in segments)
    return drawing(WIDTH, BAR, says, *parts, class_="bar", preserveAspectRatio="none")


def ratio_bar(ratio: float, tolerance: float, says: str) -> Markup:
    """A bar from the middle (1) to the right, to the left where it is less, on a logarithmic scale."""

    def place(value: float) -> float:
        return WIDTH / 2 * (1 + log(min(max(value, 1 / RATIOS), RATIOS)) / log(RATIOS))

    low, high = sorted((place(max(ratio, 1 / RATIOS)), WIDTH / 2))
    band = rectangle(
        place(1 - tolerance), place(1 + tolerance) - place(1 - tolerance), "band", f"within {tolerance:.0%}"
    )
    style = "far" if abs(ratio - 1) > tolerance else "near"
    middle = element("line", class_="middle", x1=number(WIDTH / 2), x2=number(WIDTH / 2), y1="0", y2=number(BAR))
    mark = rectangle(low, max(high - low, 4.0), style, says)
    return drawing(WIDTH, BAR, says, band, mark, middle, class_="bar", preserveAspectRatio="none")


def ticks(largest: float) -> list[float]:
    """Round numbers from 0 to at least `largest`."""
    if largest <= 0:
        return [0.0, 1.0]
    step = 10.0 ** floor(log10(largest / TICKS))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if step * factor * TICKS >= largest * 0.999999)
    count = next(index for index in range(1, TICKS + 1) if step * index >= largest * 0.999999)
    return [step * index for index in range(count + 1)]


def lines(series: Sequence[Series], label: str, axis: str) -> Markup:
    """Values over positions 1, 2, ..; both axes begin at 0."""
    width, height = LINES
    left, right, top, bottom = MARGIN
    marks = ticks(max((value for line in series for value, _ in line.points), default=0.0))
    most = max((len(line.points) for line in series), default=0)

    def across(index: float) -> float:
        return left + (width - left - right) * index / max(most, 1)

    def down(value: float) -> float:
        return height - bottom - (height - top - bottom) * value / marks[-1]

    parts = [grid(down(value), left, width - right, f"{value:g}") for value in marks]
    parts += [below(across(index), height - bottom, str(index)) for index in positions(most)]
    parts.append(element("text", axis, class_="axis", x=number(width - right), y=number(height - 2), text_anchor="end"))
    for line in series:
        places = [(across(0), down(0.0))]
        places += [(across(index), down(value)) for index, (value, _) in enumerate(line.points, 1)]
        parts.append(path(line.style, places))
        said = [says for _, says in line.points]
        parts += [dot(line.style, place, says) for place, says in zip(places[1:], said, strict=True)]
    return drawing(width, height, label, *parts, class_="lines")


def grid(y: float, left: float, right: float, label: str) -> Markup:
    """A line across with its number."""
    rule = element("line", class_="grid", x1=number(left), x2=number(right), y1=number(y), y2=number(y))
    text = element("text", label, class_="tick", x=number(left - 6), y=number(y + 4), text_anchor="end")
    return join((rule, text))


def below(x: float, y: float, label: str) -> Markup:
    """A position on the lower axis."""
    return element("text", label, class_="tick", x=number(x), y=number(y + 16), text_anchor="middle")


def positions(most: int) -> list[int]:
    """Which positions are named: no more than a dozen."""
    step = max(1, -(-most // 12))
    return list(range(step, most + 1, step))


def path(style: str, places: Sequence[tuple[float, float]]) -> Markup:
    """A line through places."""
    points = " ".join(f"{number(x)},{number(y)}" for x, y in places)
    return element("polyline", class_=f"line {style}", points=points)


def dot(style: str, place: tuple[float, float], says: str) -> Markup:
    """A point that says its number."""
    x, y = map(number, place)
    return element("circle", title(says), class_=f"dot {style}", cx=x, cy=y, r="2.6")


def legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """What the colours mean: classes and names."""
    keys = (join((element("i", class_=f"key {style}"), element("span", name), " ")) for style, name in entries)
    return element("p", *keys, class_="legend")


def running(values: Sequence[float]) -> list[float]:
    """Sums of the first 1, 2, .. values."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    return [after for _, after in pairwise(sums)]
