"""`make results`: its steps are commands that exist, and it goes on where it was stopped."""

import json
import sys
from pathlib import Path

import pytest
import results

ROOT = Path(__file__).parents[2]


@pytest.fixture
def steps(monkeypatch, tmp_path):
    """Three steps in a folder of their own, the second of which fails until `mended` exists."""
    say = (sys.executable, "-c", "print('{}')")
    look = (
        sys.executable,
        "-c",
        f"import pathlib, sys; sys.exit(not pathlib.Path({str(tmp_path / 'mended')!r}).exists())",
    )
    made = {
        "first": results.Step("the first", 1, (("made/first.json", ">", *say),)),
        "second": results.Step("the second", 1, (look, ("made/second.json", ">", *say))),
        "third": results.Step("the third", 1, (("made/third.json", ">", *say),)),
    }
    monkeypatch.setattr(results, "STEPS", made)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "commit", lambda: "abc")
    return tmp_path


def names(folder):
    return sorted(path.name for path in (folder / "made").glob("*.json"))


def test_a_step_that_fails_is_tried_again_and_what_is_done_is_kept(steps, capsys):
    state = steps / "state.json"
    assert results.measure(["first", "second", "third"], False, state) == ["second"]
    assert json.loads(state.read_text()) == {"first": "abc", "third": "abc"}
    assert names(steps) == ["first.json", "third.json"]
    (steps / "made/first.json").unlink()
    (steps / "mended").touch()
    assert results.measure(["first", "second", "third"], False, state) == []
    assert names(steps) == ["second.json", "third.json"]
    assert "first is done for this commit" in capsys.readouterr().err


def test_steps_run_in_their_order_however_they_are_named(steps, capsys):
    assert results.measure(["third", "first"], False, steps / "state.json") == []
    said = capsys.readouterr().err
    assert said.index("1 of 2: the first") < said.index("2 of 2: the third")


def test_another_commit_measures_anew(steps, monkeypatch):
    state = steps / "state.json"
    assert results.measure(["first"], False, state) == []
    (steps / "made/first.json").unlink()
    assert results.measure(["first"], True, state) == []
    assert names(steps) == ["first.json"]
    (steps / "made/first.json").unlink()
    monkeypatch.setattr(results, "commit", lambda: "def")
    assert results.measure(["first"], False, state) == []
    assert names(steps) == ["first.json"]


def test_a_command_that_fails_leaves_the_file_that_was_there(steps):
    (steps / "made").mkdir()
    (steps / "made/first.json").write_text("old")
    assert not results.run(("made/first.json", ">", sys.executable, "-c", "print('new'); raise SystemExit(3)"))
    assert (steps / "made/first.json").read_text() == "old"


def test_steps_name_scripts_and_files_of_the_repository():
    commands = [command for step in results.STEPS.values() for command in step.commands] + list(results.TABLES)
    scripts = [part for command in commands for part in command if part.startswith("scripts/")]
    assert len(scripts) > 8
    assert all((ROOT / script).exists() for script in scripts)
    kept = [command[0] for command in commands if ">" in command and command[0].startswith("bench/results/")]
    assert kept
    assert all((ROOT / path).exists() for path in kept)
