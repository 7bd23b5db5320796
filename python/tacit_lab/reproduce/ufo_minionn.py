"""MiniONN's network of CIFAR-10 with few bits, as in UFO's figure 14: rounded after training, and trained with them.

The trained one is an asset: `tacit train bits` made it of DELPHI's weights (MIT and Apache-2.0), see
python/tacit/assets/README.md.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tacit.demo.digits import asset

from tacit_lab.reproduce.paper import Rows, row
from tacit_lab.reproduce.ufo import UNKNOWN
from tacit_lab.reproduce.ufo_networks import ENCRYPTED, QUICK, UFO, Network, Widths, file, made, point

MINIONN = Network("MiniONN, CIFAR-10", "delphi_minionn_cifar10_relu.onnx", "unit")
TRAINED = "minionn_cifar10_4bits.onnx.xz"
FOUR = Widths(4, 4)


def minionn(full: bool, data: Path) -> dict[str, Any]:
    """Bytes and accuracy of both, under suite ufo and with encrypted products; `full`: of all test images."""
    seen, test = MINIONN.sets(data, None if full else QUICK)
    rows: Rows = []
    measured: Rows = []
    for kind, source in (("rounded", file(data, MINIONN)), ("trained", asset(TRAINED))):
        for way in (UFO, ENCRYPTED):
            with TemporaryDirectory() as folder:
                found = point(made(Path(folder), source, seen, way, FOUR), test)
            name = f"{MINIONN.name}, {FOUR}, {way.name}, {kind}"
            rows.append(row(name, UNKNOWN, found.total, "MB"))
            rows.append(row(f"{name}, top-1 of {len(test.x)} images", UNKNOWN, found.top1, "%"))
            measured.append({"name": name, "online_mb": found.online})
    note = "the figure's numbers are not in the text; the float network has 85.02 %"
    return {"rows": rows, "measured": measured, "note": note}
