"""Costs side by side: medians, ratios, and whether they are as wanted."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.fleet.simulation.prices import Prices

MODES = ("cold", "warm")
SIDES = {"Tacit": "tacit", "SPU": "spu"}
PRICES = Prices()
WANTED_BYTES = 4.0
WANTED_SECONDS = 5.0


@dataclass(frozen=True)
class Cost:
    """One evaluation: bytes both ways; CPU seconds and memory of client and server, and what each of them sent."""

    seconds: float
    bytes: int
    cpu_seconds: list[float]
    peak_memory_bytes: list[int]
    tcp_bytes: int | None = None
    sent: list[int] | None = None


@dataclass(frozen=True)
class Ratio:
    """How much more the peer needs."""

    bytes: float
    seconds: float

    def verdict(self, same_function: bool) -> str:
        """PASS, or what is not as it should be."""
        faults = {
            "traffic": self.bytes < WANTED_BYTES,
            "time": self.seconds < WANTED_SECONDS,
            "result": not same_function,
        }
        found = [name for name, failed in faults.items() if failed]
        return f"FAIL: {', '.join(found)}" if found else "PASS"


def median(costs: Sequence[Cost], prices: Prices = PRICES) -> dict[str, Any]:
    """The cost of median time (of two the shorter), with the seconds of all.

    Where it is known what the server sent, `dollars_per_thousand` are the server's for 1,000 sessions: of its
    processor time, and of what it sends.
    """
    ordered = sorted(costs, key=lambda cost: cost.seconds)
    middle = ordered[(len(ordered) - 1) // 2]
    chosen = {name: value for name, value in asdict(middle).items() if value is not None}
    if middle.sent is not None:
        chosen["dollars_per_thousand"] = 1000 * prices.of_server(middle.cpu_seconds[1], middle.sent[1])
    return {
        **chosen,
        "bytes": round(statistics.median(cost.bytes for cost in costs)),
        "all_seconds": [round(cost.seconds, 4) for cost in costs],
    }


def ratio(ours: dict[str, Any], theirs: dict[str, Any]) -> Ratio:
    """Theirs over ours."""
    return Ratio(theirs["bytes"] / ours["bytes"], theirs["seconds"] / ours["seconds"])


def rows(entries: dict[str, Any]) -> list[list[str]]:
    """A row for each work and mode, below the headings."""
    table = [["work", "", "Tacit MB", "SPU MB", "ratio", "Tacit s", "SPU s", "ratio", "4x less, 5x faster"]]
    for entry in entries.values():
        for mode in MODES:
            ours = entry["tacit"][mode]
            if failure := entry["spu"].get("error"):
                alone = [digits(ours["bytes"] / 1e6), "-", "-", digits(ours["seconds"]), "-", "-"]
                table.append([entry["title"], mode, *alone, f"SPU failed: {failure}"])
                continue
            theirs = entry["spu"][mode]
            found = ratio(ours, theirs)
            times = [digits(ours["seconds"]), digits(theirs["seconds"]), f"{found.seconds:.1f}"]
            sent = [digits(ours["bytes"] / 1e6), digits(theirs["bytes"] / 1e6), f"{found.bytes:.1f}"]
            table.append([entry["title"], mode, *sent, *times, found.verdict(entry["same_function"])])
    return table


def resources(entries: dict[str, Any]) -> list[list[str]]:
    """What a cold session takes of each system beside time and traffic; a row for each work and system."""
    table = [["work, cold", "", "client CPU s", "server CPU s", "client MB", "server MB", "dollars per 1,000"]]
    for entry in entries.values():
        for name, side in SIDES.items():
            if "error" in entry[side]:
                continue
            cost = entry[side]["cold"]
            used = [digits(seconds) for seconds in cost["cpu_seconds"]]
            held = [digits(peak / 1e6) for peak in cost["peak_memory_bytes"]]
            dollars = digits(cost["dollars_per_thousand"]) if "dollars_per_thousand" in cost else "-"
            table.append([entry["title"], name, *used, *held, dollars])
    return table


def digits(value: float) -> str:
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def shown(table: Sequence[Sequence[str]]) -> str:
    """The rows in columns, names to the left."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [
            cell.ljust(width) if not index else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def agreement(results: dict[str, NDArray[np.float64]], exact: NDArray[Any], tolerance: float) -> dict[str, Any]:
    """How far each result is from the float one, and whether all are near enough to be the same function.

    `relative_error` is the length of the difference over the length of the float result.
    """
    expected = np.asarray(exact, float).reshape(-1)
    differences = {side: result.reshape(-1) - expected for side, result in results.items()}
    relative = {side: float(np.linalg.norm(d) / np.linalg.norm(expected)) for side, d in differences.items()}
    return {
        "max_error": {side: float(np.abs(d).max()) for side, d in differences.items()},
        "relative_error": relative,
        "same_function": all(error <= tolerance for error in relative.values()),
    }


def labelled(results: dict[str, NDArray[Any]], near: bool) -> dict[str, Any]:
    """The label each result stands for; they compute the same function only if these are one."""
    labels = {side: int(result.argmax()) for side, result in results.items()}
    return {"labels": labels, "same_function": near and len({*labels.values()}) == 1}
