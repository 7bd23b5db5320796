"""The planner's plan against the settings that come close to it, in standing servers, by turns.

`.venv/bin/python scripts/planner_duels.py [--only MODEL ...] [--links lan ...] [--rounds N] [--within F]` reads
bench/results/planner/planner.json (`scripts/planner_matrix.py`), starts a server for the plan and one for each setting
or suite that took at most F times as long, and runs a session with each, N times around, there and back. The sessions
are neighbours in time and no process starts between them: what slows the machine for a while slows all. A setting's
ratio is the median over the rounds of the plan's seconds over its own; `over_best` of the file becomes the largest of
these, and of the ratios of medians for all settings further away. Let nothing else run.
"""

import argparse
import json
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from planner_matrix import FIXED, FOLDER, LINKS, MODELS, RESULT
from real_networks import read, say
from tacit import _core
from tacit.measure.bench import commit, machine, random_examples
from tacit.model import Model
from tacit.session.client import Client
from tacit.session.pair import started

MOST = 5
"""Settings beside the plan."""


def rivals(rows: dict[str, Any], within: float) -> list[str]:
    """The settings that come close to the plan, the best first; at least one."""
    others = sorted((name for name in rows if name != "planned"), key=lambda name: rows[name]["seconds"])
    near = [name for name in others if rows[name]["seconds"] <= within * rows["planned"]["seconds"]]
    return near[:MOST] or others[:1]


def sessions(name: str, link: str, settings: list[str], rounds: int) -> dict[str, list[float]]:
    """Seconds of a session with each setting, round by round."""
    models = {setting: FOLDER / f"{name}{file_suffix(setting)}.tacit" for setting in settings}
    x = random_examples(Model(models["planned"])).x
    seconds: dict[str, list[float]] = {setting: [] for setting in settings}
    with ExitStack() as stack:
        parties = {}
        for setting, model in models.items():
            options = [*FIXED.get(setting, ()), "--threads", "1", "--network", link]
            command = ["tacit", "serve", str(model), "--listen", "127.0.0.1:0", "--json", *options]
            server = stack.enter_context(started(command))
            parties[setting] = (
                server,
                Client(server.address, pin=server.pin, threads=1, network=link, keep_keys=False),
            )
        for turn in range(rounds + 1):
            for setting in settings[:: 1 - 2 * (turn % 2)]:
                server, client = parties[setting]
                took = client.predict(x).report["seconds"]
                server.final_report(client.timeout_seconds)
                # The first session of a server is another thing: its memory is new.
                if turn > 0:
                    seconds[setting].append(took)
    return seconds


def file_suffix(setting: str) -> str:
    """What the file of a suite has after the model's name."""
    return f"-{setting.removeprefix('suite ')}" if setting.startswith("suite ") else ""


def judged(entry: dict[str, Any], seconds: dict[str, list[float]]) -> dict[str, Any]:
    """The entry of a model and a link, with its duels."""
    ours = seconds["planned"]
    duels = {
        setting: {
            "ratio": median(a / b for a, b in zip(ours, theirs, strict=True)),
            "seconds": median(theirs),
        }
        for setting, theirs in seconds.items()
        if setting != "planned"
    }
    rows = entry["settings"]
    plan = rows["planned"]["seconds"]
    far = {name: plan / row["seconds"] for name, row in rows.items() if name not in seconds}
    ratios = far | {name: duel["ratio"] for name, duel in duels.items()}
    best = max(ratios, key=lambda name: ratios[name])
    conditions = {
        "machine": machine(),
        "commit": commit(),
        "protocol": _core.PROTOCOL,
        "date": datetime.now(UTC).date().isoformat(),
    }
    found = {"rounds": len(ours), "planned": median(ours), "settings": duels, **conditions}
    return {**entry, "best_other": best, "over_best": ratios[best], "duels": found}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS), help="some of the models")
    parser.add_argument("--links", nargs="+", choices=LINKS, default=list(LINKS), help="some of the links")
    parser.add_argument("--rounds", type=int, default=21, help="sessions with each setting (default: 21)")
    parser.add_argument("--within", type=float, default=1.1, help="what comes close (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    arguments = parser.parse_args()
    for name in arguments.only:
        for link in arguments.links:
            entry = read(arguments.output)[name][link]
            settings = ["planned", *rivals(entry["settings"], arguments.within)]
            found = judged(entry, sessions(name, link, settings, arguments.rounds))
            entries = read(arguments.output)
            entries[name][link] = found
            arguments.output.write_text(json.dumps(entries, indent=1) + "\n")
            duels = found["duels"]["settings"]
            ratios = ", ".join(f"{setting} {duel['ratio']:.3f}" for setting, duel in duels.items())
            say(f"{name} on {link}: {found['duels']['planned']:.3f} s; over {ratios}")


if __name__ == "__main__":
    main()
