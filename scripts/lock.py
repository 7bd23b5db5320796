"""The locks of Python packages: all that an environment needs, each with its version and the hashes of its files.

`make locks` rewrites requirements/*.lock from requirements/*.in. Versions stay as they are where requirements/*.in
still allow them; `python scripts/lock.py --upgrade NAME` takes the newest of one package. uv, itself locked in
requirements/tools.lock, finds versions and files. A lock has the hashes of the wheels that CPython 3.11 can use on
Linux x86-64, and of no source: what would have to be built at installation is refused. Standard library only.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "requirements"
PYTHON = "3.11"
PLATFORM = "x86_64-manylinux_2_34"
FIRST = ("main", "run")
"""The locks that bound others, which thus take the same versions."""
ALONE = {"chat", "shipped", "text"}
"""The locks of packages that are installed without what they depend on."""


def names() -> list[str]:
    """The names of all locks, those first that others are bounded by."""
    found = sorted(file.stem for file in FOLDER.glob("*.in"))
    return [*FIRST, *(name for name in found if name not in FIRST)]


def compiled(arguments: list[str | Path], out: Path) -> str:
    """What `uv pip compile` writes to `out`, where versions that stand there already are kept."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    target = ["--python-version", PYTHON, "--python-platform", PLATFORM, "--no-sources", "--no-build"]
    subprocess.run([*command, *target, *arguments, "--output-file", out], check=True)
    return out.read_text(encoding="utf-8")


def entry(package: dict[str, Any]) -> str:
    """A package of a lock: its version, then the hash of each file that may be installed."""
    hashes = sorted(wheel["hashes"]["sha256"] for wheel in package["wheels"])
    return " \\\n".join([f"{package['name']}=={package['version']}", *(f"    --hash=sha256:{each}" for each in hashes)])


def resolved(name: str, upgraded: list[str], scratch: Path) -> list[dict[str, Any]]:
    """All packages of a lock, as the table of them that PEP 751 describes."""
    alone: list[str | Path] = ["--no-deps"] if name in ALONE else []
    renewed: list[str | Path] = [f"--upgrade-package={package}" for package in upgraded]
    versions, files, lock = scratch / f"{name}.txt", scratch / f"pylock.{name}.toml", FOLDER / f"{name}.lock"
    if lock.exists():
        versions.write_text(lock.read_text(encoding="utf-8"), encoding="utf-8")
    compiled([*alone, *renewed, FOLDER / f"{name}.in"], versions)
    table = compiled(["--no-deps", "--format", "pylock.toml", versions], files)
    packages: list[dict[str, Any]] = tomllib.loads(table)["packages"]
    return packages


def main() -> None:
    """Rewrites all locks, or those that are named."""
    parser = argparse.ArgumentParser(description="Rewrite requirements/*.lock from requirements/*.in.")
    parser.add_argument("names", nargs="*", help="locks, without folder and ending (all)")
    parser.add_argument("--upgrade", action="append", default=[], metavar="PACKAGE", help="take its newest version")
    arguments = parser.parse_args()
    for name in arguments.names or names():
        with tempfile.TemporaryDirectory() as scratch:
            packages = resolved(name, arguments.upgrade, Path(scratch))
        heading = f"# Written from {name}.in by `make locks`, for CPython {PYTHON} on Linux x86-64."
        lines = [heading, *(entry(package) for package in packages)]
        (FOLDER / f"{name}.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"requirements/{name}.lock: {len(packages)} packages")


if __name__ == "__main__":
    main()
