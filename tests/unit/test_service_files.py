"""Folders and service files that `tacit serve` reads."""

import json
from pathlib import Path

import pytest
from tacit.cli.from_file import filled
from tacit.cli.serve import ServeOptions
from tacit.errors import MisuseError
from tacit.session.models import budget_of, read

FILE = """\
listen = "127.0.0.1:7000"
sessions = 4
ledger = "state/ledger"
drain = 5

[[model]]
file = "mnist.tacit"
reveal = "label"
budget = { total = 100, "per-day" = 20 }

[[model]]
file = "more/other.tacit"
name = "other"
batch = 4
offline = 0
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "service.toml"
    path.write_text(text)
    return path


def test_a_service_file_says_everything(tmp_path):
    service = read(written(tmp_path, FILE))
    first, second = service.models
    assert first.content() == {
        "path": str(tmp_path / "mnist.tacit"), "reveal": "label", "budget": {"total": 100, "per_day": 20},
    }  # fmt: skip
    assert second.content() == {
        "path": str(tmp_path / "more" / "other.tacit"), "name": "other", "batch": 4, "offline": 0,
    }  # fmt: skip
    options = filled(ServeOptions(sessions=9), service.options, service.lines, tmp_path)
    assert (options.listen, options.sessions, options.drain) == ("127.0.0.1:7000", 9, 5)
    assert options.ledger == str(tmp_path / "state" / "ledger")


def test_a_ledger_may_be_a_database(tmp_path):
    url = "postgresql://tacit@localhost:5433/budgets?sslrootcert=ca.pem"
    service = read(written(tmp_path, FILE.replace("state/ledger", url)))
    options = filled(ServeOptions(), service.options, service.lines, tmp_path)
    assert options.ledger == url
    assert json.loads(options.listening().options_json())["ledger"] == url


def test_options_are_called_as_on_the_command_line(tmp_path):
    service = read(written(tmp_path, FILE.replace("sessions = 4", "pass = 8")))
    options = filled(ServeOptions(), service.options, service.lines, tmp_path)
    assert json.loads(options.listening().options_json())["pass"] == 8
    service = read(written(tmp_path, FILE.replace("sessions = 4", "pass-inputs = 8")))
    with pytest.raises(MisuseError, match="no option `pass-inputs`"):
        filled(ServeOptions(), service.options, service.lines, tmp_path)


def test_a_folder_calls_models_by_their_files(tmp_path):
    for name in ("b", "a"):
        (tmp_path / f"{name}.tacit").touch()
    assert [served.options for served in read(tmp_path).models] == [{"name": "a"}, {"name": "b"}]
    (tmp_path / "empty").mkdir()
    with pytest.raises(MisuseError, match="has no"):
        read(tmp_path / "empty")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("sessions = 4", "sessions = 0"), r"line 2: `sessions` is at least 1, not 0"),
        (("sessions = 4", 'sessions = "4"'), r"line 2: `sessions` is a whole number, not '4'"),
        (("drain = 5", "drain = true"), r"line 4: `drain` is a number, not True"),
        (("drain = 5", "drians = 5"), r"line 4: there is no option `drians`"),
        (("drain = 5", 'reveal = "all"'), r"line 4: `reveal` what is revealed is one of output, label"),
        (('reveal = "label"', 'reveal = "all"'), r"line 8: `reveal` cannot be 'all'"),
        (("batch = 4", "batch = 0"), r"line 14: `batch` cannot be 0"),
        (("offline = 0", "ofline = 0"), r"line 15: a model has no `ofline`"),
        (("total = 100", "totals = 100"), r"line 9: a budget has total, per-day, per-minute"),
        (('file = "mnist.tacit"\n', ""), r"line 6: a model needs `file`"),
        (("sessions = 4", "sessions = "), r"\(at line 2, column 12\)"),
        ((FILE[FILE.index("[[") :], ""), r"has no \[\[model\]\]"),
    ],
)
def test_what_cannot_be_is_named_with_its_line(tmp_path, change, why):
    path = written(tmp_path, FILE.replace(*change))
    with pytest.raises(MisuseError, match=why):
        service = read(path)
        filled(ServeOptions(), service.options, service.lines, tmp_path)


def test_budgets_of_the_command_line():
    assert budget_of("per-day=5, total=7") == {"per_day": 5, "total": 7}
    for text in ("", "total", "total=-1", "total=x", "weekly=3", "total=1,total=2", "total=²"):
        with pytest.raises(MisuseError, match="--budget is total=N"):
            budget_of(text)
