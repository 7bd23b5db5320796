"""All results of bench/results anew, on this machine and from this commit: what `make results` does.

`.venv/bin/python scripts/results.py [--list] [--only STEP ...] [--again]` runs the steps one after another, each a
command that others can run by hand too, and writes the tables of the pages at the end. A step that is done for this
commit is kept, so the same command goes on where it was stopped; a step that fails is named at the end, and the exit
code is 1. The whole takes about three hours of a machine that has nothing else to do.

Left out are results that need more than this machine's tools and data: peers (`make peers`, 1 GB), the zoo (`make
models`, 6 GB), browsers (`make bench-web`), and networks that are trained first (`make train-glue`, `make train-ufo`,
LoLa's for CIFAR-10).
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from paper_catalogue import FULL, tables
from paper_catalogue import PAPERS as PAGES
from tacit.measure.bench import commit

ROOT = Path(__file__).resolve().parent.parent
STATE = ROOT / "build/results/state.json"
PYTHON, TACIT = sys.executable, (sys.executable, "-m", "tacit")
FLEET = {
    "mnist": ("build/mnist.tacit", 30),
    "minilm": ("build/encoders/minilm-32.tacit", 5),
    "resnet50": ("build/networks/resnet50.tacit", 2),
}
"""Networks of the table of fleets: the file that an earlier step leaves, and how many sessions to measure."""
PAPERS = ("heorg-bert", "heorg-face", "ufo-figure15")
"""Tables that are stored whole in bench/results/papers."""
MADE = "build/results/papers"
"""Where the tables of docs/papers are made."""

Command = tuple[str, ...]


class Step(NamedTuple):
    """What it measures, how many minutes it takes on two idle cores, and its commands.

    A command is a program with arguments, or the same behind a path and `>`: then the path gets what it prints.
    """

    what: str
    minutes: int
    commands: tuple[Command, ...]


def script(name: str, *arguments: str) -> Command:
    """A script of this folder."""
    return (PYTHON, f"scripts/{name}.py", *arguments)


def fleet() -> Iterator[Command]:
    """Sessions of each network on each link, and what the simulator reads of them."""
    for name, (model, sessions) in FLEET.items():
        for link in ("lan", "wan"):
            report = f"build/results/{name}-{link}.json"
            bench = (*TACIT, "bench", "model", model, "--network", link, "--threads", "1", "--repeat", str(sessions))
            yield (report, ">", *bench, "--json")
            yield script("fleet_costs", report, f"bench/results/fleet/{name}-{link}.json")


def pages() -> Iterator[Command]:
    """The tables of the pages of papers, each in the form that its page has."""
    names = [name for paper in PAGES for name in tables(paper)]
    for full in (False, True):
        chosen, folder = [name for name in names if (name in FULL) == full], f"{MADE}-{'full' if full else 'quick'}"
        whole = ("--full",) if full else ()
        yield (*TACIT, "reproduce", "--all", "--only", ",".join(chosen), *whole, "-o", folder)
        yield script("paper_pages", "--store", folder)


STEPS = {
    "rates": Step("what work takes on this machine (`tacit calibrate`)", 1, ((*TACIT, "calibrate"),)),
    "operations": Step("single operations and kernels (`make bench`)", 5, (("make", "bench"),)),
    "linear": Step("linear layers one by one", 1, (script("sweep_linear"),)),
    "networks": Step("accuracy and cost of networks for images", 14, (script("real_networks"),)),
    "encoders": Step("accuracy and cost of encoders", 10, (script("real_encoders", "--sentences", "10"),)),
    "writers": Step("tokens of language models, and how well they are chosen", 40, (script("language_models"),)),
    "planner": Step(
        "the plan beside fixed settings and other suites",
        45,
        (script("planner_matrix", "--skip-slow", "--calibrate", "--repeat", "2"),),
    ),
    "papers": Step(
        "tables that take longer than a quick one may",
        15,
        tuple(
            (f"bench/results/papers/{name}.json", ">", *TACIT, "reproduce", name, "--full", "--json") for name in PAPERS
        ),
    ),
    "pages": Step("the tables of the pages of papers", 18, tuple(pages())),
    "fleet": Step("sessions that the simulator of fleets reads", 6, tuple(fleet())),
}
TABLES = (script("result_tables"), script("paper_pages"), script("fleet_table"))


def say(message: str) -> None:
    """Progress, on standard error."""
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


def run(command: Command) -> bool:
    """Run a command in the checkout; a file that it writes is replaced only when all of it is there."""
    target = None
    if len(command) > 1 and command[1] == ">":
        target, command = ROOT / command[0], command[2:]
    say("  " + " ".join(command))
    done = subprocess.run(command, cwd=ROOT, stdout=None if target is None else subprocess.PIPE, check=False)
    if done.returncode == 0 and target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        part.write_bytes(done.stdout)
        part.replace(target)
    return done.returncode == 0


def read(path: Path) -> dict[str, str]:
    """Steps that are done, each with its commit."""
    if not path.exists():
        return {}
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def measure(names: list[str], again: bool, state: Path = STATE) -> list[str]:
    """Run steps and give the names of those that failed. What is done for this commit stays, unless `again`.

    They run in the order of `STEPS`, since later ones read what earlier ones store.
    """
    names = [name for name in STEPS if name in names]
    at, done, failed = commit() or "unknown", read(state), []
    for number, name in enumerate(names, start=1):
        if not again and done.get(name) == at:
            say(f"{number} of {len(names)}: {name} is done for this commit")
            continue
        step, began = STEPS[name], monotonic()
        say(f"{number} of {len(names)}: {step.what}, about {step.minutes} minutes")
        if all(run(command) for command in step.commands):
            say(f"  took {(monotonic() - began) / 60:.0f} minutes")
            done[name] = at
            state.parent.mkdir(parents=True, exist_ok=True)
            state.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
        else:
            failed.append(name)
    return failed


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the steps and their minutes")
    parser.add_argument("--only", nargs="+", choices=STEPS, default=list(STEPS), metavar="STEP")
    parser.add_argument("--again", action="store_true", help="also what is done for this commit")
    arguments = parser.parse_args()
    if arguments.list:
        for name, step in STEPS.items():
            sys.stdout.write(f"{name:<12}{step.minutes:>4} min  {step.what}\n")
        return
    say(f"{len(arguments.only)} steps, about {sum(STEPS[name].minutes for name in arguments.only)} minutes")
    failed = measure(arguments.only, arguments.again)
    failed += [command[1] for command in TABLES if not run(command)]
    if failed:
        say(f"error: failed: {', '.join(failed)}; the same command tries again what is missing")
        sys.exit(1)


if __name__ == "__main__":
    main()
