"""SecretFlow SPU beside Tacit in one run, in turns: the same operators and networks, bytes, seconds and ratios.

`make peers` installs SPU into `.venv-peers` (about 1 GB) and runs everything; `python bench/peers/run.py
[--only NAME ...]` runs it again, or a part (`operators`, `networks`, `tokens`, or names). Each repetition measures
Tacit in a fresh session, then SPU in a fresh session: cold is all of it, from two loaded processes to the result; warm
is an evaluation in a session that exists. Entries of bench/results/peers/peers-spu.json that are not named stay. See
docs/guides/peers.md for what is counted.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import decoder_files
import network_files
import numpy as np
import ours
import ratios
import theirs
from ratios import MODES, Cost
from tacit import _core
from tacit.compiler.float_model import FloatModel
from tacit.demo.texts import smollm2
from tacit.measure.bench import commit
from tacit.measure.machine import machine
from works import NETWORKS, OPERATORS, TOKENS

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
RESULT = ROOT / "bench/results/peers/peers-spu.json"
FOLDER = ROOT / "build/peers"
GROUPS = {"operators": [*OPERATORS], "networks": [*NETWORKS], "tokens": [*TOKENS]}
AGREEMENT = 0.9
"""This part of the tokens has to be what the float model writes."""
SHORT = 200
"""Characters of what SPU says when it fails."""
Both = dict[str, list[dict[str, Cost]]]


def say(message: str) -> None:
    """Progress, on standard error."""
    sys.stderr.write(f"{message}\n")


def operator(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The entry of one operator; SPU's result is compared with float here, ours is checked by `tacit bench`."""
    work, folder = OPERATORS[name], arguments.folder / name
    peer = Peer(theirs.operator_job(work), folder)
    both: Both = {"tacit": [], "spu": []}
    for _ in range(arguments.repeat):
        both["tacit"].append(ours.operator(work))
        both["spu"] += peer.session()
    entry = {"title": work.title, **costs(both, peer.error)}
    if peer.error is not None:
        return entry
    got, exact = theirs.result(folder)
    return {**entry, **ratios.agreement({"spu": got}, exact, work.tolerance)}


def network(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The entry of one network; both results are compared with onnxruntime's."""
    work, folder = NETWORKS[name], arguments.folder / name
    files = network_files.build(work, arguments.data, folder)
    peer = Peer(theirs.network_job(files), folder)
    both: Both = {"tacit": [], "spu": []}
    for _ in range(arguments.repeat):
        cost, result = ours.network(files)
        both["tacit"].append(cost)
        both["spu"] += peer.session()
    results = {"tacit": result} if peer.error is not None else {"tacit": result, "spu": theirs.result(folder)[0]}
    exact = FloatModel(files.model)(np.load(files.input))
    found = ratios.agreement(results, exact, work.tolerance)
    if work.classifies:
        found |= ratios.labelled({**results, "float": exact}, found["same_function"])
    entry = {"title": work.title, "options": [*work.options], **costs(both, peer.error)}
    return {**entry, **found, **ours.accuracy(files)}


def token(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The entry of a language model; what either writes is compared with what the float model does."""
    work, folder = TOKENS[name], arguments.folder / name
    files = decoder_files.build(smollm2(), work.context, work.tokens, folder)
    peer = Peer(theirs.step_job(files.exported), folder)
    both: Both = {"tacit": [], "spu": []}
    for _ in range(arguments.repeat):
        cost, written = ours.tokens(files.compiled, files.steps)
        both["tacit"].append(cost)
        both["spu"] += peer.session()
    agreement = {"tacit": float(np.mean(written == files.labels))}
    if peer.error is None:
        agreement["spu"] = float(theirs.result(folder)[0].item() == files.expected)
    entry = {"title": work.title, "kind": work.kind, "tokens": work.tokens, "agreement": agreement}
    entry |= costs(both, peer.error)
    return {**entry, "same_function": min(agreement.values()) >= AGREEMENT}


class Peer:
    """SPU at one work. Where it fails once it is not asked again, and `error` says how it failed."""

    def __init__(self, job: dict[str, Any], folder: Path) -> None:
        """Prepare it."""
        self.error: str | None = None
        try:
            self.job = theirs.prepare(job, folder)
        except theirs.PeerError as error:
            self.fail(error)

    def session(self) -> list[dict[str, Cost]]:
        """The costs of a fresh session; nothing where SPU failed."""
        try:
            return [] if self.error is not None else [theirs.session(self.job)]
        except theirs.PeerError as error:
            self.fail(error)
            return []

    def fail(self, error: theirs.PeerError) -> None:
        """Keep what failed, and the last line of what SPU said of it."""
        what, _, said = str(error).partition(":")
        self.error = ": ".join([what, *said.strip().splitlines()[-1:]])[:SHORT]
        say(f"SPU failed: {error}")


def costs(both: Both, error: str | None) -> dict[str, Any]:
    """Medians of either side and mode, or how SPU failed."""
    found: dict[str, Any] = {}
    for side, runs in both.items():
        found[side] = {mode: ratios.median([run[mode] for run in runs]) for mode in MODES if runs}
    return found if error is None else {**found, "spu": {"error": error}}


def measure(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The entry of one work."""
    say(f"{name} ...")
    conditions = {
        "machine": machine(),
        "version": _core.__version__,
        "commit": commit(),
        "protocol": _core.PROTOCOL,
        "spu_version": theirs.version(),
        "threads": 1,
        "repeat": arguments.repeat,
    }
    group = next(group for group, names in GROUPS.items() if name in names)
    entry = {"operators": operator, "networks": network, "tokens": token}[group](name, arguments)
    return {**entry, **conditions, "date": datetime.now(UTC).date().isoformat()}


def read(path: Path) -> dict[str, Any]:
    """Entries by name; none where there is no file yet."""
    entries: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return entries


def chosen(only: list[str] | None) -> list[str]:
    """The names of all works, or of those that are asked for, alone or as a group."""
    everything = [name for group in GROUPS.values() for name in group]
    if only is None:
        return everything
    wanted = {name for word in only for name in GROUPS.get(word, [word])}
    return [name for name in everything if name in wanted]


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*GROUPS, *OPERATORS, *NETWORKS, *TOKENS]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, help="some of " + ", ".join(names))
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="sessions of each (default: 3)")
    parser.add_argument("--show", action="store_true", help="measure nothing, only print the table of the file")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    parser.add_argument("--data", type=Path, default=DATA, help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for programs and models (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    return arguments


def main() -> None:
    """Entry point."""
    arguments = parsed()
    names = chosen(arguments.only)
    if not arguments.show and theirs.version() is None:
        say(f"skipped: {theirs.INSTALL}")
        return
    for name in [] if arguments.show else names:
        entries = {**read(arguments.output), name: measure(name, arguments)}
        ordered = {known: entries[known] for known in chosen(None) if known in entries}
        arguments.output.write_text(json.dumps(ordered, indent=1) + "\n")
        say(f"{name}: written to {arguments.output}")
    entries = read(arguments.output)
    wanted = {name: entries[name] for name in names if name in entries}
    print(ratios.shown(ratios.rows(wanted)))
    print()
    print(ratios.shown(ratios.resources(wanted)))


if __name__ == "__main__":
    main()
