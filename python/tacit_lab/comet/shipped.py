"""Finetuned encoders that come with the package, as deltas to all-MiniLM-L6-v2 (`tacit_lab.comet.delta`).

The unified model of a task is the asset `comet_TASK_unified.npz`, where there is one.
"""

from importlib.util import find_spec
from pathlib import Path

from tacit.demo.digits import asset
from tacit.demo.texts import PACKAGE, minilm

from tacit_lab.comet.accuracy import KINDS
from tacit_lab.comet.delta import restore


def unified(name: str) -> Path:
    """Where the delta of a task's unified model is, if there is one."""
    return asset(f"comet_{name}_unified.npz")


def possible(name: str, data: Path) -> bool:
    """Whether a task's unified model is shipped, its base is installed and `data` has the task's files."""
    files = [unified(name), *(data / "glue" / f"{name}_{part}.tsv" for part in ("train", "dev"))]
    return find_spec(PACKAGE) is not None and all(file.is_file() for file in files)


def restored(name: str, models: Path) -> Path:
    """The folder of a task's unified model, which is restored there, in the folder `models`."""
    folder = models / f"{name}{KINDS['unified']}"
    restore(minilm(), unified(name), folder)
    return folder
