"""`tacit report`: which files it reads, and what it says of those that it cannot."""

import json
from copy import deepcopy
from random import Random

import pytest
from conftest import ASSETS
from report_files import KINDS, MEASURED, PAPER, RUN, Page, made_of, measured_with, planner, session, setting, write
from tacit.cli import main
from tacit.errors import MisuseError
from tacit.report.html.page import page, title_of
from tacit.report.html.reading import read

RESULTS = ASSETS.parents[2] / "bench" / "results"


def refused(capsys, arguments):
    """The error in one line."""
    with pytest.raises(SystemExit) as done:
        main(["report", *map(str, arguments)])
    assert done.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    return error


def test_settings_of_the_planner_are_ranked_and_held_against_the_best(tmp_path):
    summary, table, *_ = read([write(tmp_path, "planner", {"mnist": {"wan": MEASURED}})])
    assert summary.rows == (("mnist", "wan", 0.25, "ferret", 0.5, 0.5),)
    assert [row[:4] for row in table.rows] == [
        ("planned", 0.25, 0.3125, 1.25),
        ("ferret", 0.5, 0.5, 1.0),
        ("plain", 1.0, 0.75, 0.75),
    ]


def test_sessions_by_turns_say_which_setting_is_best(tmp_path):
    duelled = {**MEASURED, "best_other": "plain", "over_best": 0.75, "duels": {"rounds": 9}}
    summary, *_ = read([write(tmp_path, "planner", {"mnist": {"wan": duelled}})])
    assert summary.rows == (("mnist", "wan", 0.25, "plain", 1.0, 0.75),)


def test_language_models_have_a_table_of_tokens_and_one_of_texts(tmp_path):
    seen = {"title": "A model", "machine": {"processor": "P", "cores": 2}, "commit": "0" * 40, "protocol": 23}
    cost = {"network": None, "per_token": {"seconds": 1.5}, "planned": {"mean_per_token": {"bytes": 8e6, "rounds": 21}}}
    quality = {"positions": 7, "agreement": 0.975, "stochastic_agreement": 0.95}
    quality |= {"perplexity": 2.5, "float_perplexity": 2.4}
    tokens, texts = read([write(tmp_path, "w", {"a": {**seen, "cost": cost}, "b": {**seen, "quality": quality}})])
    assert tokens.rows == (("A model", "loopback", 8e6, 21, 1.5),)
    assert texts.rows == (("A model", 7, 0.975, 0.95, 2.5, 2.4),)


def test_a_log_of_a_server(tmp_path):
    lines = [{"listening": "127.0.0.1:7000", "pin": "00"}, *(KINDS["server"][0],) * 2]
    items = read([write(tmp_path, "log", "\n".join(map(json.dumps, lines)))])
    assert [item.name for item in items] == ["log 1", "log 2"]
    assert items[0].memory == {"server": 1000}


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*/*.json")), ids=lambda path: path.stem)
def test_results_of_the_repository_have_a_page(path, tmp_path):
    content = json.loads(path.read_text())
    page = Page(made_of([path], tmp_path / "report.html"))
    names = [row["name"] for row in content["layers"]] if isinstance(content.get("layers"), list) else []
    names += [entry["title"] for entry in content.values() if isinstance(entry, dict) and "title" in entry]
    assert all(name in page.said for name in names)
    assert "table" in {tag for tag, _ in page.elements}


def without(*path):
    """A run that lacks a value."""
    content = session()
    place = content
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return content


def with_value(value, *path):
    """A run with another value in it."""
    content = session()
    place = content
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("{}\n{", "is no JSON: line 2"),
        ("[" * 100_000, "is no JSON"),
        ("[1]", "is no object"),
        ({}, "is not what `--json` prints"),
        ({"model": "m.tacit", "inputs": 1, "output": [1]}, "is not what `--json` prints"),
        ({"error": {"kind": "misuse", "message": "no such file"}}, "the report of an error: no such file"),
        ({"listening": "127.0.0.1:7000", "pin": None}, "has no session in it"),
        (without("rounds"), "has no field `rounds`"),
        (without("layers", 3, "bytes", "client_to_server"), "`layers[3].bytes` has no field `client_to_server`"),
        (without("phases", "online"), "`phases` has no field `online`"),
        (with_value("many", "rounds"), "`rounds` is no number"),
        (with_value(True, "rounds"), "`rounds` is no number"),
        (with_value(-1, "layers", 0, "rounds"), "`layers[0].rounds` is negative"),
        (with_value(float("nan"), "seconds"), "`seconds` is too large a number"),
        (with_value(10**400, "seconds"), "`seconds` is too large a number"),
        (with_value("later", "layers", 2, "phase"), "`layers[2].phase` is none of setup, offline, online"),
        (with_value({}, "layers"), "`layers` is no list"),
        (with_value([], "layers", 1, "name"), "`layers[1].name` is no text"),
        (with_value("fast", "network"), "fast"),
        (with_value("\ud800", "network"), "?"),
        (planner({}), "`lenet.lan` has no field `settings`"),
        (planner({"settings": []}), "`lenet.lan.settings` is no object"),
        (planner({"settings": {"plain": setting(1, 1, 1)}}), "`lenet.lan.settings` has no field `planned`"),
        (planner({"settings": {"planned": setting(1, 1, 1)}}), "has no setting but `planned`"),
        (planner(measured_with("plain", seconds="1")), "`lenet.lan.settings.plain.seconds` is no number"),
        (planner(measured_with("plain", predicted=None)), "`lenet.lan.settings.plain.predicted` is no number"),
        (planner(measured_with("planned", bytes=-1)), "`lenet.lan.settings.planned.bytes` is negative"),
        (planner(MEASURED | {"bytes_and_rounds_exact": 1}), "is neither true nor false"),
        ({"mnist": {"wan": MEASURED}, "lenet": []}, "`lenet` is no object"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, capsys, content, words):
    path = write(tmp_path, "run", content)
    error = refused(capsys, [path, "-o", tmp_path / "report.html"])
    assert words in error
    assert not (tmp_path / "report.html").exists()


def test_files_that_cannot_be_read_or_written(tmp_path, capsys):
    path = write(tmp_path, "run", RUN)
    assert "nowhere.json" in refused(capsys, [tmp_path / "nowhere.json", "-o", tmp_path / "report.html"])
    assert "there is no folder" in refused(capsys, [path, "-o", tmp_path / "nowhere" / "report.html"])
    assert "is a folder" in refused(capsys, [path, "-o", tmp_path])
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert "is no text in UTF-8" in refused(capsys, [tmp_path / "binary.json", "-o", tmp_path / "report.html"])
    paper = write(tmp_path, "paper", PAPER)
    assert "is no plan" in refused(capsys, [path, "--plan", paper, "-o", tmp_path / "report.html"])


def test_a_page_is_written_again_and_may_have_a_title(tmp_path, capsys):
    path, output = write(tmp_path, "run", RUN), tmp_path / "report.html"
    assert "<title>Report: small.tacit</title>" in made_of([path], output)
    assert "<title>Night &lt;run&gt;</title>" in made_of([path], output, "--title", "Night <run>")
    assert f"wrote {output}" in capsys.readouterr().out.replace("\n", "")


ODD = (None, 0, -1, 1e17, 1e-300, "", "x" * 300, [], {}, [{}], {"a": 1}, True, [1, [2]], "\ud800<")


def places(content, path=()):
    """The paths of all values."""
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_in_a_file_there_is_a_page_or_an_error(kind, tmp_path):
    random = Random(kind)
    made = 0
    for _ in range(60):
        content = deepcopy(KINDS[kind][0])
        *path, last = random.choice(list(places(content)))
        inner = content
        for key in path:
            inner = inner[key]
        inner[last] = deepcopy(random.choice(ODD))
        try:
            items = read([write(tmp_path, "odd", content)])
        except MisuseError:
            continue
        Page(page(items, None, title_of(items), "test"))
        made += 1
    assert made > 5
