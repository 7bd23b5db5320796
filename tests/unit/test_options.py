"""Options of the command line and of sessions."""

import json
from pathlib import Path

import pytest
import typer
from tacit.cli import main
from tacit.cli.options import class_names, interval
from tacit.errors import MisuseError
from tacit.session.client import Client
from tacit.session.network import Network, parse
from tacit.session.server import Listening


def test_networks():
    assert parse("20ms,100") == pytest.approx(Network(0.02, 100e6))
    assert parse("0.5,1000Mbps") == pytest.approx(Network(0.0005, 1000e6))
    assert parse("lan") == pytest.approx(Network(0.0003, 3e9))
    assert parse("wan") == pytest.approx(Network(0.04, 400e6))


@pytest.mark.parametrize("text", ["", "fast", "20ms", "20ms,0", "-1,10", "nan,10", "1,inf", "1,2,3", "1e9,1"])
def test_networks_that_are_none(text):
    with pytest.raises(MisuseError, match="RTTms,Mbps"):
        parse(text)


def test_time_on_the_wire():
    cost = {"bytes": {"client_to_server": 1_000_000, "server_to_client": 250_000}, "rounds": 4}
    assert Network(0.01, 100e6).seconds(cost) == pytest.approx(0.1 + 0.02)


def test_intervals():
    assert interval("-1,2.5") == (-1, 2.5)
    for text in ("1", "a,b", "1,1", "2,1", "0,inf", "nan,1"):
        with pytest.raises(typer.BadParameter):
            interval(text)


@pytest.mark.parametrize("how", [{}, {"pin": "p", "plaintext": True}, {"ca": Path("a"), "pin": "p"}])
def test_a_client_knows_its_server_in_one_way(how):
    with pytest.raises(MisuseError, match="exactly one"):
        Client("127.0.0.1:1", **how)


def test_certificates_come_with_keys():
    with pytest.raises(MisuseError, match="belong together"):
        Client("127.0.0.1:1", pin="p", certificate=Path("c"))
    with pytest.raises(MisuseError, match="belong together"):
        Listening("127.0.0.1:0", key=Path("k"))
    with pytest.raises(MisuseError, match="excludes"):
        Listening("127.0.0.1:0", plaintext=True, client_ca=Path("a"))


def test_a_budget_is_at_least_one_input():
    with pytest.raises(MisuseError, match="at least 1"):
        Listening("127.0.0.1:0", max_inputs=0)
    assert json.loads(Listening("127.0.0.1:0", max_inputs=7).options_json())["most_inputs"] == 7
    assert "most_inputs" not in json.loads(Listening("127.0.0.1:0").options_json())


def test_options_travel_as_json():
    client = json.loads(Client("127.0.0.1:1", ca=Path("a.pem"), timeout_seconds=3).options_json())
    timeouts = {"connect": 10.0, "idle": 3, "session": 3600.0}
    assert client == {"ca": "a.pem", "plaintext": False, "timeouts": timeouts}
    assert json.loads(Listening("127.0.0.1:0", plaintext=True).options_json())["tls"] is None
    listening = json.loads(Listening("127.0.0.1:0", client_ca=Path("a.pem"), threads=2, once=True).options_json())
    assert listening["tls"] == {"client_ca": "a.pem"}
    assert (listening["reveal"], listening["threads"], listening["once"]) == ("output", 2, True)


def test_class_names_by_line_and_by_column(tmp_path):
    assert class_names(None) == ()
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    assert class_names(tmp_path / "names.txt") == ("cat", "dog")
    (tmp_path / "names.tsv").write_text("class_index\tname\twnid\n0\tcat, tame\ta\n1\tdog\tb\n")
    assert class_names(tmp_path / "names.tsv") == ("cat, tame", "dog")


@pytest.mark.parametrize("content", ["", "wnid\na\n", "name\twnid\ncat\n", "class_index\tname\n1\tcat\n0\tdog\n"])
def test_tables_without_names(tmp_path, content):
    (tmp_path / "names.tsv").write_text(content)
    with pytest.raises(MisuseError, match=r"names\.tsv"):
        class_names(tmp_path / "names.tsv")


def test_names_that_are_no_text(tmp_path):
    (tmp_path / "names.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(MisuseError, match="UTF-8"):
        class_names(tmp_path / "names.txt")
    with pytest.raises(MisuseError, match="does not exist"):
        class_names(tmp_path / "absent.txt")


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), -1.0, 0.0, 1e300])
@pytest.mark.parametrize("name", ["timeout_seconds", "connect_seconds", "session_seconds"])
def test_limits_that_are_none_are_named(name, seconds):
    with pytest.raises(MisuseError, match=f"`{name}` is 0.001 to 1,000,000,000 seconds"):
        Client("127.0.0.1:1", plaintext=True, **{name: seconds}).options_json()


@pytest.mark.parametrize("value", ["inf", "-inf", "nan", "-1", "0", "1e300"])
@pytest.mark.parametrize("command", ["predict", "serve", "run", "evaluate"])
def test_the_command_line_names_a_timeout_that_is_none(command, value, capsys):
    arguments = {"predict": ["--server", "h:1"], "serve": ["--listen", "h:1", "m"], "run": ["m", "x"]}
    given = arguments.get(command, ["m", "x"])
    with pytest.raises(SystemExit) as ended:
        main([command, *given, "--timeout", value])
    assert ended.value.code == 2
    assert "'--timeout'" in capsys.readouterr().err
