"""Stored results name a commit and a version of the protocol, and tables say which rows are older than the code."""

import json
import re

import pytest
import result_age
import result_tables
from tacit import _core
from works import TOKENS

MACHINE = {"processor": "P", "cores": 2}
NOW = result_age.spoken()


def test_the_version_of_the_sources_is_that_of_the_core():
    assert result_age.spoken() == _core.PROTOCOL


def test_a_source_without_a_version_is_refused(tmp_path):
    source = tmp_path / result_age.SOURCE
    source.parent.mkdir(parents=True)
    source.write_text("pub const OTHER: u32 = 3;\n")
    with pytest.raises(SystemExit, match="names no PROTOCOL"):
        result_age.spoken(tmp_path)


def test_rows_of_another_protocol_are_called_older():
    assert result_age.age({"commit": "a", "protocol": 21}, 21) == "protocol 21"
    assert result_age.age({"commit": "a", "protocol": 5}, 21) == "protocol 5, older than protocol 21 of this code"
    for protocol in (None, "5", 0, 22):
        with pytest.raises(SystemExit, match="the code speaks 21"):
            result_age.age({"commit": "a", "protocol": protocol}, 21)


def test_versions_of_one_kind_of_sessions_leave_other_results_as_they_are(monkeypatch):
    monkeypatch.setattr(result_age, "NARROW", {22: "some", 23: "others"})
    said = "protocol 21, the same bytes in protocol 23 of this code"
    assert result_age.age({"commit": "a", "protocol": 21}, 23) == said
    assert result_age.age({"commit": "a", "protocol": 22, "kind": "some"}, 23).startswith("protocol 22, the same")
    for older in ({"protocol": 21, "kind": "some"}, {"protocol": 22, "kind": "others"}, {"protocol": 20}):
        assert "older than protocol 23" in result_age.age({"commit": "a", **older}, 23)


def test_tokens_beside_peers_are_results_of_language_models():
    assert {work.kind for work in TOKENS.values()} == {result_age.LANGUAGE_MODELS}


def test_results_of_floats_have_no_age():
    floats = {"commit": "a", "protocol": "none"}
    assert result_age.age(floats, 21) == "of float models, without a protocol"
    assert list(result_age.silent([floats])) == []
    assert list(result_age.silent([{**floats, "protocol": "some"}])) == ["a"]


def test_tables_say_so_below_their_rows():
    entry = {"machine": MACHINE, "commit": "0" * 40, "protocol": NOW}
    assert result_tables.conditions(entry) == f"Measured, P, 2 cores, commit 0000000, protocol {NOW}."
    older = result_tables.conditions({**entry, "protocol": 1})
    assert older.endswith(f"protocol 1, older than protocol {NOW} of this code.")


def test_every_table_of_the_pages_says_which_protocol_it_is_of():
    for page in result_tables.BLOCKS:
        lines = (result_tables.ROOT / page).read_text(encoding="utf-8").splitlines()
        measured = [line for line in lines if re.match(r"Measured.*, commit ", line)]
        assert measured
        for line in measured:
            (protocol,) = re.findall(r", protocol (\d+)[,.]", line)
            said = [f"{what} protocol {NOW} of this code." in line for what in (", older than", ", the same bytes in")]
            assert sum(said) == (int(protocol) < NOW), line


def test_all_files_name_commits_and_protocols():
    assert result_age.problems() == []
    assert all((result_age.RESULTS / name).exists() for name in result_age.UNTOLD)


def test_silent_files_are_named(tmp_path):
    stored = {
        "good.json": {"rows": [{"commit": "a", "protocol": 3}], "stored": [{"file": "f.json", "commit": "d"}]},
        "mute.json": {"rows": [1, 2]},
        "papers/half.json": [{"commit": "b", "protocol": 3}, {"commit": "c"}, {"commit": "c"}],
        "papers/ufo-tradeoff.json": {"points": []},
    }
    for name, content in stored.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    assert result_age.problems(tmp_path) == [
        "mute.json names no commit",
        "papers/half.json: commit c has no protocol beside it",
    ]


def test_the_check_fails_for_silent_files(tmp_path, monkeypatch):
    (tmp_path / "new.json").write_text("{}")
    monkeypatch.setattr("sys.argv", ["result_tables.py", "--check", "--results", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"new\.json names no commit"):
        result_tables.main()
