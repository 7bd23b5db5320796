"""The README's table of networks, from bench/results/networks.json.

`python scripts/readme_tables.py` rewrites what stands between the two markers in README.md; with
`--check` it only compares, and exit code 1 says that they differ. MB are 10^6 bytes both ways.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RESULT = ROOT / "bench/results/networks.json"
BEGIN = "<!-- networks: written by scripts/readme_tables.py from bench/results/networks.json -->"
END = "<!-- /networks -->"
PEERS = {
    "resnet20": "SPU 37.5 MB, 9.6 s",
    "resnet32": "SPU 82.3 MB, 19.9 s",
    "squeezenet": "OpenCheetah 447 MB, 26.7 s",
    "resnet18": "SPU 589 MB, 137 s",
    "resnet50": "OpenCheetah 1904 MB, 95 s",
}
"""Payload both ways and seconds on loopback, setup included for SPU; on a faster machine (Zen 5)."""
COLUMNS = (
    "network",
    "float top-1",
    "integers top-1",
    "agreement",
    "MB offline",
    "MB online",
    "rounds online",
    "s online",
    "s in all",
    "peak memory",
    "others",
)


def percent(share: float | None) -> str:
    """A share, two digits after the point."""
    return "-" if share is None else f"{100 * share:.2f} %"


def digits(value: float) -> str:
    """Three digits or more."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def megabytes(phase: dict[str, Any]) -> str:
    """Bytes of both directions."""
    return digits(sum(phase["bytes"].values()) / 1e6)


def row(name: str, entry: dict[str, Any]) -> list[str]:
    """A network's cells."""
    accuracy, private = entry["accuracy"] or {}, entry["private"]
    offline, online = private["phases"]["offline"], private["phases"]["online"]
    return [
        entry["title"],
        *(percent(accuracy.get(field)) for field in ("float", "integers", "agreement")),
        megabytes(offline),
        megabytes(online),
        f"{online['rounds']:.0f}",
        digits(online["seconds"]),
        digits(offline["seconds"] + online["seconds"]),
        f"{max(private['peak_memory_bytes'].values()) / 1e6:.0f} MB",
        PEERS.get(name, ""),
    ]


def conditions(entries: dict[str, Any]) -> list[str]:
    """Where and when, a line for all rows that have them in common."""
    rows: dict[str, list[str]] = {}
    for entry in entries.values():
        machine = entry["machine"]
        vector = " ".join(machine["flags"]) or "no vector instructions of interest"
        place = f"{entry['date']}, {machine['processor']}, {machine['cores']} cores ({vector})"
        rows.setdefault(place, []).append(entry["title"])
    if len(rows) == 1:
        return [f"Measured {next(iter(rows))}."]
    return [f"Measured {place}: {'; '.join(titles)}." for place, titles in rows.items()]


def private_runs(entries: dict[str, Any]) -> str:
    """How the private results compare with the integers in the clear."""
    runs = [entry["private"] for entry in entries.values()]
    equal, total = (sum(run[field] for run in runs) for field in ("labels_equal", "images"))
    furthest = max(run["max_error"] for run in runs)
    last = f"logits by at most {furthest} in the last place."
    return f"Private labels equal those of the integers for {equal} of {total} images, {last}"


def block(entries: dict[str, Any]) -> str:
    """What stands between the markers."""
    table = [list(COLUMNS), ["---"] * len(COLUMNS), *(row(name, entry) for name, entry in entries.items())]
    lines = ["| " + " | ".join(cells) + " |" for cells in table]
    return "\n".join([*lines, "", *conditions(entries), private_runs(entries)])


def rewritten(text: str, entries: dict[str, Any]) -> str:
    """`text` with a new block; a file without the markers is refused."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the file needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{block(entries)}\n{END}{after}"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when they differ")
    parser.add_argument("--readme", type=Path, default=README, help="default: %(default)s")
    parser.add_argument("--results", type=Path, default=RESULT, help="default: %(default)s")
    arguments = parser.parse_args()
    text = arguments.readme.read_text(encoding="utf-8")
    wanted = rewritten(text, json.loads(arguments.results.read_text()))
    if not arguments.check:
        arguments.readme.write_text(wanted, encoding="utf-8")
    elif text != wanted:
        sys.stderr.write(f"{arguments.readme} differs from {arguments.results}: run scripts/readme_tables.py\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
