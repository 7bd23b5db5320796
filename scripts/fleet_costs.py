"""The costs of a session for `tacit fleet simulate`, out of what `bench model --json` or `plan --json` printed.

`.venv/bin/python scripts/fleet_costs.py REPORT.json bench/results/fleet/NAME.json` keeps what the simulator reads. With
--planned the seconds of phases are those that the plan predicts for the link, and processor time, bytes and rounds are
measured: for machines that had other things to do while they measured.
"""

import argparse
import json
from pathlib import Path
from typing import Any

KEPT = (
    "machine",
    "version",
    "commit",
    "protocol",
    "model",
    "inputs",
    "threads",
    "network",
    "bytes",
    "rounds",
    "cpu_seconds",
)


def costs(report: dict[str, Any], planned: bool) -> dict[str, Any]:
    """What the simulator reads of a report."""
    timed = report["predicted"] if planned else report
    phases = {
        name: {**{key: phase[key] for key in ("bytes", "rounds")}, "seconds": timed["phases"][name]["seconds"]}
        for name, phase in report["phases"].items()
    }
    known = {name: report[name] for name in KEPT if name in report}
    known["model"] = Path(known["model"]).name
    return {**known, "planned": planned or "predicted" not in report, "seconds": timed["seconds"], "phases": phases}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--planned", action="store_true", help="seconds as the plan predicts them")
    parser.add_argument("--network", help="the link that a plan is for")
    arguments = parser.parse_args()
    report = json.loads(arguments.report.read_text(encoding="utf-8"))
    if arguments.network is not None:
        report["network"] = arguments.network
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(costs(report, arguments.planned)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
