"""Measure the finetuned encoders in build/glue and write bench/results/papers/comet-glue.json.

    .venv/bin/python scripts/glue_results.py cola mrpc stsb

Accuracy is that of the float models on all of the dev file; approximate inverse square roots are tried on its first
inputs. Models with one unified function alone are measured where they are. Tasks that are not named keep what the
file has of them, and the commit that they were measured with; the commit of the file is that of the last run of
this script.
"""

import argparse
import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import result_age
from tacit_lab.comet.accuracy import KINDS, kinds, measure
from tacit_lab.reproduce.comet import MODELS, RESULTS, ROOT_INPUTS


def trained(folder: Path) -> dict[str, Any]:
    """What the trainer noted of the weights that it kept."""
    content: dict[str, Any] = json.loads((folder / "result.json").read_text())
    options = {name: value for name, value in content["options"].items() if name not in ("model", "out", "data")}
    return {"epoch": content["epoch"], "options": options, "functions": content["functions"], "dev": content["dev"]}


def machine() -> str:
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str:
    """What is checked out."""
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int, default=ROOT_INPUTS, help="Inputs for approximate roots.")
    arguments = parser.parse_args()
    content = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {"tasks": {}}
    known: dict[str, Any] = with_commits(content)
    for name in arguments.tasks:
        known[name] = {**conditions(), **measured(name, arguments.models, arguments.data, arguments.limit)}
        commands = [training(task, found) for task, found in sorted(known.items())]
        commands.append(f"python scripts/glue_results.py {' '.join(sorted(known))}")
        RESULTS.write_text(json.dumps({**conditions(), "commands": commands, "tasks": known}, indent=1) + "\n")
        print(f"{name}: {printed(known[name])}; wrote {RESULTS}")


def conditions() -> dict[str, str]:
    """What measures are made with."""
    return {"machine": machine(), "commit": commit(), "protocol": result_age.FLOATS}


def with_commits(content: dict[str, Any]) -> dict[str, Any]:
    """The tasks of a file; each that names no commit of its own was measured with the file's."""
    of_file = {key: content[key] for key in ("machine", "commit", "protocol") if key in content}
    return {name: {**of_file, **found} for name, found in content["tasks"].items()}


def measured(name: str, models: Path, data: Path, limit: int) -> dict[str, Any]:
    """A task's measures, and how its models were trained."""
    found = measure(name, models, data, limit)
    runs = {kind: trained(folder) for kind, folder in kinds(name, models).items()}
    return {**found, "functions": runs["unified"]["functions"], "training": runs}


def training(name: str, found: dict[str, Any]) -> str:
    """The command that trains a task's models."""
    return f"make train-glue TASK={name}{' ALONE=1' if 'activation' in found else ''}"


def printed(found: dict[str, Any]) -> str:
    """The measures of a task's float models."""
    return ", ".join(f"{kind} {found[kind]:.4f}" for kind in KINDS if kind in found)


if __name__ == "__main__":
    main()
