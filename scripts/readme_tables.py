"""The README's tables of networks, encoders and suites, from files of bench/results named as in its markers.

`python scripts/readme_tables.py` rewrites what stands between the markers in README.md; with
`--check` it only compares, and exit code 1 says that they differ. MB are 10^6 bytes both ways.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "bench/results"
PEERS = {
    "resnet20": "SPU 37.5 MB without setup, 9.6 s",
    "resnet32": "SPU 82.3 MB, 19.9 s",
    "squeezenet": "OpenCheetah 447 MB, 26.7 s",
    "resnet18": "SPU 589 MB, 137 s",
    "resnet50": "OpenCheetah 1904 MB, 95 s",
}
"""Payload both ways and seconds on loopback, setup included for SPU; on a Zen 5."""
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

ENCODERS = (
    "encoder",
    "least cosine, private",
    "Spearman, integers",
    "Spearman, float",
    "MB offline",
    "MB online",
    "rounds online",
    "s in all",
    "peak memory",
)

LINKS = ("loopback", "lan", "wan")
SUITES = ("gazelle", "gala", "falcon-ntt", "ufo", "lola")
"""Those that are secure and compute otherwise than `auto` does."""
PLANNED = {
    "mnist": "MiniONN's CNN, MNIST",
    "resnet8": "ResNet-8, CIFAR-10",
    "resnet20": "ResNet-20, CIFAR-10",
    "minionn": "MiniONN, CIFAR-10",
    "cryptonets": "CryptoNets, MNIST",
    "squeezenet": "SqueezeNet, 227x227",
    "minilm": "all-MiniLM-L6-v2, 32 tokens",
}
"""Titles of what `planner_matrix.py` measures."""


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
    accuracy = entry["accuracy"] or {}
    traffic, seconds, memory = cost(entry["private"])
    return [
        entry["title"],
        *(percent(accuracy.get(field)) for field in ("float", "integers", "agreement")),
        *traffic,
        digits(entry["private"]["phases"]["online"]["seconds"]),
        seconds,
        memory,
        PEERS.get(name, ""),
    ]


def encoder_row(_name: str, entry: dict[str, Any]) -> list[str]:
    """An encoder's cells."""
    near, ranked = entry.get("cosine"), entry.get("spearman")
    traffic, seconds, memory = cost(entry["private"])
    return [
        entry["title"],
        f"{near['min']:.4f} of {near['sentences']}" if near else "-",
        *(f"{ranked[kind]:.4f}" if ranked else "-" for kind in ("integers", "float")),
        *traffic,
        seconds,
        memory,
    ]


def cost(private: dict[str, Any]) -> tuple[list[str], str, str]:
    """Traffic and rounds, seconds in all, and memory of a private run."""
    offline, online = private["phases"]["offline"], private["phases"]["online"]
    traffic = [megabytes(offline), megabytes(online), f"{online['rounds']:.0f}"]
    memory = f"{max(private['peak_memory_bytes'].values()) / 1e6:.0f} MB"
    return traffic, digits(offline["seconds"] + online["seconds"]), memory


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


def block(entries: dict[str, Any]) -> list[str]:
    """The table of networks."""
    return [*table(COLUMNS, [row(*entry) for entry in entries.items()]), *conditions(entries), private_runs(entries)]


def encoder_block(entries: dict[str, Any]) -> list[str]:
    """The table of encoders."""
    return [*table(ENCODERS, [encoder_row(*entry) for entry in entries.items()]), *conditions(entries)]


def suites_block(entries: dict[str, Any]) -> list[str]:
    """The table of suites."""
    columns = ("network", "MB of the plan", "plan", "best fixed setting", *SUITES)
    last = {name: links[LINKS[-1]] | {"title": PLANNED[name]} for name, links in entries.items()}
    return [*table(columns, [suites_row(*entry) for entry in entries.items()]), *conditions(last)]


def suites_row(name: str, links: dict[str, Any]) -> list[str]:
    """A network's cells: traffic and seconds of a session with one input, link by link."""
    settings = [links[link]["settings"] for link in LINKS]
    fixed = [[key for key in rows if key != "planned" and not key.startswith("suite ")] for rows in settings]
    best = [min(rows[key]["seconds"] for key in keys) for rows, keys in zip(settings, fixed, strict=True)]
    plans = [rows["planned"] for rows in settings]
    return [
        PLANNED[name],
        slashed(plan["bytes"] / 1e6 for plan in plans),
        slashed(plan["seconds"] for plan in plans),
        slashed(best),
        *(slashed(rows[key]["seconds"] for rows in settings if key in rows) for key in map("suite {}".format, SUITES)),
    ]


def slashed(values: Iterable[float]) -> str:
    """One value a link; nothing for what cannot run."""
    return " / ".join(map(digits, values)) or "-"


def table(columns: Sequence[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table, and an empty one."""
    return [*("| " + " | ".join(cells) + " |" for cells in [list(columns), ["---"] * len(columns), *rows]), ""]


BLOCKS = {"networks": block, "encoders": encoder_block, "planner-zen3": suites_block}


def rewritten(text: str, name: str, entries: dict[str, Any]) -> str:
    """`text` with a new block; a file without the markers is refused."""
    begin = f"<!-- {name}: written by scripts/readme_tables.py from bench/results/{name}.json -->"
    end = f"<!-- /{name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"the file needs the lines {begin} and {end}")
    return "\n".join([f"{before}{begin}", *BLOCKS[name](entries), f"{end}{after}"])


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when they differ")
    parser.add_argument("--readme", type=Path, default=README, help="default: %(default)s")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results (default: %(default)s)")
    arguments = parser.parse_args()
    text = wanted = arguments.readme.read_text(encoding="utf-8")
    for name in BLOCKS:
        wanted = rewritten(wanted, name, json.loads((arguments.results / f"{name}.json").read_text()))
    if not arguments.check:
        arguments.readme.write_text(wanted, encoding="utf-8")
    elif text != wanted:
        sys.stderr.write(f"{arguments.readme} differs from {arguments.results}: run scripts/readme_tables.py\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
