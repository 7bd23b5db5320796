"""The pages of docs/papers: every table is there, equals what is stored, and every test that a page names exists."""

import json
import re
import shutil
from pathlib import Path

import paper_pages
import pytest
import result_age
from paper_catalogue import FULL, PAPERS, WHOLLY_STORED, Item, tables
from tacit_lab.reproduce.harness.needs import Stored
from tacit_lab.reproduce.paper import row
from tacit_lab.reproduce.tables import TABLES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs/papers"
NAMED = re.compile(r"`((?:tests|crates)/[\w/.-]+)::(\w+)`")
CONTENT = {
    "table": "t",
    "command": "tacit reproduce t",
    "rows": [row("a | b", 4, 2, "MB"), row("c", 2, 3, "MB"), row("right", 90, 91.5, "%"), row("alone", 0, 7, "s")],
    "machine": {"processor": "P", "cores": 2, "flags": ["aes"]},
    "commit": "0" * 40,
    "protocol": 1,
    "date": "2026-01-02T03:04:05+00:00",
    "note": "as said",
    "stored": [],
}


def test_every_table_of_a_paper_is_on_its_page_once():
    for paper in PAPERS:
        assert sorted(tables(paper)) == sorted(name for name in TABLES if name.startswith(f"{paper}-"))
        text = (PAGES / f"{paper}.md").read_text(encoding="utf-8")
        found = re.findall(r"^<!-- (\S+): written by", text, re.MULTILINE)
        assert sorted(found) == sorted([f"{paper}-overview", *tables(paper)])
    assert {path.stem for path in PAGES.glob("*.md")} == PAPERS.keys()


def test_pages_have_the_form_of_a_table_that_is_said():
    for path in sorted((result_age.RESULTS / paper_pages.STORED).glob("*.json")):
        assert json.loads(path.read_text(encoding="utf-8"))["full"] == (path.stem in FULL), path.stem
    assert set(TABLES) >= FULL


def test_what_no_table_has_says_why():
    for items in PAPERS.values():
        assert all(item.tables or item.missing for item in items)


def test_pages_are_as_stored():
    for path, wanted in paper_pages.pages(PAGES, result_age.RESULTS):
        assert path.read_text(encoding="utf-8") == wanted, path.name


@pytest.mark.parametrize("paper", PAPERS)
def test_tests_that_a_page_names_exist(paper):
    text = (PAGES / f"{paper}.md").read_text(encoding="utf-8")
    _, _, found = text.partition("## What we found about it")
    findings = [part for part in found.partition("\n## ")[0].split("\n- ")[1:] if part]
    assert findings
    assert sum(bool(NAMED.search(finding)) for finding in findings) >= len(findings) - 1
    for path, name in NAMED.findall(text):
        source = (ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"\b(?:def|fn) {name}\(", source), f"{path} has no {name}"


def test_tables_compare_and_say_what_they_are_from():
    lines = paper_pages.block(CONTENT, result_age.RESULTS)
    assert lines[0] == "`tacit reproduce t`"
    assert lines[4:8] == [
        r"| a \| b | 4 | 2 | MB | 0.50 |",
        "| c | 2 | 3 | MB | 1.50 |",
        "| right | 90 | 91.5 | % | +1.50 points |",
        "| alone | - | 7 | s | - |",
    ]
    assert "As said." in lines
    now = result_age.spoken()
    place = "Measured on 2026-01-02, P, 2 cores (aes), commit 0000000"
    assert lines[-1] == f"{place}, protocol 1, older than protocol {now} of this code."
    assert paper_pages.block({**CONTENT, "rough": True}, result_age.RESULTS)[-1].endswith(paper_pages.ROUGH)


def test_stored_rows_say_what_they_were_measured_with(tmp_path):
    name, now = "comet-table1", result_age.spoken()
    stored = {"machine": "P", "commit": "1" * 40, "protocol": 1}
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/f.json").write_text(json.dumps(stored))
    content = {**CONTENT, "table": name, "stored": [{"file": "bench/results/papers/f.json", "commit": "1" * 40}]}
    line = f"measured, P, commit 1111111, protocol 1, older than protocol {now} of this code."
    below = list(paper_pages.below(content, tmp_path))
    assert below[-1] == f"Rows from `bench/results/papers/f.json`: {line}"
    mixed = list(paper_pages.below({**content, "table": "lola-table4"}, tmp_path))
    assert mixed[-1].split("\n\n")[0] == below[-1]
    assert "commit 0000000" in mixed[-1]
    (tmp_path / "papers/f.json").write_text(json.dumps({**stored, "commit": "2" * 40}))
    with pytest.raises(SystemExit, match="make the table again"):
        list(paper_pages.below(content, tmp_path))
    (tmp_path / "papers/f.json").write_text("{}")
    silent = {**content, "stored": [{"file": "bench/results/papers/f.json", "commit": "unknown"}]}
    assert "before results named their commits" in list(paper_pages.below(silent, tmp_path))[-1]


def test_stored_tasks_say_what_each_was_measured_with(tmp_path):
    of_one, of_two = ({"machine": "P", "commit": digit * 40, "protocol": "none"} for digit in "12")
    stored = {**of_two, "tasks": {"a": of_one, "b": of_two, "c": of_one}}
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/f.json").write_text(json.dumps(stored))
    commits = {name: entry["commit"] for name, entry in stored["tasks"].items()}
    origin = {"file": "bench/results/papers/f.json", "commit": "2" * 40, "tasks": commits}
    floats = "of float models, without a protocol"
    first, second = (f"measured, P, commit {digit * 7}, {floats}" for digit in "12")
    words = paper_pages.origin_line(origin, tmp_path)
    assert words == f"Rows from `bench/results/papers/f.json`: of a, c {first}; of b {second}."
    with pytest.raises(SystemExit, match="make the table again"):
        paper_pages.origin_line({**origin, "tasks": {**commits, "a": "2" * 40}}, tmp_path)
    with pytest.raises(SystemExit, match="make the table again"):
        paper_pages.origin_line({**origin, "tasks": {**commits, "d": "2" * 40}}, tmp_path)


def test_tables_with_stored_rows_alone_are_known():
    names = [name for paper in PAPERS for name in tables(paper)]
    whole = [name for name in names if TABLES[name].needs and all(isinstance(n, Stored) for n in TABLES[name].needs)]
    assert set(whole) == WHOLLY_STORED


def test_an_overview_has_the_least_and_the_largest():
    item = Item("table 0", "something", ("t",), "the rest")
    cells = paper_pages.overview_row(item, {"t": CONTENT})
    assert cells == [
        "table 0",
        "something",
        "`tacit reproduce t`",
        "MB: 0.50 to 1.50; %: +1.50 points",
        "the rest",
    ]
    assert paper_pages.overview_row(Item("x", "y", (), "z"), {}) == ["x", "y", "-", "-", "z"]


@pytest.fixture
def copies(tmp_path):
    """Pages and results of one's own."""
    shutil.copytree(PAGES, tmp_path / "docs")
    shutil.copytree(result_age.RESULTS / "papers", tmp_path / "results/papers")
    return tmp_path


def called(copies, monkeypatch, *arguments):
    folders = ("--docs", str(copies / "docs"), "--results", str(copies / "results"))
    monkeypatch.setattr("sys.argv", ["paper_pages.py", *arguments, *folders])
    paper_pages.main()


def test_a_page_that_differs_fails_and_is_written_anew(copies, monkeypatch, capsys):
    path = copies / "results" / paper_pages.STORED / "ufo-figure13.json"
    content = json.loads(path.read_text())
    content["rows"][0]["ours"] = 123.456
    path.write_text(json.dumps(content))
    with pytest.raises(SystemExit):
        called(copies, monkeypatch, "--check")
    assert "ufo.md: not as in" in capsys.readouterr().err
    called(copies, monkeypatch)
    assert "123.5" in (copies / "docs/ufo.md").read_text()
    called(copies, monkeypatch, "--check")


def test_tables_are_taken_over_from_a_run(copies, monkeypatch, capsys):
    made = copies / "made/tables/ufo-figure13.json"
    made.parent.mkdir(parents=True)
    made.write_text(json.dumps({**CONTENT, "full": False, "status": "done"}))
    before = (copies / "docs/ufo.md").read_text()
    called(copies, monkeypatch, "--store", str(copies / "made"))
    assert (copies / "docs/ufo.md").read_text() == before
    assert "ufo-figure13 stays as it is: its page has the full table" in capsys.readouterr().err
    made.write_text(json.dumps({**CONTENT, "full": True, "status": "done"}))
    called(copies, monkeypatch, "--store", str(copies / "made"), "--rough")
    stored = json.loads((copies / "results" / paper_pages.STORED / "ufo-figure13.json").read_text())
    assert stored["rows"] == CONTENT["rows"]
    assert stored["rough"] and "status" not in stored
    assert paper_pages.ROUGH in (copies / "docs/ufo.md").read_text()
    made.write_text(json.dumps({**CONTENT, "status": "skipped", "reason": "no data"}))
    with pytest.raises(SystemExit, match="is skipped: no data"):
        called(copies, monkeypatch, "--store", str(copies / "made"))
