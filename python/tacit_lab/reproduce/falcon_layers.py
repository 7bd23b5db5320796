"""FALCON's table 2: the server's time of linear layers, GAZELLE beside FALCON.

Ours is the transform mod p (falcon-ntt), which is secure. The published protocol (falcon) is compared with it at the
same ring degree and modulus: twice the ciphertexts, four times the products.
"""

from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tacit.measure.architectures import Layer

from tacit_lab.he_operation_counts import compare
from tacit_lab.reproduce.paper import Rows, row

RUNS = 3
FULL_RUNS = 15
PROTOCOLS = ("gazelle", "falcon_ntt", "falcon", "same_parameters")


class Published(NamedTuple):
    """A layer of the table, and milliseconds (setup, online) of both."""

    layer: Layer
    padded: bool
    gazelle: tuple[float, float]
    falcon: tuple[float, float]

    def conv(self) -> dict[str, Any]:
        """The geometry of the layer as the core reads it."""
        conv = self.layer.conv()
        return conv if self.padded else {**conv, "padding": [0] * 4}


LAYERS = (
    Published(Layer("28x28x1 to 5, 5x5", 1, 5, 28, 5), False, (11.4, 9.2), (3.1, 0.25)),
    Published(Layer("16x16x128 to 128, 3x3", 128, 128, 16, 3), True, (3312, 704), (615, 51.2)),
    Published(Layer("2048 to 1", 2048, 1), True, (16.2, 8.0), (1.2, 0.1)),
    Published(Layer("1024 to 16", 1024, 16), True, (21.8, 7.8), (9.6, 0.8)),
)


def typical(entry: dict[str, Any]) -> dict[str, Any]:
    """Medians in milliseconds. Setup is encoding weights and preparing masks."""
    of = {part: 1000 * median(entry[part]) for part in ("preparing", "computing", "online")}
    return {**entry, **of, "encoding": 1000 * entry["encoding"], "setup": 1000 * entry["encoding"] + of["preparing"]}


def layer_rows(published: Published, timed: dict[str, dict[str, Any]]) -> Rows:
    """The rows of one layer: times, how much faster, and both forms of FALCON."""
    name, gazelle, falcon = published.layer.name, published.gazelle, published.falcon
    ours, before = timed["falcon_ntt"], timed["gazelle"]
    same, complex_ = timed["same_parameters"], timed["falcon"]
    traffic = {key: entry["sent"] + entry["received"] for key, entry in timed.items()}
    return [
        row(f"{name}, GAZELLE, setup", gazelle[0], before["setup"], "ms"),
        row(f"{name}, GAZELLE, online", gazelle[1], before["online"], "ms"),
        row(f"{name}, FALCON, setup", falcon[0], ours["setup"], "ms"),
        row(f"{name}, FALCON, online", falcon[1], ours["online"], "ms"),
        row(f"{name}, GAZELLE/FALCON, online", gazelle[1] / falcon[1], before["online"] / ours["online"], "x"),
        row(
            f"{name}, GAZELLE/FALCON, up to the masks",
            gazelle[1] / falcon[1],
            before["computing"] / ours["computing"],
            "x",
        ),
        row(f"{name}, falcon/falcon-ntt, products", 4, complex_["multiplications"] / same["multiplications"], "x"),
        row(f"{name}, falcon/falcon-ntt, up to the masks", 4, complex_["computing"] / same["computing"], "x"),
        row(f"{name}, falcon/falcon-ntt, bytes", 2, traffic["falcon"] / traffic["same_parameters"], "x"),
    ]


def falcon_table2(full: bool, _data: Path) -> dict[str, Any]:
    """Table 2. Rows of both forms of FALCON have what the paper's counts say instead of a time."""
    rows: Rows = []
    measured: Rows = []
    for published in LAYERS:
        compared = compare(published.conv(), FULL_RUNS if full else RUNS)
        timed = {protocol: typical(compared[protocol]) for protocol in PROTOCOLS}
        rows += layer_rows(published, timed)
        measured.append({"name": published.layer.name, "unit": "ms", **timed})
    return {"rows": rows, "measured": measured}
