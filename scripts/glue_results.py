"""Measure the finetuned encoders in build/glue and write bench/results/papers/comet-glue.json.

    .venv/bin/python scripts/glue_results.py cola mrpc stsb

Accuracy is that of the float models on all of the dev file; approximate inverse square roots are tried on its first
inputs. Tasks that are not named keep what the file has of them.
"""

import argparse
import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import result_age
from tacit_lab.comet.accuracy import measure
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
    known = json.loads(RESULTS.read_text())["tasks"] if RESULTS.is_file() else {}
    for name in arguments.tasks:
        found = measure(name, arguments.models, arguments.data, arguments.limit)
        runs = {kind: trained(arguments.models / folder) for kind, folder in kinds(name).items()}
        known[name] = {**found, "functions": runs["unified"]["functions"], "training": runs}
        commands = [f"make train-glue TASK={task}" for task in sorted(known)]
        commands.append(f"python scripts/glue_results.py {' '.join(sorted(known))}")
        content = {
            "machine": machine(),
            "commit": commit(),
            "protocol": result_age.FLOATS,
            "commands": commands,
            "tasks": known,
        }
        RESULTS.write_text(json.dumps(content, indent=1) + "\n")
        print(f"{name}: original {found['original']:.4f}, unified {found['unified']:.4f}; wrote {RESULTS}")


def kinds(name: str) -> dict[str, str]:
    """Folders of both models of a task."""
    return {"original": name, "unified": f"{name}-unified"}


if __name__ == "__main__":
    main()
