"""What this machine takes for a unit of each kind of work: measured once, kept in a file, used by every plan."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from tacit import _core
from tacit.errors import MisuseError, TacitError
from tacit.measure.machine import machine

FORMAT = 5
"""Changes with the kinds of work, and where a kind takes another time than before."""


def path() -> Path:
    """Where the rates of this machine are kept, a file per processor: in $TACIT_CACHE or the user's cache."""
    folder = os.environ.get("TACIT_CACHE")
    base = Path(folder) if folder else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tacit"
    here = machine()
    name = hashlib.sha256(" ".join([here["processor"], *here["flags"]]).encode()).hexdigest()[:12]
    return base / f"calibration-{FORMAT}-{name}.json"


def calibrate(runs: int, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Measure this machine, every operation `runs` times by two fresh processes, and keep the rates.

    Gives `rates` (seconds of a unit, by kind of work), `samples` (what was measured and what the rates say of it),
    `median_error` (relative), the machine, the day and the file. Raises `TacitError` where no process can start, and
    `MisuseError` where the file cannot be written.
    """
    measured: dict[str, Any] = json.loads(_core.calibrated(json.dumps(measurements(runs, progress))))
    file = path()
    content = {"format": FORMAT, "machine": machine(), "date": datetime.now(UTC).date().isoformat(), **measured}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise MisuseError(f"cannot keep the rates in {file}: {error}; set TACIT_CACHE to another folder") from error
    return {**content, "file": str(file)}


def measurements(runs: int, progress: Callable[[int, int], None] | None = None) -> list[dict[str, float]]:
    """Median seconds of every operation of the workload.

    `tacit.measure.workload` measures them in a process without other threads.

    What disturbs the machine for a while disturbs one run of many operations, not all runs of one.
    """
    count = len(json.loads(_core.wanted()))
    measured: list[dict[str, float]] = []
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tacit.measure.workload", str(runs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        for line in child.stdout:
            measured.append(json.loads(line))
            if progress is not None:
                progress(len(measured), runs * count)
        said = child.stderr.read().strip()
    if child.returncode != 0:
        raise TacitError(said.removeprefix("error: ") or "measuring ended without a word")
    by_operation = [measured[place::count] for place in range(count)]
    return [{phase: median(run[phase] for run in of) for phase in ("setup", "run")} for of in by_operation]


def rates() -> dict[str, float] | None:
    """The rates of this machine, if it was calibrated; else plans reckon with those of the reference machine."""
    try:
        content = json.loads(path().read_text(encoding="utf-8"))
        return {str(kind): float(rate) for kind, rate in content["rates"].items()}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise MisuseError(f"{path()} is not what `tacit calibrate` writes ({error}); run it again") from error
