"""Tacit between two processes over TLS: a fresh session for each measurement, one thread a party."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ratios import Cost
from tacit.cli.writing import LEARNT, PATIENCE_SECONDS, planned_for_link
from tacit.model import Model
from tacit.session.pair import Pair
from works import Operator, Prepared

WAYS = ("client_to_server", "server_to_client")
PACKAGE = Path(__file__).parents[2] / "python"


def tacit(*arguments: object) -> dict[str, Any]:
    """What `tacit ... --json` prints."""
    command = [sys.executable, "-m", "tacit", *map(str, arguments), "--json"]
    path = os.pathsep.join(filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": path})
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command[2:])}` failed: {done.stdout.strip()} {done.stderr.strip()}")
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def operator(work: Operator) -> dict[str, Cost]:
    """One session of `tacit bench`."""
    return costs(tacit("bench", *work.arguments, "--threads", 1, "--repeat", 1))


def network(files: Prepared) -> tuple[dict[str, Cost], NDArray[np.float64]]:
    """One session with one input, and the result."""
    report = tacit("run", files.compiled, files.input, "--threads", 1, "--timeout", 120)
    return costs(report), np.array(report["logits"], float) * report["output_scale"]


def tokens(compiled: Path, x: NDArray[np.float32]) -> tuple[dict[str, Cost], NDArray[np.int64]]:
    """Costs of a token, and what was written behind each of the inputs `x` (N, rows, 1), one step after another.

    Cold is a session of the first of them; warm is the mean of all in a session, without its setup: what is prepared
    for several tokens together is in it.
    """
    model = Model(compiled)
    pair = planned_for_link(Pair(model, reveal=LEARNT, threads=1, timeout_seconds=PATIENCE_SECONDS))
    cold, many = (pair.run(inputs, None) for inputs in (x[:1], x))
    warm = costs(many.report)["warm"]
    found = {
        "cold": costs(cold.report)["cold"],
        "warm": Cost(
            warm.seconds / len(x),
            round(warm.bytes / len(x)),
            [seconds / len(x) for seconds in warm.cpu_seconds],
            warm.peak_memory_bytes,
            sent=[round(sent / len(x)) for sent in warm.sent or ()],
        ),
    }
    return found, many.prediction.classes


def accuracy(files: Prepared) -> dict[str, float]:
    """Accuracy on the test images of the integers that the protocol runs, and in floating point."""
    if files.test is None:
        return {}
    integers = tacit("evaluate", files.compiled, files.test)["top1"]
    floats = tacit("evaluate", files.compiled, files.test, "--mode", "plain", "--model", files.model)["top1"]
    return {"integers_top1": integers, "float_top1": floats}


def costs(report: dict[str, Any]) -> dict[str, Cost]:
    """Cold: the whole session. Warm: the same without its setup, so correlations and products count, keys do not."""
    both = ("cpu_seconds", "peak_memory_bytes")
    processor, memory = ([report[name]["client"], report[name]["server"]] for name in both)
    setup = report["phases"]["setup"]
    sent = [report["bytes"][way] for way in WAYS]
    warm = [report["bytes"][way] - setup["bytes"][way] for way in WAYS]
    return {
        "cold": Cost(report["seconds"], sum(sent), processor, memory, sent=sent),
        "warm": Cost(report["seconds"] - setup["seconds"], sum(warm), processor, memory, sent=warm),
    }
