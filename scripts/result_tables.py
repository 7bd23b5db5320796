"""The tables of README.md and docs/results.md, from the files of bench/results that their markers name.

`python scripts/result_tables.py` rewrites what stands between the markers of both pages; with `--check` it only
compares, and exit code 1 says that they differ, or that a file of bench/results names no commit or no version of
the protocol. Below each table stand the one machine, the one commit and the version of the protocol that its rows were
measured with, as the files record them, and whether that version is older than the code's: rows of another machine or
commit get a table of their own. MB are 10^6 bytes both ways.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import result_age

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "bench/results"
WRITER = "scripts/result_tables.py from bench/results"
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

TOKENS = (
    "model, context 128",
    "link",
    "MB of a token, with all that is prepared",
    "rounds",
    "MB of its run",
    "rounds of its run",
    "s",
    "MB of a prompt's token",
    "s of it",
    "16 tokens of a prompt at once: MB, rounds, s",
    "client / server, MB",
)
WRITTEN = (
    "SmolLM2-135M",
    "positions",
    "integers as float",
    "with default rounding",
    "perplexity, integers",
    "with default rounding",
    "float",
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


def row(_name: str, entry: dict[str, Any]) -> list[str]:
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


def conditions(entry: dict[str, Any]) -> str:
    """The machine, the commit, the protocol and, where they are recorded, the vector instructions and the day."""
    machine, commit = entry["machine"], entry["commit"]
    state = " with local changes" if commit.endswith("-dirty") else ""
    vector = f" ({' '.join(machine['flags'])})" if machine.get("flags") else ""
    day = f" on {entry['date']}" if "date" in entry else ""
    place = f"{machine['processor']}, {machine['cores']} cores{vector}"
    return f"Measured{day}, {place}, commit {commit[:7]}{state}, {result_age.age(entry, result_age.spoken())}."


def tables(entries: dict[str, Any], columns: Sequence[str], cells: Callable[[str, Any], list[str]]) -> list[str]:
    """A table for each machine and commit, in the order of the entries."""
    groups: dict[str, list[list[str]]] = {}
    for name, entry in entries.items():
        groups.setdefault(conditions(entry), []).append(cells(name, entry))
    parts = [[*table(columns, rows), where, ""] for where, rows in groups.items()]
    return [line for part in parts for line in part][:-1]


def private_runs(entries: dict[str, Any]) -> str:
    """How the private results compare with the integers in the clear."""
    runs = [entry["private"] for entry in entries.values()]
    equal, total = (sum(run[field] for run in runs) for field in ("labels_equal", "images"))
    furthest = max(run["max_error"] for run in runs)
    last = f"logits by at most {furthest} in the last place."
    return f"Private labels equal those of the integers for {equal} of {total} images, {last}"


def block(entries: dict[str, Any]) -> list[str]:
    """The table of networks."""
    return [*tables(entries, COLUMNS, row), private_runs(entries)]


def encoder_block(entries: dict[str, Any]) -> list[str]:
    """The table of encoders."""
    return tables(entries, ENCODERS, encoder_row)


def writers_block(entries: dict[str, Any]) -> list[str]:
    """The tables of language models: what tokens cost, and how well they are chosen."""
    priced = {name: entry for name, entry in entries.items() if "cost" in entry}
    compared = {name: entry for name, entry in entries.items() if "quality" in entry}
    return [*tables(priced, TOKENS, token_row), "", *tables(compared, WRITTEN, written_row)]


def token_row(_name: str, entry: dict[str, Any]) -> list[str]:
    """Cells of a language model on a link."""
    cost = entry["cost"]
    written, read, mean = cost["per_token"], cost["per_prompt_token"], cost["planned"]["mean_per_token"]
    passed = cost.get("per_pass")
    cells = [digits(mean["bytes"] / 1e6), f"{mean['rounds']:.0f}"]
    cells += [digits(written["bytes"] / 1e6), f"{written['rounds']:.0f}", digits(written["seconds"])]
    cells += [digits(read["bytes"] / 1e6), digits(read["seconds"])]
    at_once = [digits(passed["bytes"] / 1e6), f"{passed['rounds']:.0f}", digits(passed["seconds"])] if passed else ["-"]
    cells.append(", ".join(at_once))
    held = [digits(cost["peak_memory_bytes"][party] / 1e6) for party in ("client", "server")]
    return [entry["title"], cost["network"] or "loopback", *cells, " / ".join(held)]


def written_row(_name: str, entry: dict[str, Any]) -> list[str]:
    """Cells of texts that a language model foretells."""
    found = entry["quality"]
    agreed = [percent(found[field]) for field in ("agreement", "stochastic_agreement")]
    kinds = ("perplexity", "stochastic_perplexity", "float_perplexity")
    return [entry["title"], str(found["positions"]), *agreed, *(f"{found[kind]:.3f}" for kind in kinds)]


def suites_block(entries: dict[str, Any]) -> list[str]:
    """The table of suites: a row for each network and link."""
    columns = ("network", "link", "MB of the plan", "plan", "best fixed setting", *SUITES)
    rows = {f"{name} {link}": links[link] | {"at": (name, link)} for name, links in entries.items() for link in LINKS}
    return tables(rows, columns, suites_row)


def suites_row(_name: str, entry: dict[str, Any]) -> list[str]:
    """Cells of a network on a link: traffic and seconds of a session with one input."""
    settings, (network, link) = entry["settings"], entry["at"]
    fixed = [key for key in settings if key != "planned" and not key.startswith("suite ")]
    times = [settings["planned"], min((settings[key] for key in fixed), key=lambda found: found["seconds"])]
    suites = [settings.get(f"suite {name}") for name in SUITES]
    seconds = [digits(found["seconds"]) if found else "-" for found in [*times, *suites]]
    return [PLANNED[network], link, digits(settings["planned"]["bytes"] / 1e6), *seconds]


def phases_block(report: dict[str, Any]) -> list[str]:
    """Traffic, rounds and seconds of each phase of one run, and of all of it."""
    phases = [*report["phases"].items(), ("all", report)]
    cells = [[name, megabytes(of), str(of["rounds"]), digits(1000 * of["seconds"])] for name, of in phases]
    return [*table(("phase", "MB", "rounds", "ms"), cells), conditions(report)]


def peers_block(entries: dict[str, Any]) -> list[str]:
    """Tacit and SPU, measured one after the other in the same run."""
    columns = [f"{name}, {unit}" for name in ("Tacit", "SPU") for unit in ("MB", "s cold", "s warm")]
    return tables(entries, ("computation", *columns), peers_row)


def peers_page(entries: dict[str, Any]) -> list[str]:
    """The same, and what a cold session takes of each beside time and traffic."""
    taken = {f"{name} {side}": {**entry, "side": side} for name, entry in entries.items() for side in ("tacit", "spu")}
    known = {
        name: entry for name, entry in taken.items() if "dollars_per_thousand" in entry[entry["side"]].get("cold", {})
    }
    columns = ("cold session", "", "client CPU s", "server CPU s", "client MB", "server MB", "dollars per 1,000")
    said = (
        "Processor time, memory, and dollars of 1,000 sessions at the server (`tacit bench throughput` has the prices):"
    )
    return [*peers_block(entries), "", said, "", *tables(known, columns, taken_row)]


def taken_row(_name: str, entry: dict[str, Any]) -> list[str]:
    """Cells of one system at one computation."""
    cost = entry[entry["side"]]["cold"]
    held = [peak / 1e6 for peak in cost["peak_memory_bytes"]]
    system = {"tacit": "Tacit", "spu": "SPU"}[entry["side"]]
    return [entry["title"], system, *map(digits, (*cost["cpu_seconds"], *held, cost["dollars_per_thousand"]))]


def peers_row(_name: str, entry: dict[str, Any]) -> list[str]:
    """Cold bytes, which have the setup, and seconds cold and warm."""
    cells: list[str] = []
    for of in (entry["tacit"], entry["spu"]):
        if "error" in of:
            cells += ["failed", "-", "-"]
        else:
            cells += map(digits, (of["cold"]["bytes"] / 1e6, of["cold"]["seconds"], of["warm"]["seconds"]))
    return [entry["title"], *cells]


def newest_peers(entries: dict[str, Any]) -> list[str]:
    """Networks beside SPU."""
    shown = ("mnist", "resnet20", "resnet18", "minilm", "bert-layer", "gpt2-block", "smollm2")
    return peers_block({name: entries[name] for name in shown if name in entries})


def operations_block(entries: dict[str, Any]) -> list[str]:
    """Medians of single operations."""
    return tables(entries, ("bench", "MB", "rounds", "s", "s online", "peak memory"), operation_row)


def operation_row(name: str, entry: dict[str, Any]) -> list[str]:
    """Cells of an operation."""
    memory = f"{max(entry['peak_memory_bytes'].values()) / 1e6:.0f} MB"
    online = digits(entry["phases"]["online"]["seconds"])
    return [name, megabytes(entry), str(entry["rounds"]), digits(entry["seconds"]), online, memory]


def table(columns: Sequence[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table, and an empty one."""
    return [*("| " + " | ".join(cells) + " |" for cells in [list(columns), ["---"] * len(columns), *rows]), ""]


BLOCKS = {
    "README.md": {"peers/peers-spu": newest_peers},
    "docs/results.md": {
        "models/model-mnist": phases_block,
        "peers/peers-spu": peers_page,
        "models/networks": block,
        "models/encoders": encoder_block,
        "models/language-models": writers_block,
        "planner/planner": suites_block,
        "operations": operations_block,
    },
}
"""By page and file, or folder, of bench/results: who writes the block."""
MEASURED_APART = ("kernels", "linear-sweep")
"""Files of operations that have another form than a bench's."""


def content(path: Path) -> dict[str, Any]:
    """A file of results, or a folder of them by name."""
    if path.is_dir():
        return {file.stem: read(file) for file in sorted(path.glob("*.json")) if file.stem not in MEASURED_APART}
    return read(path.with_suffix(".json"))


def read(path: Path) -> dict[str, Any]:
    """A file of results."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def rewritten(text: str, name: str, lines: list[str], writer: str = WRITER) -> str:
    """`text` with a new block; a page without the markers is refused."""
    begin, end = f"<!-- {name}: written by {writer} -->", f"<!-- /{name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"the file needs the lines {begin} and {end}")
    return "\n".join([f"{before}{begin}", *lines, f"{end}{after}"])


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when they differ")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the pages (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of results (default: %(default)s)")
    arguments = parser.parse_args()
    differing = []
    wrong = result_age.problems(arguments.results)
    if wrong:
        raise SystemExit("\n".join(wrong))
    for page, blocks in BLOCKS.items():
        path = arguments.root / page
        text = wanted = path.read_text(encoding="utf-8")
        for name, write in blocks.items():
            wanted = rewritten(wanted, name, write(content(arguments.results / name)))
        if text != wanted:
            differing.append(page)
        if not arguments.check:
            path.write_text(wanted, encoding="utf-8")
    if arguments.check and differing:
        sys.stderr.write(f"{', '.join(differing)}: not as in {arguments.results}; run scripts/result_tables.py\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
