"""Figures of papers, drawn from our numbers. Each takes a table's content."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Content = dict[str, Any]
WIDE = 7.0
"""Inches."""


def panels(count: int, height: float) -> tuple["Figure", list[Any]]:
    """A figure of panels, one above the other, and their axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDE, height * count), layout="constrained")
    return figure, list(figure.subplots(count, 1, squeeze=False)[:, 0])


def bars(axis: Any, names: Sequence[str], columns: Mapping[str, Sequence[float]], unit: str) -> None:
    """Groups of bars: a group per name, a bar per column."""
    width = 0.8 / len(columns)
    for index, (label, values) in enumerate(columns.items()):
        places = [place + (index - (len(columns) - 1) / 2) * width for place in range(len(names))]
        axis.bar(places, values, width, label=label)
    turned = {"rotation": 30, "ha": "right"} if max(map(len, names)) > 12 else {}
    axis.set_xticks(range(len(names)), names, fontsize=8, **turned)
    axis.set_ylabel(unit)
    if len(columns) > 1:
        axis.margins(y=0.25)
        axis.legend(fontsize=7, ncols=len(columns))


def accumulated(content: Content) -> "Figure":
    """GALA's figure 9: accumulated time of linear layers and the speedup, a panel per network."""
    networks = content["accumulated"]
    figure, axes = panels(len(networks), 2.2)
    for (name, sums), axis in zip(networks.items(), axes, strict=True):
        layers = range(1, len(sums["gala"]) + 1)
        axis.plot(layers, sums["gazelle"], label="GAZELLE")
        axis.plot(layers, sums["gala"], label="GALA")
        axis.set_title(f"{name}: {sums['gazelle'][-1] / sums['gala'][-1]:.1f}x", fontsize=9)
        axis.set_ylabel("seconds")
        axis.legend(fontsize=7)
    axes[-1].set_xlabel("linear layer")
    return figure


def residuals(content: Content) -> "Figure":
    """UFO's figure 13: conversions in front of the addition of residuals."""
    found = content["measured"]
    figure, (axis,) = panels(1, 2.6)
    columns = {kind: [entry[f"{kind}_mb"] for entry in found] for kind in ("baseline", "simplified")}
    bars(axis, [entry["name"] for entry in found], columns, "MB")
    return figure


def optimisations(content: Content) -> "Figure":
    """UFO's figure 16: megabytes as one optimisation after the other is added, a panel per network and transfers."""
    groups: dict[str, list[Content]] = {}
    for entry in content["measured"]:
        what, _, _ = entry["name"].rpartition(", ")
        groups.setdefault(what, []).append(entry)
    figure, axes = panels(len(groups), 2.4)
    for (what, steps), axis in zip(groups.items(), axes, strict=True):
        names = [step["name"].rpartition(", ")[2] for step in steps]
        columns = {part: [step[f"{part}_mb"] for step in steps] for part in ("total", "online")}
        bars(axis, names, columns, "MB")
        axis.set_title(what, fontsize=9)
    return figure


def tradeoffs(content: Content) -> "Figure":
    """UFO's figure 14: accuracy against megabytes, a panel per network and a line per way."""
    networks = list(dict.fromkeys(entry["network"] for entry in content["measured"]))
    figure, axes = panels(len(networks), 3)
    for network, axis in zip(networks, axes, strict=True):
        found = [entry for entry in content["measured"] if entry["network"] == network]
        for way in dict.fromkeys(entry["way"] for entry in found):
            points = sorted((entry["total"], entry["top1"]) for entry in found if entry["way"] == way)
            axis.plot([total for total, _ in points], [top1 for _, top1 in points], "o-", label=way, markersize=4)
        axis.set_title(network, fontsize=9)
        axis.set_xscale("log")
        axis.set_ylabel("top-1, %")
        axis.legend(fontsize=7)
    axes[-1].set_xlabel("MB of an image")
    return figure


def blocks(content: Content) -> "Figure":
    """UFO's figure 17: megabytes of every block."""
    found = content["measured"]
    figure, (axis,) = panels(1, 3)
    kinds = {"few_bits_mb": "few bits", "tiles_mb": "+ Winograd", "fusion_mb": "+ fusion"}
    columns = {label: [entry[key] for entry in found] for key, label in kinds.items()}
    bars(axis, [entry["name"].removeprefix("block ") for entry in found], columns, "MB")
    axis.set_xlabel("block")
    return figure


def widths(content: Content) -> "Figure":
    """UFO's figure 18: bits of weights, layer by layer."""
    figure, (axis,) = panels(1, 3)
    rows = content["rows"]
    bars(axis, [str(place) for place in range(1, len(rows) + 1)], {"weights": [row["ours"] for row in rows]}, "bits")
    axis.set_xlabel("3x3 convolution")
    return figure


def peers(content: Content) -> "Figure":
    """What others need over ours, on a logarithmic scale: a bar per row."""
    rows = [row for row in content["rows"] if row["paper"] and row["ours"]]
    figure, (axis,) = panels(1, 0.5 + 0.22 * len(rows))
    axis.barh(range(len(rows)), [row["paper"] / row["ours"] - 1 for row in rows], left=1)
    axis.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=7)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xlabel("theirs / ours")
    return figure


def write(figure: "Figure", path: Path) -> None:
    """Write a figure as PNG, SVG or PDF, by the name of the file; the same numbers give the same file."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": path.name}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
