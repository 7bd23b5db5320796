"""Comet's tables of accuracy: 1, 2, 5, 6, 7 and 9, with the tasks that models were finetuned on.

Ours are MiniLM models of 22 million parameters, the paper's BERT-base of 110: what compares is how far unified
functions and approximate roots move them. Without --full the numbers are those of
`bench/results/papers/comet-glue.json`; with it, they are computed from the models that `make train-glue` wrote.
The paper's rows "GeLU + ReLU" and "s-GeLU + ReLU" have no counterpart: there is no softmax of plain
ReLUs here.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import MisuseError

from tacit_lab.glue import TASKS
from tacit_lab.reproduce.paper import Rows, row

RESULTS = Path("bench/results/papers/comet-glue.json")
MODELS = Path("build/glue")
ROOT_INPUTS = 200
"""Inputs of the dev file on which approximate roots are tried."""
WORDS = {
    "original": "GELU and softmax",
    "activation": "unified GELU, softmax",
    "attention": "GELU, unified softmax",
    "unified": "unified",
}
"""What rows of tables 1 and 5 call the models that `tacit_lab.comet.accuracy.KINDS` names."""
Paper = dict[str, float]
ORIGINAL: Paper = {"rte": 70.8, "mrpc": 88.97, "stsb": 88.6, "sst2": 92.7, "cola": 58.9}
FIXED: dict[str, Paper] = {
    "original": ORIGINAL,
    "activation": {"rte": 69.4, "mrpc": 86.7, "stsb": 88.3, "sst2": 91.1, "cola": 56.1},
    "attention": {"rte": 67.9, "mrpc": 86.3, "stsb": 86.7, "sst2": 90.5, "cola": 55.7},
    "unified": {"rte": 71.5, "mrpc": 88.6, "stsb": 88.8, "sst2": 92.6, "cola": 57.9},
}
FLEXIBLE: dict[str, Paper] = {
    "original": ORIGINAL,
    "activation": {"rte": 70.4, "mrpc": 86.7, "stsb": 88.7, "sst2": 91.5, "cola": 56.8},
    "attention": {"rte": 68.2, "mrpc": 87.1, "stsb": 86.9, "sst2": 91.1, "cola": 56.6},
    "unified": {"rte": 72.1, "mrpc": 89.5, "stsb": 89.2, "sst2": 93.8, "cola": 59.4},
}
ITERATIONS: dict[int, Paper] = {
    0: {"rte": 64.6, "mrpc": 81.58, "stsb": 86.7, "sst2": 90.8, "cola": 52.6},
    3: {"rte": 70.8, "mrpc": 86.9, "stsb": 88.6, "sst2": 92.2, "cola": 56.4},
    4: {"rte": 71.5, "mrpc": 88.6, "stsb": 87.6, "sst2": 92.5, "cola": 57.8},
}
UNFLOODED: Paper = {"stsb": 72.2, "cola": 49.7, "rte": 62.5}
FLOODED: Paper = {"stsb": 87.9, "cola": 57.9, "rte": 71.1}
COMPARED: dict[str, Paper] = {
    "PUMA": {"stsb": 88.4, "cola": 59.2, "rte": 70.0},
    "Bumblebee": {"stsb": 87.5, "cola": 60.8, "rte": 70.04},
    "Comet": {"stsb": 88.8, "cola": 59.4, "rte": 71.3},
}
MPCFORMER: dict[str, Paper] = {"MPCFormer": {"stsb": 80.1, "cola": 52.6}, "Comet": {"stsb": 87.6, "cola": 57.9}}
Tasks = dict[str, dict[str, Any]]


def tasks(full: bool, data: Path, roots: Sequence[str]) -> Tasks:
    """Measures by task, of those tasks there are models of."""
    if full:
        from tacit_lab.comet.accuracy import measure

        names = [name for name in TASKS if (MODELS / f"{name}-unified").is_dir()]
        if not names:
            raise MisuseError(f"{MODELS} holds no finetuned model; make train-glue TASK=mrpc writes one")
        return {name: measure(name, MODELS, data, ROOT_INPUTS, roots) for name in names}
    try:
        found: Tasks = json.loads(RESULTS.read_text(encoding="utf-8"))["tasks"]
    except (OSError, ValueError, KeyError) as error:
        raise MisuseError(f"{RESULTS} is not there; run this in the repository, or with --full") from error
    return found


def title(name: str, found: dict[str, Any]) -> str:
    """Task and measure."""
    return f"{TASKS[name].title} ({found['measure']})"


def kind_rows(given: Tasks, papers: Mapping[str, Paper]) -> Rows:
    """Each task's models, as far as they are there, and how far the unified one is from the original."""
    rows: Rows = []
    for name, found in given.items():
        what, ours = title(name, found), {kind: 100 * found[kind] for kind in papers if kind in found}
        rows += [row(f"{what}, {WORDS[kind]}", papers[kind][name], value, "%") for kind, value in ours.items()]
        if "original" in ours:
            apart = papers["unified"][name] - papers["original"][name]
            rows.append(row(f"{what}, difference", apart, ours["unified"] - ours["original"], "%"))
    return rows


def comet_table1(full: bool, data: Path) -> dict[str, Any]:
    """Table 1. Our slopes and smoothnesses are trained, as those of table 5 are."""
    return {"rows": kind_rows(tasks(full, data, ()), FIXED), "measured": []}


def comet_table5(full: bool, data: Path) -> dict[str, Any]:
    """Table 5: slope and smoothness are trained; the numbers of ours are in `measured`."""
    given = tasks(full, data, ())
    learned = [{"name": title(name, found), "functions": found.get("functions")} for name, found in given.items()]
    return {"rows": kind_rows(given, FLEXIBLE), "measured": learned}


def comet_table2(full: bool, data: Path) -> dict[str, Any]:
    """Table 2: iterations from our affine start; the published start of flooded shares is in `measured`."""
    given = tasks(full, data, [f"{start}-{count}" for start in ("affine", "flooding") for count in ITERATIONS])
    rows: Rows = []
    measured: Rows = []
    for name, found in given.items():
        for count, paper in ITERATIONS.items():
            ours = 100 * found["roots"][f"affine-{count}"]
            rows.append(row(f"{title(name, found)}, {count} iterations", paper[name], ours, "%"))
        flooded = {root: value for root, value in found["roots"].items() if root.startswith(("flooding", "exact"))}
        measured.append({"name": title(name, found), "inputs": found["roots_inputs"], **flooded})
    return {"rows": rows, "measured": measured}


def comet_table6(full: bool, data: Path) -> dict[str, Any]:
    """Table 6: the published start without and with flooding, and ours on uniform shares, 4 iterations each."""
    given = tasks(full, data, ("unflooded-4", "flooding-4", "affine-4"))
    rows: Rows = []
    for name, found in given.items():
        if name not in FLOODED:
            continue
        what, roots = title(name, found), found["roots"]
        rows.append(row(f"{what}, without flooding", UNFLOODED[name], 100 * roots["unflooded-4"], "%"))
        rows.append(row(f"{what}, flooding", FLOODED[name], 100 * roots["flooding-4"], "%"))
        rows.append(row(f"{what}, affine start in place of flooding", FLOODED[name], 100 * roots["affine-4"], "%"))
    return {"rows": rows, "measured": []}


def comet_table7(full: bool, data: Path) -> dict[str, Any]:
    """Table 7: accuracy beside that of PUMA and Bumblebee, as the paper has it."""
    return {"rows": beside(tasks(full, data, ()), COMPARED), "measured": []}


def comet_table9(full: bool, data: Path) -> dict[str, Any]:
    """Table 9: accuracy beside MPCFormer's, as the paper has it."""
    return {"rows": beside(tasks(full, data, ()), MPCFORMER), "measured": []}


def beside(given: Tasks, papers: dict[str, Paper]) -> Rows:
    """Our unified model beside each number that the paper has of the task."""
    return [
        row(f"{title(name, found)}, beside {system}", paper[name], 100 * found["unified"], "%")
        for name, found in given.items()
        for system, paper in papers.items()
        if name in paper
    ]
