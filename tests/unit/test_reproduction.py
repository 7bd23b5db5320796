"""All tables in one run: what is kept, what fails, what is skipped, and the document."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from tacit.errors import MisuseError, TacitError
from tacit_lab.reproduce.harness import conditions, figures
from tacit_lab.reproduce.harness.document import document, publish
from tacit_lab.reproduce.harness.html import inlined
from tacit_lab.reproduce.harness.listing import listing
from tacit_lab.reproduce.harness.needs import DataFile, LocalFile, Package, Stored, missing
from tacit_lab.reproduce.harness.process import answer
from tacit_lab.reproduce.harness.runner import Folder, Run, chosen
from tacit_lab.reproduce.harness.wording import circumstances, commits, lasting, quotient, short, status
from tacit_lab.reproduce.paper import Minutes, Table, ratio, row
from tacit_lab.reproduce.tables import TABLES, reproduce

ROWS = [row("bytes | all", 4, 2, "MB"), row("<bars>", 0, 3, "bits")]


def table(name, *needs, figure=None):
    return Table(f"Paper, {name}", f"what {name} shows", lambda *_: {"rows": ROWS}, Minutes(1, 2), needs, figure=figure)


FAKES = {name: table(name) for name in ("first", "second", "third")}


class Measured:
    """Stands for the processes of a run: counts them, and fails on request."""

    def __init__(self):
        self.names, self.failing = [], set()

    def __call__(self, run, name):
        self.names.append(name)
        if name in self.failing:
            raise TacitError(f"{name} ran out of luck")
        return {
            "table": name,
            "full": run.full,
            "rows": ROWS,
            "measured": [{"name": "x", "seconds": 1}],
            "seconds": 1.5,
        }


@pytest.fixture
def measured():
    return Measured()


@pytest.fixture
def run(tmp_path, measured):
    def build(tables=FAKES, full=False, again=False):
        return Run(tables, Folder(tmp_path / "out"), full, tmp_path, again, measured)

    return build


def outcomes(run):
    return [(result.entry["table"], result.entry["status"], result.kept) for result in run.results()]


def test_a_second_run_keeps_what_is_done(run, measured):
    assert outcomes(run()) == [(name, "done", False) for name in FAKES]
    assert outcomes(run()) == [(name, "done", True) for name in FAKES]
    assert measured.names == list(FAKES)
    assert outcomes(run(again=True)) == [(name, "done", False) for name in FAKES]


def test_full_tables_and_other_commits_are_made_anew(run, measured, monkeypatch):
    list(run().results())
    assert not any(result.kept for result in run(full=True).results())
    assert all(result.kept for result in run(full=True).results())
    monkeypatch.setattr(conditions, "commit", lambda: "another")
    assert not any(result.kept for result in run(full=True).results())
    assert len(measured.names) == 3 * len(FAKES)


def test_an_interrupted_run_goes_on_where_it_was(run, measured):
    results = run().results()
    assert next(results).entry["table"] == "first"
    results.close()
    assert (run().minutes(), run(again=True).minutes(), run(full=True).minutes()) == (2, 3, 6)
    assert [kept for _, _, kept in outcomes(run())] == [True, False, False]
    assert measured.names == list(FAKES)


def test_a_broken_file_is_no_table(run, measured):
    list(run().results())
    run().folder.table("second").write_text('{"status": "do')
    run().folder.table("third").write_text('{"status": "done"}')
    assert [kept for _, _, kept in outcomes(run())] == [True, False, False]
    assert measured.names == [*FAKES, "second", "third"]


def test_a_failing_table_does_not_stop_the_others_and_is_tried_again(run, measured):
    measured.failing = {"second"}
    assert [status for _, status, _ in outcomes(run())] == ["done", "failed", "done"]
    assert run().folder.entry("second")["reason"] == "second ran out of luck"
    measured.failing = set()
    assert outcomes(run()) == [("first", "done", True), ("second", "done", False), ("third", "done", True)]


def test_tables_without_their_data_are_skipped_and_say_why(run, measured, tmp_path):
    tables = {"first": FAKES["first"], "lacking": table("lacking", DataFile("cifar10/test.npz"))}
    assert run(tables).minutes() == 1
    assert outcomes(run(tables)) == [("first", "done", False), ("lacking", "skipped", False)]
    reason = run(tables).folder.entry("lacking")["reason"]
    assert "test.npz does not exist; --data names" in reason
    (tmp_path / "cifar10").mkdir()
    (tmp_path / "cifar10" / "test.npz").touch()
    assert outcomes(run(tables)) == [("first", "done", True), ("lacking", "done", False)]
    assert measured.names == ["first", "lacking"]


def test_stored_results_are_called_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored = Stored("results.json")
    assert "run this in the repository" in str(stored.missing(tmp_path))
    (tmp_path / "results.json").write_text(json.dumps({"commit": "0123456789abcdef"}))
    assert stored.missing(tmp_path) is None
    fake = table("from results", stored)._replace(full_needs=())
    monkeypatch.setitem(TABLES, "stored", fake)
    entry = {**reproduce("stored", False, tmp_path), "status": "done"}
    assert entry["stored"] == [{"file": "results.json", "commit": "0123456789abcdef"}]
    assert ("stored", "results.json, found at commit 0123456789; --full finds it anew") in list(circumstances(entry))
    assert status(entry) == "done, from stored results"
    assert reproduce("stored", True, tmp_path)["stored"] == []


def test_stored_tasks_name_their_own_commits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tasks = {"a": {"commit": "1" * 40}, "b": {"commit": "2" * 40}, "c": {"commit": "1" * 40}}
    (tmp_path / "results.json").write_text(json.dumps({"commit": "2" * 40, "tasks": tasks}))
    origin = Stored("results.json").origin()
    assert origin == {
        "file": "results.json",
        "commit": "2" * 40,
        "tasks": {"a": "1" * 40, "b": "2" * 40, "c": "1" * 40},
    }
    assert commits(origin) == f"{'1' * 10} (a, c), {'2' * 10} (b)"


def test_needs_name_what_is_missing_and_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").touch()
    assert missing((Package("json", ""), LocalFile("*.md", "")), tmp_path) is None
    reason = missing((Package("no_such_package", "install it"), LocalFile("build/*-x", "make x")), tmp_path)
    assert reason == "package no_such_package is not installed; install it; build/*-x does not exist; make x"
    wanted = Table("p", "w", lambda *_: {}, Minutes(1, 1), (DataFile("a"),), (DataFile("b"),))
    assert [need.name for full in (False, True) for need in wanted.wants(full)] == ["a", "b"]


def test_selections_keep_the_order_and_refuse_other_names():
    assert list(chosen(FAKES, ["third", "first"])) == ["first", "third"]
    with pytest.raises(MisuseError, match="there is no table `fourth`"):
        chosen(FAKES, ["first", "fourth"])


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ('print(\'{"error": {"message": "no such file"}}\'); raise SystemExit(1)', "no such file"),
        ("import os; os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("import time; time.sleep(60)", "took longer than 0 minutes"),
        ("raise SystemExit('out of memory')", "out of memory"),
        ("pass", "printed no result"),
    ],
)
def test_a_process_that_fails_says_why(program, reason):
    with pytest.raises(TacitError, match=reason):
        answer(["-c", program], 5 if "sleep" not in program else 0.5)


def test_a_process_answers_with_its_last_line():
    assert answer(["-c", "print('warning'); print('{\"rows\": []}')"], 20) == {"rows": []}


def test_ratios_are_ours_over_the_papers():
    assert [ratio(line) for line in ROWS] == [0.5, None]
    assert [quotient(value) for value in (0.5, None, 0.00123, 12.345)] == ["0.50", "-", "0.0012", "12.35"]
    assert (lasting(61), lasting(None), lasting(2.34)) == ("1 min 1 s", "-", "2.3 s")
    assert (short("0123456789abcdef-dirty"), short(None)) == ("0123456789-dirty", "unknown")


def circle(_content):
    figure, (axis,) = figures.panels(1, 1)
    figures.bars(axis, ["a", "b"], {"one": [1, 2], "two": [2, 1]}, "MB")
    return figure


class Tags(HTMLParser):
    """Every identifier and address of a page."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.addresses = [], []
        self.feed(page)

    def handle_starttag(self, _tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in {"src", "href", "xlink:href"}:
                self.addresses.append(value)


def test_documents_have_every_table_with_numbers_conditions_and_figures(run, measured):
    tables = {**FAKES, "drawn": table("drawn", figure=circle), "other": table("other", DataFile("nowhere"))}
    measured.failing = {"second"}
    folder = run(tables).folder
    folder.figure("drawn").parent.mkdir(parents=True)
    figures.write(circle({}), folder.figure("drawn"))
    list(run({name: tables[name] for name in ("first", "second", "drawn", "other")}).results())
    found = document(folder, tables, tables)
    publish(folder, found)
    assert json.loads((folder.path / "reproduction.json").read_text()) == found
    counts = {"done": 2, "failed": 1, "skipped": 1, "pending": 1}
    assert found["summary"] == {"tables": 5, **counts, "seconds": 3.0}
    entries = {entry["table"]: entry for entry in found["tables"]}
    assert entries["first"]["rows"] == [{**ROWS[0], "ratio": 0.5}, {**ROWS[1], "ratio": None}]
    assert {"command", "seed", "commit", "version", "protocol", "machine", "date", "seconds", "source"} <= entries[
        "first"
    ].keys()
    text, page = ((folder.path / f"reproduction.{kind}").read_text() for kind in ("md", "html"))
    assert "| bytes \\| all | 4 | 2 | MB | 0.50 |" in text
    assert "| <bars> | - | 3 | bits | - |" in text
    assert "![drawn](figures/drawn.svg)" in text
    assert '<td>bytes | all</td><td class="number">4</td><td class="number">2</td><td>MB</td>' in page
    assert "&lt;bars&gt;" in page
    for form in (text, page):
        assert "second ran out of luck" in form
        assert "nowhere does not exist" in form
        assert "tacit reproduce first" in form
        assert "5 tables: 2 done, 1 failed, 1 skipped, 1 pending" in form
    tags = Tags(page)
    assert len(tags.ids) == len(set(tags.ids))
    assert {"first", "drawn", "other"} <= set(tags.ids)
    assert all(address.startswith("#") and address[1:] in tags.ids for address in tags.addresses)
    assert page.count("<svg") == 1


def test_figures_in_a_page_are_elements_of_their_own():
    svg = '<?xml version="1.0"?>\n<svg xmlns:xlink="x"><metadata>m</metadata><path id="p"/><use xlink:href="#p"/>'
    element = inlined(svg + '<g clip-path="url(#p)"/></svg>', "name")
    assert element.startswith("<svg") and "metadata" not in element
    assert ET.fromstring(element)[0].get("id") == "name-p"
    assert re.findall(r"#[\w-]+", element) == ["#name-p", "#name-p"]


def test_every_table_says_what_it_needs_and_how_long_it_takes(tmp_path):
    tables = listing(tmp_path)
    assert tables.keys() == TABLES.keys()
    assert all(0 < entry["minutes"]["quick"] <= entry["minutes"]["full"] for entry in tables.values())
    assert sum(entry["minutes"]["quick"] for entry in tables.values()) < 90
    assert tables["ufo-table5"]["needs"] == ["cifar10/cifar10_test.npz"]
    assert "does not exist" in tables["ufo-table5"]["missing"]
    assert tables["gala-operations"]["missing"] is None
    assert [name for name, entry in tables.items() if not entry["source"] or not entry["what"]] == []
