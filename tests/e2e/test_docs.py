"""The documentation: its commands exist, its blocks run, its pages are found, its reference is complete."""

import json
import lzma
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from itertools import pairwise, takewhile
from pathlib import Path

import documents
import few_bits
import numpy as np
import onnx
import pytest
import stand_in
import yaml
from conftest import ASSETS
from documents import DOCS, PAGES, ROOT, Block
from encoders import Export, write_tokenizer
from encoders import write as write_encoder
from networks import Network
from PIL import Image
from tacit import _core, compile_model
from tacit.cli import main

RUNNABLE = ("sh", "python")
LANGUAGES = (*RUNNABLE, "json", "toml", "text")
GUIDES = [ROOT / "README.md", DOCS / "index.md", *sorted(DOCS.glob("guides/*.md")), *sorted(DOCS.glob("concepts/*.md"))]
SHARED = "Options that several commands share"
PRELUDES = {"README.md": "import numpy as np\n\ndef camera():\n    return list(np.load('in.npy'))\n"}
"""What a block takes for granted."""
SECONDS = 60


def name_of(page):
    return str(page.relative_to(ROOT))


def blocks_of(pages):
    return [block for page in pages for block in documents.blocks(page)]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_say_what_they_are(page):
    for block in documents.blocks(page):
        assert block.language in LANGUAGES, f"line {block.line}: `{block.language}` is none of {LANGUAGES}"
        if block.language == "json":
            json.loads(block.content)
        if block.language == "toml":
            tomllib.loads(block.content)
        if block.language == "text":
            first = [line.split()[0] for line in block.content.splitlines() if line.strip()]
            assert not {"tacit", "make", "pip", "python"} & set(first), f"line {block.line}: commands are ```sh"
        assert block.excuse is None or block.language in RUNNABLE


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_blocks_exist(page):
    for block in documents.blocks(page):
        lines = documents.joined(block.content) if block.language == "sh" else []
        for line in lines:
            words = shlex.split(line, comments=True)
            if words[:1] == ["tacit"]:
                documents.parse(list(takewhile(lambda word: word not in (">", "|", "&&"), words[1:])))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_the_text_exist(page):
    for command in documents.inline(page):
        for name in documents.meant(command):
            if documents.reads_its_own_options(name):
                continue
            unknown = documents.named_options(command) - documents.options(name) - {"--help"}
            assert not unknown, f"`{command}`: {name} has no {unknown}"


@pytest.fixture(scope="session")
def shelf(tmp_path_factory, compiled):
    """A folder with the files that the documentation names."""
    folder = tmp_path_factory.mktemp("shelf")
    for name, target in (("model.onnx", "mnist.onnx"), ("mnist.onnx", "mnist.onnx"), ("M.onnx", "mnist.onnx")):
        shutil.copy(ASSETS / target, folder / name)
    with np.load(ASSETS / "mnist_calibration.npz") as calibration, np.load(ASSETS / "mnist_digits.npz") as digits:
        for name in ("data.npz", "DATA.npz", "train.npz"):
            np.savez(folder / name, x=calibration["x"][:32], y=np.zeros(32, np.int64))
        np.savez(folder / "test.npz", x=digits["x"], y=digits["y"])
        np.save(folder / "in.npy", digits["x"][:1])
    shutil.copy(compiled(), folder / "model.tacit")
    _core.set_budget(str(folder / "budgets.db"), "token:ward-3", "mnist", "{}")
    few_bits.network(folder / "DIR")
    write_pictures(folder)
    write_texts(folder)
    write_tables(folder)
    return folder


def write_pictures(folder):
    """A network for photographs, pixels and two pictures."""
    (folder / "pictures").mkdir()
    network = Network(("N", 3, 224, 224)).conv((8, 3, 16, 16), strides=[16, 16]).add("Relu").add("GlobalAveragePool")
    source = network.add("Flatten").gemm(8, 5).save(folder / "pictures")
    (folder / "photos.onnx.xz").write_bytes(lzma.compress(source.read_bytes()))
    random = np.random.default_rng(0)
    np.savez(folder / "pixels.npz", x=random.integers(0, 256, (4, 224, 224, 3), np.uint8), y=np.arange(4))
    names = ["cat", "dog", "fish", "bird", "frog"]
    (folder / "classes.tsv").write_text("\n".join(["name", *names]) + "\n")
    for name in ("cat.jpg", "dog.png"):
        Image.fromarray(random.integers(0, 256, (240, 320, 3), np.uint8)).save(folder / name)


def write_texts(folder):
    """A sentence transformer, sentences and pairs with scores."""
    write_encoder(folder / "all-MiniLM-L6-v2", pooling="mean_tokens")
    onnx.save(Export().proto(), folder / "encoder.onnx")
    write_tokenizer(folder / "tokenizer.json")
    lines = ["the cat sees a fish", "a dog plays", "the man and the woman", "a blue ball on the red fish and the cat"]
    (folder / "sentences.txt").write_text("\n".join(lines) + "\n")
    rows = [f"{first}\t{second}\t{index}.5" for index, (first, second) in enumerate(pairwise(lines))]
    (folder / "stsb_dev.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n")


def write_tables(folder):
    """A model of XGBoost, and rows with a column of answers."""
    shutil.copy(ROOT / "tests/golden/xgboost_small.json", folder / "fraud.json")
    stored = json.loads((ROOT / "tests/golden/xgboost_small_margins.json").read_text())
    x = np.asarray(stored["rows"], np.uint32).view(np.float32)
    names = json.loads((folder / "fraud.json").read_text())["learner"]["feature_names"]
    lines = [",".join(["id", *names, "fraud"])]
    for at, row in enumerate(x[:32]):
        cells = ("" if np.isnan(value) else f"{value:.9g}" for value in row)
        lines.append(",".join([f"p-{at:04}", *cells, str(int(stored["margins"][at] > 0))]))
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    compile_model(folder / "fraud.json", folder / "fraud.tacit")


@pytest.fixture
def desk(shelf, tmp_path, monkeypatch):
    """A folder of one's own with these files, and `tacit` as a reader would call it; servers end with the test."""
    folder = tmp_path / "desk"
    shutil.copytree(shelf, folder)
    command = tmp_path / "bin" / "tacit"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{stand_in.__file__}" "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv(
        "PATH", f"{command.parent}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("TACIT_SERVED", str(tmp_path / "served"))
    yield folder
    for server in stand_in.servers():
        os.kill(server["process"], signal.SIGKILL)


def run(block: Block, folder):
    """Run a block to its end."""
    command = ["bash", "-euo", "pipefail", "-c", block.content]
    if block.language == "python":
        prelude = PRELUDES.get(name_of(block.page), "")
        command = [sys.executable, "-c", stand_in.replaced(prelude + block.content)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{name_of(block.page)}, line {block.line}:\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_blocks_run(page, desk):
    todo = [block for block in documents.blocks(page) if block.language in RUNNABLE and block.excuse is None]
    for block in todo:
        run(block, desk)


OPAQUE = {"graph", "measured", "tables", "choices", "alternatives", "rates"}
"""Values whose keys belong to the graph, to a table or to kinds of work."""


def keys(content):
    """All keys of a JSON, however deep."""
    if isinstance(content, list):
        return set().union(*map(keys, content))
    if not isinstance(content, dict):
        return set()
    return set(content).union(*(keys(value) for key, value in content.items() if key not in OPAQUE))


CALIBRATION = ("--calibrate", ASSETS / "mnist_calibration.npz")
CONVOLUTION = ("--height", "8", "--width", "8", "--in", "2", "--out", "2")
MEASURED = ROOT / "bench" / "results" / "models" / "model-mnist.json"
PRINTED = {
    "compile": ["compile", "mnist.onnx", "-o", "x.tacit", *CALIBRATION],
    "compile lola": ["compile", ASSETS / "lola_small.onnx", "-o", "x.tacit", "--suite", "lola", *CALIBRATION],
    "compile trees": ["compile", "fraud.json", "-o", "x.tacit"],
    "compile text": ["compile", "all-MiniLM-L6-v2", "-o", "x.tacit", "--sequence", "16"],
    "plan": ["plan", "model.tacit", "--network", "wan", "--batch", "2", "--offline", "1"],
    "plan NAME": ["plan", "mlp"],
    "plan --explain": ["plan", "model.tacit", "--network", "wan", "--explain", "relu1"],
    "plan --compare": ["plan", "model.tacit", "--compare"],
    "simulate": ["simulate", "model.tacit", "in.npy"],
    "run": ["run", "model.tacit", "in.npy"],
    "run, probabilities": ["run", "model.tacit", "in.npy", "--reveal", "probability"],
    "evaluate": ["evaluate", "model.tacit", "test.npz", "--model", "model.onnx"],
    "run, rows": ["run", "fraud.tacit", "rows.csv", "--id", "id", "--batch", "32"],
    "simulate, rows": ["simulate", "fraud.tacit", "rows.csv", "--id", "id"],
    "evaluate, rows": ["evaluate", "fraud.tacit", "rows.csv", "--target", "fraud", "--expected", "fraud"],
    "evaluate, private": ["evaluate", "model.tacit", "test.npz", "--mode", "private"],
    "token": ["token", "ward-3"],
    "budget show": ["budget", "show", "--ledger", "budgets.db"],
    "budget set": ["budget", "set", "--ledger", "b.db", "--client", "token:a", "--model", "m", "--total", "1"],
    "budget reset": ["budget", "reset", "--ledger", "budgets.db", "--all"],
    "bench model": ["bench", "model", "model.tacit", "--repeat", "1"],
    "bench relu": ["bench", "relu", "--count", "100", "--repeat", "1", "--saturate"],
    "bench gelu": ["bench", "gelu", "--rows", "2", "--cols", "8", "--repeat", "1"],
    "bench conv": ["bench", "conv", *CONVOLUTION, "--suite", "gala", "--repeat", "1"],
    "fleet simulate": ["fleet", "simulate", MEASURED, "--target", "1", "--sessions", "500", "--hours", "1"],
    "fleet simulate --clients": ["fleet", "simulate", MEASURED, "--clients", "2", "--hours", "0.01"],
    "reproduce": ["reproduce", "gala-operations"],
    "reproduce --list": ["reproduce", "--list"],
    "error": ["run", "model.tacit", "nothing.npy"],
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_reference_names_every_key(name, desk, monkeypatch, capsys):
    monkeypatch.chdir(desk)
    with pytest.raises(SystemExit):
        main([*map(str, PRINTED[name]), "--json"])
    found = keys(json.loads(capsys.readouterr().out))
    page = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    assert {key for key in found if f"`{key}`" not in page} == set()
    assert found


def test_the_reference_names_every_key_of_a_session(tacit, desk, monkeypatch):
    monkeypatch.chdir(desk)
    subprocess.run(["tacit", "serve", "model.tacit", "--listen", "127.0.0.1:7000"], check=True, timeout=SECONDS)
    (server,) = stand_in.servers()
    mine = tacit("predict", "in.npy", "--server", server["address"], "--pin", server["pin"], "--json").json
    Path("run.json").write_text(json.dumps(mine))
    made = tacit("report", "run.json", "-o", "x.html", "--json").json
    log = Path(os.environ["TACIT_SERVED"]).with_suffix(".0.log")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    page = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    found = keys([*lines, mine, made])
    assert {"listening", "end", "digest", "far_from_plan"} <= found
    assert {key for key in found if f"`{key}`" not in page} == set()


@pytest.mark.parametrize("name", documents.COMMANDS)
def test_the_reference_names_every_option(name):
    if documents.reads_its_own_options(name):
        pytest.skip("its own help lists them")
    sections = documents.sections(DOCS / "reference" / "cli.md")
    group, *rest = name.split()
    mine = [text for heading, text in sections.items() if heading and usage(group, *rest) <= words(text)]
    assert mine, f"no section shows `tacit {name}`"
    named = documents.named_options(sections[""] + "".join(mine))
    assert documents.options(name) <= named


def usage(*names):
    """What a section of a command has among its words."""
    return {"tacit", *names}


def words(text):
    """Words in the commands of a section."""
    return {word for command in documents.INLINE.findall(text) for word in command.replace("|", " ").split()}


def pages(nav):
    """All pages of a menu."""
    if isinstance(nav, str):
        return [nav]
    return [page for entry in (nav.values() if isinstance(nav, dict) else nav) for page in pages(entry)]


def test_every_page_is_in_the_menu_once():
    menu = pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert sorted(menu) == sorted(str(page.relative_to(DOCS)) for page in DOCS.glob("**/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", documents.prose(page)):
        assert "://" in target or (page.parent / target).exists(), f"{target} does not exist"
