"""The product and the experiments: who imports whom, and what goes into the wheel."""

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import imports
import pytest
import sbom
from conftest import ROOT
from imports import PYTHON
from tacit.cli import main

LOADERS = {"tacit.cli.reproduce", "tacit.cli.train"}
"""The modules of the product that may load the experiments, when their commands run."""
WHEELS = ROOT / "build" / "wheels"


def of_lab(names):
    return {name for name in names if name.partition(".")[0] == "tacit_lab"}


def product():
    return [name for name in imports.modules() if name.partition(".")[0] == "tacit"]


def test_only_the_two_loaders_name_the_experiments():
    assert {name for name in product() if of_lab(imports.anywhere(name))} == LOADERS


def test_nothing_of_the_experiments_is_loaded_with_the_product():
    assert {name: of_lab(imports.reached(name)) for name in product() if of_lab(imports.reached(name))} == {}


def test_no_three_modules_import_one_another():
    assert [group for group in imports.cycles() if len(group) > 2] == []


@pytest.mark.parametrize(
    "arguments",
    [("reproduce", "--list"), ("train", "ufo"), ("train", "glue"), ("train", "square", "m", "--data", "d", "-o", "o")],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_without_the_experiments_a_command_says_what_to_install(arguments, monkeypatch, capsys):
    for name in of_lab(list(sys.modules)):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tacit_lab", None)  # so that importing it fails
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert "tacit_lab" in said
    assert f"pip install 'tacit[{'lab' if arguments[0] == 'reproduce' else 'train'}]'" in said


def settings(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_wheel_is_configured_to_hold_the_product_alone():
    project = settings(ROOT)
    build = project["tool"]["maturin"]
    assert build["python-source"] == PYTHON.name
    assert build["python-packages"] == ["tacit"]
    client = PYTHON.name + "/tacit/page/client/"
    assert all(one["path"].startswith(client) and one["format"] == "wheel" for one in build["include"])
    assert not (PYTHON / "tacit" / "train").exists()


def test_both_distributions_have_one_version():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    lab = settings(PYTHON / "tacit_lab")["project"]
    extras = settings(ROOT)["project"]["optional-dependencies"]
    assert lab["version"] == version
    assert f"tacit=={version}" in lab["dependencies"]
    assert extras["lab"] == [f"tacit-lab=={version}"]
    assert extras["train"] == [f"tacit-lab[train]=={version}"]


@pytest.mark.skipif(not list(WHEELS.glob("tacit-*.whl")), reason="no wheel was built: `make wheel`")
def test_the_wheel_that_was_built_holds_every_file_of_the_product_and_none_of_the_experiments():
    (wheel,) = WHEELS.glob("tacit-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in names} == {"tacit"}
    files = {str(file.relative_to(PYTHON)) for file in imports.modules().values()}
    assert {name for name in names if name.endswith(".py")} == {name for name in files if name.startswith("tacit/")}
    assert {f"tacit/{name}" for name in ("py.typed", "report/html/style.css", "assets/mnist.onnx")} <= set(names)
    assert any(name.startswith("tacit/_core.") and name.endswith((".so", ".pyd")) for name in names)


@pytest.mark.skipif(not list(WHEELS.glob("tacit-*.whl")), reason="no wheel was built: `make wheel`")
def test_the_wheel_that_was_built_needs_no_newer_system_than_its_name_says(tmp_path):
    (wheel,) = WHEELS.glob("tacit-*.whl")
    python, abi, platform = wheel.stem.split("-")[2:]
    assert (python, abi) == ("cp311", "abi3")
    major, minor = re.fullmatch(r"manylinux_(\d+)_(\d+)_\w+", platform).groups()
    with zipfile.ZipFile(wheel) as archive:
        (core,) = (name for name in archive.namelist() if name.endswith(".so"))
        library = archive.extract(core, tmp_path)
    symbols = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
    needed = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", symbols)}
    assert max(needed)[:2] <= (int(major), int(minor))


@pytest.mark.skipif(not list(WHEELS.glob("tacit-*.whl")), reason="no wheel was built: `make wheel`")
def test_the_wheel_that_was_built_has_a_bill_of_materials_and_no_path_of_this_machine():
    (wheel,) = WHEELS.glob("tacit-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    bills = [name for name in files if ".dist-info/sboms/" in name]
    assert [name.rpartition("/")[2] for name in bills] == ["tacit.cdx.json"]
    assert json.loads(files[bills[0]])["components"] == sbom.bill()["components"]
    for name, content in files.items():
        for place in (ROOT, Path.home() / ".cargo"):
            assert f"{place}/".encode() not in content, name


@pytest.mark.skipif(not list(WHEELS.glob("tacit-*.whl")), reason="no wheel was built: `make wheel`")
def test_the_wheel_that_was_built_runs_the_demo_in_an_empty_environment(tmp_path):
    (wheel,) = WHEELS.glob("tacit-*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv/bin"
    install = [programs / "pip", "install", "--quiet", "--disable-pip-version-check"]
    locked = ["--require-hashes", "--only-binary", ":all:", "--requirement", ROOT / "requirements" / "run.lock"]
    subprocess.run([*install, *locked], check=True)
    subprocess.run([*install, "--no-index", "--no-deps", wheel], check=True)
    demo = [programs / "tacit", "demo", "--folder", tmp_path / "demo", "--json"]
    done = subprocess.run(demo, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout)["agreement"] == 1
