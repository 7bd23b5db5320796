"""`tacit budget` and `tacit token`."""

import hashlib
import json
import re
import sqlite3

import pytest
from tacit.cli import main
from tacit.report import terminal

WARD = ("--client", "token:ward-3", "--model", "mnist")


@pytest.fixture
def run(capsys):
    """Run `tacit` in this process: its exit code, standard output and standard error."""

    def command(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return command


@pytest.fixture
def budget(run, tmp_path):
    """Run `tacit budget` on one ledger; the JSON object that it prints."""

    def command(name, *arguments):
        code, out, err = run("budget", name, "--ledger", tmp_path / "b.db", *arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return command


def use(path, client, model, count, when=0):
    """What a server that charged a client would have written."""
    with sqlite3.connect(path) as ledger:
        ledger.execute("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?)", (client, model, count, count, count, when))
    ledger.close()


def test_limits_are_set_shown_and_taken_back(budget):
    limits = {"total": 100, "per_day": 20, "per_minute": None}
    set_now = budget("set", *WARD, "--total", 100, "--per-day", 20)
    assert set_now == {"client": "token:ward-3", "model": "mnist", "budget": limits}
    row = {"client": "token:ward-3", "model": "mnist", "budget": limits, "used": 0, "today": 0, "last_use": None}
    assert budget("show")["rows"] == [row]
    budget("set", *WARD, "--per-minute", 0)
    assert budget("show")["rows"][0]["budget"] == {"total": None, "per_day": None, "per_minute": 0}
    budget("set", *WARD, "--unlimited")
    assert set(budget("show")["rows"][0]["budget"].values()) == {None}
    assert budget("set", *WARD, "--default")["budget"] is None
    assert budget("show")["rows"] == []


def test_usage_is_shown_and_reset_by_client_and_model(budget, run, tmp_path, monkeypatch):
    budget("set", "--client", "cert:CN=ward 3", "--model", "mnist", "--total", 50)
    path = tmp_path / "b.db"
    use(path, "cert:CN=ward 3", "mnist", 50)
    use(path, "token:ward-3", "mnist", 7)
    use(path, "token:ward-3", "resnet", 8)
    use(path, "addr:2001:db8::/64", "resnet", 9, 2**63 - 1)
    monkeypatch.setattr(terminal.console, "width", 100)
    assert [row["used"] for row in budget("show", "--client", "token:ward-3")["rows"]] == [7, 8]
    assert [row["client"] for row in budget("show", *WARD)["rows"]] == ["token:ward-3"]
    code, out, _ = run("budget", "show", "--ledger", path)
    assert code == 0
    for expected in ("50 of 50", "7 of default", "0 of any", "1970-01-01 00:00", "beyond the calendar"):
        assert expected in " ".join(out.split()), out
    assert budget("reset", *WARD)["reset"] == 1
    assert budget("reset", "--model", "resnet")["reset"] == 2
    (left,) = budget("show")["rows"]
    assert (left["client"], left["used"]) == ("cert:CN=ward 3", 50)
    assert budget("reset", "--all")["reset"] == 1
    assert budget("show")["rows"][0]["used"] == 0


def test_a_client_is_named_as_the_ledger_does(budget):
    changed = budget("set", "--client", "addr:2001:db8::5", "--model", "mnist", "--total", 1)
    assert changed["client"] == budget("show")["rows"][0]["client"] == "addr:2001:db8::/64"


def test_people_read_what_happened(run, tmp_path):
    path = tmp_path / "b.db"
    limits = "limits of token:ward-3 for mnist"
    spoken = {
        ("--total", 100, "--per-day", 20): "100 inputs in all, 20 inputs a day",
        ("--unlimited",): "none",
        ("--default",): "the server's defaults",
    }
    for options, expected in spoken.items():
        assert run("budget", "set", "--ledger", path, *WARD, *options) == (0, f"{limits}: {expected}\n", "")
    assert "nothing to reset" in run("budget", "reset", "--ledger", path, "--all")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["set", *WARD], 1, "say what holds"),
        (["set", *WARD, "--total", "1", "--unlimited"], 1, "say what holds"),
        (["set", *WARD, "--total", "-1"], 2, "--total"),
        (["set", "--client", "ward-3", "--model", "mnist", "--total", "1"], 1, "`ward-3` names no client"),
        (["set", "--client", "token:ward-3", "--total", "1"], 2, "--model"),
        (["reset"], 1, "say whose budget"),
        (["reset", "--all", *WARD], 1, "say whose budget"),
        (["reset", "--all"], 1, "does not exist"),
        (["show"], 1, "does not exist"),
    ],
)
def test_mistakes_are_told_and_write_nothing(run, tmp_path, arguments, code, message):
    name, *options = arguments
    path = tmp_path / "b.db"
    ended, out, err = run("budget", name, "--ledger", path, *options)
    assert (ended, out) == (code, "")
    assert message in err
    assert not path.exists()


def test_files_that_are_no_ledger_are_refused(run, tmp_path):
    path = tmp_path / "b.db"
    path.write_text("no database, but long enough to be taken for one" * 40)
    assert "is damaged" in run("budget", "show", "--ledger", path)[2]
    code, out, _ = run("budget", "show", "--ledger", tmp_path, "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (1, "system")


def test_a_token_is_shown_once_with_the_line_of_its_hash(run):
    code, out, _ = run("token", "ward-3", "--reveal", "label", "--json")
    made = json.loads(out)
    assert code == 0
    assert re.fullmatch("[0-9a-f]{64}", made["token"])
    digest = hashlib.sha256(made["token"].encode()).hexdigest()
    assert made["line"] == f"ward-3:{digest}:reveal=label"
    _, out, _ = run("token", "ward-3")
    _, token, _, line = out.splitlines()
    assert line == f"ward-3:{hashlib.sha256(token.encode()).hexdigest()}"
    assert token != made["token"]
    assert "cannot name a token" in run("token", "ward 3")[2]
    assert run("token", "ward-3", "--reveal", "all")[0] == 2


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://tacit:pass%23word@db.example.org/budgets", "add ?sslrootcert=FILE"),
        ("postgresql://tacit:pass%23word@localhost/budgets?nothing=1", "cannot be read"),
        ("postgresql://tacit:pass%23word@127.0.0.1:1/budgets", "cannot use the ledger postgresql://tacit@127.0.0.1:1/"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_without_its_password(run, url, message):
    code, out, err = run("budget", "show", "--ledger", url)
    assert (code, out) == (1, "")
    assert message in " ".join(err.split())
    assert not re.search("pass(#|%23)word", err)
