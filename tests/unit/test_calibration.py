"""What is made of the measurements of a machine."""

import json
import sys

import pytest
from tacit import _core
from tacit.errors import TacitError
from tacit.measure import calibration


def pretending(tmp_path, monkeypatch, script):
    """Measures with `script` in place of Python."""
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def test_a_disturbed_turn_does_not_count(tmp_path, monkeypatch):
    count = len(json.loads(_core.wanted()))
    turns = [[{"setup": turn + place, "run": 10 * turn} for place in range(count)] for turn in (1, 500, 2)]
    lines = tmp_path / "lines"
    lines.write_text("".join(json.dumps(line) + "\n" for turn in turns for line in turn))
    pretending(tmp_path, monkeypatch, f"cat {lines}")
    told = []
    measured = calibration.measurements(3, lambda done, of: told.append((done, of)))
    assert measured == [{"setup": 2 + place, "run": 20} for place in range(count)]
    assert told[-1] == (3 * count, 3 * count)


def test_measuring_that_fails_says_why(tmp_path, monkeypatch):
    pretending(tmp_path, monkeypatch, 'echo "error: no loopback" >&2; exit 1')
    with pytest.raises(TacitError, match=r"^no loopback$"):
        calibration.measurements(1)


def test_measurements_are_one_for_each_operation():
    with pytest.raises(TacitError, match="1 measurements of"):
        _core.calibrated(json.dumps([{"setup": 0.1, "run": 0.1}]))
