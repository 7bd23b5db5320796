"""Results of the criterion benches as one JSON file.

`.venv/bin/python scripts/kernel_results.py [--filter TEXT] [--criterion FOLDER] [--output FILE]` reads what
`cargo bench` left under target/criterion and writes bench/results/operations/kernels.json: for every bench whose name
contains TEXT its median in nanoseconds, with the machine and the commit. Others that the file has stay where a TEXT is
given; without one the file has what was measured and nothing else.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit import _core
from tacit.measure.bench import commit, machine

ROOT = Path(__file__).parent.parent
RESULT = ROOT / "bench/results/operations/kernels.json"


def measured(folder: Path, text: str) -> dict[str, dict[str, Any]]:
    """Medians of the benches whose full name contains `text`."""
    found = {}
    for path in sorted(folder.glob("**/new/estimates.json")):
        name = json.loads((path.parent / "benchmark.json").read_text())["full_id"]
        if text in name:
            estimates = json.loads(path.read_text())
            found[name] = {"median_ns": round(estimates["median"]["point_estimate"], 1)}
    return found


def main() -> None:
    """Read, add machine and commit, write."""
    parser = argparse.ArgumentParser(description="Collect results of criterion benches.")
    parser.add_argument("--filter", default="", metavar="TEXT", help="only benches whose name contains TEXT")
    parser.add_argument("--criterion", type=Path, default=ROOT / "target/criterion", help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    options = parser.parse_args()
    found = measured(options.criterion, options.filter)
    if not found:
        print(f"no results of `{options.filter}` in {options.criterion}")
        return
    about = {
        "machine": machine(),
        "commit": commit(),
        "protocol": _core.PROTOCOL,
        "date": datetime.now(UTC).date().isoformat(),
    }
    known = json.loads(options.output.read_text()) if options.filter and options.output.exists() else {}
    known.update({name: {**entry, **about} for name, entry in found.items()})
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    print(f"wrote {len(found)} results to {options.output}")


if __name__ == "__main__":
    main()
