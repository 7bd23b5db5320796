"""`tacit reproduce --all` and `--list`."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tacit_lab.reproduce.comet_cost import comet_table8
from tacit_lab.reproduce.tables import TABLES


def test_a_run_leaves_tables_and_a_document_and_goes_on(tacit, tmp_path):
    arguments = ("reproduce", "--all", "--only", "gala-operations,ufo-figure18", "-o", tmp_path / "out")
    done = tacit(*arguments, "--json")
    assert (done.code, [entry["status"] for entry in done.json["tables"]]) == (0, ["done", "done"])
    assert json.loads((tmp_path / "out" / "reproduction.json").read_text()) == done.json
    operations = done.json["tables"][0]
    row = {row["name"]: row for row in operations["rows"]}["MLP 784-128-128-10, GALA"]
    assert (row["paper"], row["ratio"]) == (55, row["ours"] / 55)
    assert operations["command"] == "tacit reproduce gala-operations"
    assert operations["machine"]["cores"] > 0
    page = (tmp_path / "out" / "reproduction.html").read_text()
    assert "gala-operations" in page and "<svg" in page
    assert "block8_second" in (tmp_path / "out" / "reproduction.md").read_text()
    again = tacit(*arguments)
    assert again.code == 0
    assert again.err.count("kept, made with this commit before") == 2
    assert json.loads((tmp_path / "out" / "tables" / "gala-operations.json").read_text())["date"] == operations["date"]


def test_what_cannot_be_made_is_named_with_the_reason(tacit, tmp_path):
    (tmp_path / "mnist").mkdir()
    (tmp_path / "models").mkdir()
    for name in ("mnist/mnist.npz", "models/cryptonets_mnist.onnx"):
        (tmp_path / name).write_text("no such thing")
    only = ("--only", "lola-table3,gala-accuracy,gala-operations", "--data", tmp_path)
    done = tacit("reproduce", "--all", "-o", tmp_path / "out", *only)
    assert done.code == 1
    assert "error: 1 of 3 tables failed: lola-table3" in done.err
    assert "gala-accuracy: skipped: " in done.err
    text = (tmp_path / "out" / "reproduction.md").read_text()
    assert "3 tables: 1 done, 1 failed, 1 skipped" in text


def running(word):
    """Command lines of processes with a word in them, from /proc."""
    for facts in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = facts.read_bytes().decode(errors="replace").split("\0")
            if word in line:
                yield line


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_what_is_done(tmp_path, way):
    only = "gala-operations,gala-conv,ufo-figure18"
    folder = str(tmp_path)
    options = ["--full", "--only", only, "-o", folder, "--data", folder]
    command = [sys.executable, "-m", "tacit", "reproduce", "--all", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert "3 tables, about" in run.stderr.readline()
        assert "gala-operations: done" in run.stderr.readline()
        time.sleep(2)
        assert any("gala-conv" in line for line in running(folder))
        os.kill(run.pid, way)
        rest = run.stderr.read()
        assert run.wait(30) == 130
    assert "interrupted; the same command goes on" in rest
    assert not list(running(folder))
    found = json.loads((tmp_path / "reproduction.json").read_text())
    assert [entry["status"] for entry in found["tables"]] == ["done", "pending", "pending"]


def test_the_list_has_every_table_with_what_it_needs(tacit):
    tables = tacit("reproduce", "--list", "--json").json["tables"]
    assert list(tables) == list(TABLES)
    shown = tacit("reproduce", "--list").out
    assert all(f" {name} " in shown for name in TABLES)


def test_one_of_list_all_and_a_table_is_wanted(tacit):
    for arguments in ((), ("--all", "gala-operations"), ("--list", "--all")):
        done = tacit("reproduce", *arguments)
        assert (done.code, "say one of --list, --all or a table" in done.err) == (1, True)
    assert "belong to --all" in tacit("reproduce", "gala-operations", "--only", "x").err
    assert "there is no table `x`" in tacit("reproduce", "--all", "--only", "x").err


def test_gelu_by_tables_takes_a_part_of_the_bytes_of_a_smooth_maximum():
    rows = {row["name"]: row["ours"] for row in comet_table8(False, Path())["rows"]}
    assert rows["GELU, auto/comet, communication"] < 0.3
