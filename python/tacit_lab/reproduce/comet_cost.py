"""Comet's tables of cost: 3, 4 and 8, operator by operator, measured between two processes.

All starts run on the same Newton protocol and uniform shares, so ratios show what the start is worth. Ours begin at the
affine start, which as the paper's needs no communication. Widths are those of models with activations of 8 bits. The
published systems find a root for every element of a norm, and rows called `element` do the same; in ours it is found
once a row, so that starts weigh little against what every element needs. Whole models cost what `tacit plan` says.
"""

from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import MisuseError
from tacit.measure.operation import OperationPair

from tacit_lab.reproduce.paper import Rows, row

Shape = tuple[int, int]
QUICK, FULL = 16, 128
"""Tokens of the layer of BERT-base whose operators are measured."""
HEADS, HIDDEN, WIDE = 12, 768, 3072
WIDTHS: dict[str, dict[str, Any]] = {
    "gelu": {"bits": 9, "out_bits": 8, "range": 8.0},
    "softmax": {"bits": 9, "out_bits": 8, "range": 16.0},
    "layernorm": {"bits": 9, "out_bits": 19, "range": 32.0},
}


class Published(NamedTuple):
    """Communication of one layer's operators in the paper, in its unit."""

    layernorm: float
    gelu: float
    softmax: float


TITLES = {"layernorm": "LayerNorm", "gelu": "activation", "softmax": "softmax"}
ARRANGED = (("layernorm", True), ("layernorm", False), ("gelu", False), ("softmax", False))
"""Operators, and whether each element finds a root."""
CRYPTEN_FRAMEWORK = {
    "crypten": Published(2.14, 6.28, 3.28),
    "taylor-high": Published(2.33, 5.82, 3.19),
    "taylor-low": Published(2.03, 5.57, 3.09),
}
IN_CRYPTEN = Published(0.94, 1.83, 1.58)
IRON = {"table": Published(7.45, 14.9, 8.85)}
IN_IRON = Published(3.03, 4.05, 3.56)
BUMBLEBEE_SPEEDUP = 1.5


def sizes(tokens: int) -> dict[str, Shape]:
    """Rows and columns of each operator for so many tokens; rows of scores are as long as a whole text."""
    return {"layernorm": (tokens, HIDDEN), "gelu": (tokens, WIDE), "softmax": (HEADS * tokens, FULL)}


def measured(function: str, start: str | None, full: bool, of_elements: bool = False) -> dict[str, Any]:
    """Bytes, rounds and seconds of one operator from a start, the session's setup left out; None is suite auto.

    With `of_elements` each element finds its root, not each row.
    """
    rows, cols = sizes(FULL if full else QUICK)[function]
    operation: dict[str, Any] = {"operation": function, "rows": rows, "cols": cols, **WIDTHS[function]}
    if start is not None:
        operation |= {"operation": "comet", "function": function, "start": start, "accept_leakage": False}
        operation["of_elements"] = of_elements
    report = OperationPair(operation, threads=1).run()
    costs = [report["phases"][phase] for phase in ("offline", "online")]
    traffic = sum(sum(cost["bytes"].values()) for cost in costs)
    seconds = sum(cost["seconds"] for cost in costs)
    return {
        "name": f"{function}{', element' if of_elements else ''}, {start or 'auto'}",
        "bytes": traffic,
        "rounds": costs[1]["rounds"],
        "seconds": seconds,
    }


def compared(baselines: dict[str, Published], ours: Published, full: bool) -> dict[str, Any]:
    """Communication of each baseline over ours, by operator; a start that diverges there has no row."""
    rows: Rows = []
    seen: Rows = []
    for function, of_elements in ARRANGED:
        affine = measured(function, "affine", full, of_elements)
        seen.append(affine)
        what = TITLES[function] + (", element" if of_elements else "")
        for start, published in baselines.items():
            try:
                other = measured(function, start, full, of_elements)
            except MisuseError as error:
                seen.append({"name": f"{what}, {start}", "refused": str(error)})
                continue
            seen.append(other)
            paper = getattr(published, function) / getattr(ours, function)
            rows.append(row(f"{what}, {start}/affine, communication", paper, other["bytes"] / affine["bytes"], "x"))
    return {"rows": rows, "measured": seen}


def comet_table3(full: bool, _data: Path) -> dict[str, Any]:
    """Table 3: CrypTen's start and Taylor series of high and low order."""
    return compared(CRYPTEN_FRAMEWORK, IN_CRYPTEN, full)


def comet_table4(full: bool, _data: Path) -> dict[str, Any]:
    """Table 4: the start by a table, as Iron and SiRNN have it."""
    return compared(IRON, IN_IRON, full)


def comet_table8(full: bool, _data: Path) -> dict[str, Any]:
    """Table 8: GELU of suite auto, by tables, beside the smooth maximum; Bumblebee's is another protocol."""
    auto, ours = measured("gelu", None, full), measured("gelu", "affine", full)
    rows = [
        row("GELU, auto/comet, time", BUMBLEBEE_SPEEDUP, auto["seconds"] / ours["seconds"], "x"),
        row("GELU, auto/comet, communication", 0, auto["bytes"] / ours["bytes"], "x"),
    ]
    return {"rows": rows, "measured": [auto, ours]}
