"""Private decision trees beside other systems, with random ensembles of the sizes that these name.

The column `paper` has the seconds of weirwood (100 trees with 177 tests, by fully homomorphic encryption), and of
Kangaroo (NDSS 2026; 969 trees with 411,825 nodes, two parties over a wide area), and 0 where nobody has a number.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from tacit.compiler.trees import compile_ensemble
from tacit.model import Model
from tacit.session.pair import Pair, Run

from tacit_lab.reproduce.forests import SEED, Forest, grow
from tacit_lab.reproduce.paper import Rows, row

MB = 1e6
FIELDS = ("bytes", "rounds", "seconds", "phases", "max_error", "peak_memory_bytes", "cpu_seconds")
RUNS = 3
"""Sessions, the median of which counts."""


class Case(NamedTuple):
    """An ensemble, rows of a session, and seconds of another system by the link; `full` ones take minutes."""

    name: str
    forest: Forest
    theirs: dict[str, float]
    rows: int = 1
    full: bool = False


LOOPBACK, WAN = "loopback", "wan"
CASES = (
    Case("100 trees, 177 tests (weirwood)", Forest(100, 177, 30, 4), {LOOPBACK: 64.0}),
    Case("500 trees of depth 6, 200 features", Forest(500, 31_500, 200, 6, full=True), {}),
    Case("969 trees, 411,825 nodes (Kangaroo)", Forest(969, 205_428, 57, 29), {WAN: 58.0}, full=True),
    Case("969 trees, 411,825 tests", Forest(969, 411_825, 57, 29), {}, full=True),
    Case("500 trees of depth 6, 1,000 rows", Forest(500, 31_500, 200, 6, full=True), {}, 1000, full=True),
)


def session(model: Model, case: Case, link: str) -> Run:
    """The session of the median time among some."""
    rng = np.random.default_rng(SEED)
    rows = rng.normal(size=(case.rows, case.forest.features)).astype(np.float32)
    pair = Pair(model, threads=1, network=None if link == LOOPBACK else link)
    runs = [pair.run(rows, None) for _ in range(RUNS if case.rows == 1 else 1)]
    return sorted(runs, key=lambda run: float(run.report["seconds"]))[len(runs) // 2]


def measured(case: Case, folder: Path) -> tuple[Rows, dict[str, Any]]:
    """The lines of a case, and what was measured besides."""
    compile_ensemble(grow(case.forest, case.name), folder / "source", folder / "x.tacit", None)
    model = Model(folder / "x.tacit")
    lines: Rows = []
    reports: dict[str, Any] = {}
    for link in (LOOPBACK, WAN):
        report = session(model, case, link).report
        lines.append(row(f"{case.name}, {link}", case.theirs.get(link, 0.0), float(report["seconds"]), "s"))
        lines.append(row(f"{case.name}, {link}, bytes", 0.0, sum(report["bytes"].values()) / MB, "MB"))
        reports[link] = {field: report[field] for field in FIELDS}
    return lines, {case.name: reports}


def tables(full: bool, data: Path) -> dict[str, Any]:
    """Rows of all cases, or of the quick ones; `data` is not read."""
    del data
    lines: Rows = []
    found: dict[str, Any] = {}
    for case in CASES:
        if case.full and not full:
            continue
        with TemporaryDirectory() as folder:
            (Path(folder) / "source").write_text(case.name)
            own, reports = measured(case, Path(folder))
        lines += own
        found |= reports
    note = "one thread a party, setup included; `paper` is the system that a line names"
    return {"table": "trees", "rows": lines, "measured": found, "note": note}
