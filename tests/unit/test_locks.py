"""What is installed is locked: every package has its version and hashes, and every installation goes through a lock."""

import json
import re
import tomllib

import pytest
from conftest import ROOT
from tacit.demo import texts

FOLDER = ROOT / "requirements"
LOCKS = sorted(FOLDER.glob("*.lock"))
RECIPES = [ROOT / "Makefile", ROOT / ".ci/run", ROOT / "packaging/docker/Dockerfile", *(ROOT / "scripts").glob("*.sh")]
ENTRY = re.compile(r"([a-z0-9-]+)==([0-9][\w.]*)((?: --hash=sha256:[0-9a-f]{64})+)")
SYSTEM = {"apt-get update --quiet", "apt-get install --yes --no-install-recommends valgrind"}
"""Tools of the system that tests run under; their packages are signed by the distribution."""
BROWSER = {
    "rustup target add wasm32-unknown-unknown",
    "rustup target add wasm32-wasip1-threads",
    "npm --prefix web ci --no-audit --no-fund --ignore-scripts",
    "npm --prefix web test",
}
"""Of the client for browsers: a part of the pinned toolchain, packages with hashes in a lock file, and tests."""
INSTALLS = re.compile(r"\bpip3?(?:\s+--?\S+)*\s+(?:install|wheel|download)\b|\buv\s+(?:pip|sync|run|tool)\b|\bpipx\b")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(path):
    """The lines of a file without comments, continued ones joined."""
    text = re.sub(r"\s*\\\n\s*", " ", path.read_text(encoding="utf-8"))
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def commands(path):
    """The commands of a Makefile, a Dockerfile or a script, with the variables that the file itself sets."""
    found = lines(path)
    values = dict(match.groups() for line in found if (match := re.match(r"(\w+) :?= (.*)", line)))
    for line in found:
        expanded = re.sub(r"\$\((\w+)\)", lambda name: values.get(name[1], name[0]), line)
        yield from re.split(r"&&|;|\|\|", expanded)


def locked(name):
    """Versions of all packages of a lock."""
    return {entry[1]: entry[2] for line in lines(FOLDER / f"{name}.lock") if (entry := ENTRY.fullmatch(line))}


def pins(requirements):
    """Names and exact versions; anything that is not pinned has no version."""
    split = (re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?(?:==([\w.]+))?", each) for each in requirements)
    return {normal(each[1]): each[2] for each in split}


def asked(name):
    """What the input of a lock names, with that of others that it takes in."""
    found = {}
    for line in lines(FOLDER / f"{name}.in"):
        if line.startswith("-r "):
            found |= asked(line.removeprefix("-r ").removesuffix(".in"))
        elif not line.startswith("-c "):
            found |= pins([line])
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_line_of_a_lock_has_a_version_and_hashes(lock):
    bad = [line for line in lines(lock) if ENTRY.fullmatch(line) is None]
    assert bad == []
    assert len(locked(lock.stem)) == len(lines(lock)) > 0


def test_every_lock_holds_what_its_input_asks_for():
    assert {lock.stem for lock in LOCKS} == {file.stem for file in FOLDER.glob("*.in")}
    for lock in LOCKS:
        assert None not in asked(lock.stem).values()
        assert asked(lock.stem).items() <= locked(lock.stem).items(), lock.name


def test_locks_agree_on_versions():
    everything = locked("main")
    for lock in LOCKS:
        own = locked(lock.stem)
        # SPU asks for an older NumPy, in an environment of its own.
        apart = {"numpy", "ml-dtypes"} if lock.stem == "peers" else set()
        assert {name for name in own.keys() & everything.keys() if own[name] != everything[name]} == apart, lock.name


def test_locks_have_the_versions_of_the_distributions():
    product = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lab = tomllib.loads((ROOT / "python/tacit_lab/pyproject.toml").read_text(encoding="utf-8"))
    assert asked("run") == pins(product["project"]["dependencies"])
    assert pins(product["project"]["optional-dependencies"]["text"]).items() <= asked("main").items()
    assert pins(product["project"]["optional-dependencies"]["tables"]).items() <= asked("tables").items()
    assert pins(product["project"]["optional-dependencies"]["fleet"]).items() <= asked("fleet").items()
    assert pins(product["project"]["optional-dependencies"]["ray"]).items() <= asked("ray").items()
    own = pins(lab["project"]["dependencies"])
    assert own.pop("tacit")
    assert own.items() <= asked("main").items()
    assert pins(lab["project"]["optional-dependencies"]["train"]).items() <= asked("train").items()
    assert asked("wheel") == pins(product["build-system"]["requires"] + lab["build-system"]["requires"])


def test_the_demo_of_texts_names_the_package_that_is_locked():
    name, version = texts.INSTALL.split()[-1].split("==")
    assert locked("text") == {name: version}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_everything_that_is_installed_goes_through_a_lock(path):
    for command in commands(path):
        if command.lstrip().startswith("INSTALL :="):
            continue
        if INSTALLS.search(command):
            local = "--no-index" in command and "--no-deps" in command
            found = re.search(r"--requirement (?:/tmp/|requirements/)([\w$*-]+)\.lock\b", command)
            hashed = found is not None and "--require-hashes" in command and "--only-binary :all:" in command
            assert local or hashed, command
            assert "wheel " not in command or "--no-build-isolation" in command
            if found and "$" not in found[1]:
                assert (FOLDER / f"{found[1]}.lock").exists(), command
        if "maturin develop" in command:
            assert "PIP_NO_INDEX=1" in command
        if "cargo install" in command:
            assert re.search(r" --locked .*@(\$\(\w+\)|\d+\.\d+\.\d+)$", command.rstrip()), command
        if command.strip() not in SYSTEM | BROWSER:
            assert not re.search(r"\b(npm|npx|curl|wget|apt|apt-get|rustup)\b", command), command


def test_packages_of_the_browser_client_have_hashes():
    packages = json.loads((ROOT / "web/package-lock.json").read_text(encoding="utf-8"))["packages"]
    named = packages.pop("")
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    wanted = named.get("dependencies", {}) | named.get("devDependencies", {})
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values()), wanted


def test_the_installations_are_found():
    found = [command for path in RECIPES for command in commands(path) if INSTALLS.search(command)]
    assert len([command for command in found if "--require-hashes" in command]) >= 6
    assert INSTALLS.search(".venv/bin/python -m pip --quiet install x")
    assert INSTALLS.search("/opt/tacit/bin/pip install x")
    assert not INSTALLS.search("touch .venv/.packages")
