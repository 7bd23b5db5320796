"""The table of docs/guides/fleet-sizing.md, by `tacit fleet simulate` on the costs in bench/results/fleet.

`.venv/bin/python scripts/fleet_table.py` writes the block between the markers of the page anew. It simulates a tenth of
a day with a tenth of its sessions, so that rates are those of the day, and takes dollars ten times; --whole takes all.
"""

import argparse
import re
from pathlib import Path
from typing import Any, NamedTuple

from tacit.fleet.simulation.arrivals import DAY, Open, profile
from tacit.fleet.simulation.costs import link_of, read
from tacit.fleet.simulation.model import Fleet
from tacit.fleet.simulation.prices import Prices
from tacit.fleet.simulation.sizing import Target
from tacit.fleet.simulation.study import Study

ROOT = Path(__file__).resolve().parent.parent
PAGE, COSTS = ROOT / "docs/guides/fleet-sizing.md", ROOT / "bench/results/fleet"
SESSIONS, CORES = 1_000_000, 4


class Row(NamedTuple):
    """Costs by name, what they are of, a target in seconds, and `--session-limit`."""

    name: str
    title: str
    link: str
    target: float
    limit: int | None = None

    def simulated(self, part: float) -> str:
        """The row of the table, of a `part` of a day."""
        costs = read(COSTS / f"{self.name}.json")
        fleet = Fleet(cores=CORES, sessions=self.limit, link=link_of(self.link))
        study = Study(costs, fleet, Open(SESSIONS * part, DAY * part, profile("day")), Prices())
        run: dict[str, Any] = study.report((), Target(self.target))["runs"][0]
        dollars, session = run["dollars"], run["session"]
        cells = (
            self.title,
            f"`{self.link}`",
            f"{costs.bytes / 1e6:.3g}",
            f"{self.target:g} s",
            f"{run['servers']:,}",
            f"{session['p50']:.3g} s",
            f"{session['p99']:.3g} s",
            f"{100 * run['utilisation']['cores']:.0f} %",
            f"{dollars['egress_gb'] / part / 1e3:.3g}",
            f"${dollars['cores'] / part:,.0f}",
            f"${dollars['egress'] / part:,.0f}",
        )
        return f"| {' | '.join(cells)} |"


ROWS = (
    Row("mnist-lan", "MNIST CNN", "lan", 0.1),
    Row("mnist-wan", "MNIST CNN", "wan", 2.0),
    Row("minilm-lan", "MiniLM, 32 tokens", "lan", 6.0),
    Row("minilm-wan", "MiniLM, 32 tokens", "wan", 30.0),
    Row("resnet50-lan", "ResNet-50", "lan", 20.0, 8),
    Row("resnet50-wan", "ResNet-50", "wan", 45.0, 8),
)
HEADINGS = ("network", "link", "MB", "target p99", "servers", "p50", "p99", "cores busy", "TB out", "cores", "egress")
MARKED = re.compile(r"(<!-- fleet: .* -->\n).*?(<!-- /fleet -->)", re.DOTALL)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--whole", action="store_true", help="the whole day")
    part = 1.0 if parser.parse_args().whole else 0.1
    lines = [f"| {' | '.join(HEADINGS)} |", f"| {' | '.join(['---'] * len(HEADINGS))} |"]
    for each in ROWS:
        lines.append(each.simulated(part))
        print(lines[-1], flush=True)
    text = PAGE.read_text(encoding="utf-8")
    table = "\n".join(lines) + "\n"
    PAGE.write_text(MARKED.sub(lambda found: found[1] + table + found[2], text), encoding="utf-8")


if __name__ == "__main__":
    main()
