"""Seven networks on three links: the planner's plan against fixed settings and other suites, as JSON and a table.

`.venv/bin/python scripts/planner_matrix.py [--only MODEL ...] [--links wan ...] [--settings S ...] [--repeat N]
[--skip-slow] [--calibrate]` compiles each model for every suite that can run it, measures a session with one random
input between two processes under every setting, in turns (a round of all settings, then one in reverse), and writes
bench/results/planner/planner.json: by model and link the median seconds, bytes and rounds of each setting, what was
predicted, and the planner's seconds over those of the best of the others. With --settings only those are measured, and
the others stay as they are known: to repeat those that are close more often. Settings of over six seconds, or of over
twice the least, run once. Calibrate first (`tacit calibrate`), or with --calibrate before each model, where other
tenants change the machine's speed; let nothing else run. MiniLM needs `make .venv/.text`.
"""

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from real_networks import DATA, NETWORKS, ROOT, prepare, read, say, source, tacit
from tacit import _core
from tacit.demo.digits import prepare as demo
from tacit.demo.texts import minilm
from tacit.measure.bench import commit, machine

RESULT = ROOT / "bench/results/planner/planner.json"
FOLDER = ROOT / "build/planner"
ASSETS = ROOT / "python/tacit/assets"
LINKS = ("loopback", "lan", "wan")
CIFAR = ("resnet8", "resnet20", "minionn")
MODELS = ("mnist", *CIFAR, "cryptonets", "squeezenet", "minilm")
SUITES = ("gazelle", "gala", "falcon-ntt", "ufo", "comet")
OTHER_SUITES = {
    "mnist": (*SUITES, "falcon"),
    "cryptonets": ("falcon-ntt", "falcon", "ufo", "comet", "lola"),
    "squeezenet": ("comet", "ufo"),
    "minilm": (),
}
"""Suites that run other models than CIFAR's. Transforms of falcon are too inexact for these, lola has squares only,
values of CryptoNets are too wide for slots and images of 227x227 too large, no suite but auto has a softmax."""
SUITE_OPTIONS: dict[str, tuple[str, ...]] = {"falcon": ("--accept-leakage",)}
"""What `tacit compile` and every session want besides."""
OWN_PRECISION = ("lola",)
"""Suites that choose precisions without calibration, because nothing is rescaled."""
LONG_SECONDS = 6.0
"""A setting whose first run takes longer is not run again."""
FAR = 2.0
"""Nor is one that takes so many times the least that any setting took: noise does not bring it near."""
FIXED = {
    "planned": (),
    "plain": ("--protocols", "plain"),
    "digits 2": ("--protocols", "digits2"),
    "digits 4": ("--protocols", "digits4"),
    "digits 8": ("--protocols", "digits8"),
    "circuits": ("--protocols", "circuits"),
    "softspoken2": ("--protocols", "plain", "--ot", "softspoken2"),
    "softspoken4": ("--protocols", "plain", "--ot", "softspoken4"),
    "softspoken8": ("--protocols", "plain", "--ot", "softspoken8"),
    "ferret": ("--protocols", "plain", "--ot", "ferret"),
    "ahead": ("--protocols", "ahead"),
    "prepared": ("--offline", "1"),
    "transfers": ("--protocols", "transfers"),
    "rows 4": ("--protocols", "rows4"),
}
USUAL_BITS = 8
"""Where the range of results asks for more, suite auto takes 10 by itself."""
LACKS = {"minilm": ("transfers",)}
"""Fixed settings that are left out: none of an encoder's layers is small enough for transfers."""
SLOW = {"squeezenet": ("circuits", "suite ufo")}
"""Settings of large models that take minutes and gigabytes: left out with --skip-slow."""


def compiled(name: str, arguments: argparse.Namespace) -> dict[str, Path]:
    """By suite the model, compiled with the same calibration."""
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    if name == "mnist":
        model = demo(folder, None).path
        onnx = ASSETS / "mnist.onnx"
        options: tuple[Path | str | int, ...] = ("--calibrate", ASSETS / "mnist_calibration.npz")
    elif name == "minilm":
        model = folder / "minilm.tacit"
        onnx = minilm()
        options = ("--sequence", 32)
        tacit("compile", onnx, "-o", model, *options)
    else:
        model = prepare(name, NETWORKS[name], arguments.data, folder)
        onnx = source(NETWORKS[name], arguments.data, folder)
        options = ("--calibrate", folder / f"{name}-calibration.npz", "--preprocess", folder / f"{name}.json")
    models = {"auto": model}
    widths = wider(model)
    for suite in OTHER_SUITES.get(name, SUITES):
        models[suite] = folder / f"{name}-{suite}.tacit"
        own = () if suite in OWN_PRECISION else (*options, *widths)
        tacit("compile", onnx, "-o", models[suite], "--suite", suite, *own, *SUITE_OPTIONS.get(suite, ()))
    return models


def wider(model: Path) -> tuple[str | int, ...]:
    """Options that give other suites the widths of the first model, where it was compiled to more than 8 bits."""
    chosen = tacit("inspect", model)["options"]
    widths = {"--weight-bits": chosen["weight_bits"], "--activation-bits": chosen["activation_bits"]}
    return tuple(word for option, bits in widths.items() if bits > USUAL_BITS for word in (option, bits))


def settings(name: str, models: dict[str, Path], skip: bool) -> Iterator[tuple[str, Path, tuple[str, ...]]]:
    """Name, model and options of everything to measure."""
    for setting, options in FIXED.items():
        # Rows are for transformers.
        has = setting not in LACKS.get(name, ("rows 4",))
        if has and not (skip and setting in SLOW.get(name, ())):
            yield setting, models["auto"], options
    for suite, model in models.items():
        if suite != "auto" and not (skip and f"suite {suite}" in SLOW.get(name, ())):
            yield f"suite {suite}", model, SUITE_OPTIONS.get(suite, ())


def measured(
    name: str, link: str, models: dict[str, Path], arguments: argparse.Namespace, known: dict[str, Any]
) -> dict[str, Any]:
    """Every setting on one link, or those that are asked for beside what is `known`."""
    runs: dict[str, list[dict[str, Any]]] = {}
    asked = arguments.settings
    for turn in range(arguments.repeat):
        # There and back, so that none always follows the same other.
        for setting, model, options in list(settings(name, models, arguments.skip_slow))[:: 1 - 2 * (turn % 2)]:
            if (asked and setting not in asked) or is_done(runs, setting):
                continue
            run = tacit("bench", "model", model, "--repeat", 1, "--threads", 1, "--network", link, *options)
            runs.setdefault(setting, []).append(run)
    rows = (known.get("settings", {}) if asked else {}) | {setting: row(of) for setting, of in runs.items()}
    others = {setting: entry["seconds"] for setting, entry in rows.items() if setting != "planned"}
    best = min(others, key=lambda setting: others[setting])
    ours = rows["planned"]["seconds"]
    exact = all(
        run[field] == run["predicted"][field] for of in runs.values() for run in of for field in ("bytes", "rounds")
    )
    figures = f"{ours:.3f} s, predicted {rows['planned']['predicted']:.3f}"
    say(f"{name} on {link}: {figures}; best other {best} {others[best]:.3f}")
    exact = exact and (not asked or known.get("bytes_and_rounds_exact", True))
    return {"settings": rows, "best_other": best, "over_best": ours / others[best], "bytes_and_rounds_exact": exact}


def is_done(runs: dict[str, list[dict[str, Any]]], setting: str) -> bool:
    """Whether a setting is not run again.

    It took so long that a machine's short disturbances are little of it, or so much longer than another that the two
    cannot change places.
    """
    if setting not in runs:
        return False
    least = min(run["seconds"] for of in runs.values() for run in of)
    longest = max(run["seconds"] for run in runs[setting])
    return (setting != "planned" and longest > FAR * least) or longest > LONG_SECONDS


def row(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the runs of one setting."""
    return {
        "seconds": median(run["seconds"] for run in runs),
        "all_seconds": [run["seconds"] for run in runs],
        "predicted": runs[0]["predicted"]["seconds"],
        "bytes": sum(runs[0]["bytes"].values()),
        "rounds": runs[0]["rounds"],
        "ot": runs[0]["ot"],
    }


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS), help="some of the models")
    parser.add_argument("--links", nargs="+", choices=LINKS, default=list(LINKS), help="some of the links")
    parser.add_argument("--settings", nargs="+", default=[], help="some of the settings, as `planned` or `suite gala`")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each short setting (default: 3)")
    parser.add_argument("--skip-slow", action="store_true", help="leave out settings of large models that take minutes")
    parser.add_argument("--calibrate", action="store_true", help="measure the machine anew before each model")
    parser.add_argument("--output", type=Path, default=RESULT, help="default: %(default)s")
    parser.add_argument("--data", type=Path, default=DATA, help="default: %(default)s")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for compiled models (default: %(default)s)")
    arguments = parser.parse_args()
    for name in arguments.only:
        models = compiled(name, arguments)
        if arguments.calibrate:
            tacit("calibrate")
        for link in arguments.links:
            known = read(arguments.output).get(name, {}).get(link, {})
            entry = measured(name, link, models, arguments, known)
            conditions = {
                "machine": machine(),
                "version": _core.__version__,
                "commit": commit(),
                "protocol": _core.PROTOCOL,
            }
            entries = read(arguments.output)
            entries.setdefault(name, {})[link] = {
                **entry,
                **conditions,
                "repeat": arguments.repeat,
                "date": datetime.now(UTC).date().isoformat(),
            }
            arguments.output.write_text(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    main()
