"""`serve` and `predict`: authentication, faults, and a server that goes on serving."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import ASSETS

DIGITS = ASSETS / "mnist_digits.npz"


@contextmanager
def serving(model, *arguments):
    """A server process and the line that says where it listens."""
    command = [sys.executable, "-m", "tacit", "serve", str(model), "--listen", "127.0.0.1:0", "--json", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def server(compiled):
    """A server that times out after five seconds: its process, address and pin."""
    with serving(compiled("exact"), "--timeout", "5") as (process, line):
        yield process, line["listening"], line["pin"]


def test_clients_without_a_model_file(tacit, server, one_digit):
    _, address, pin = server
    for _ in range(2):
        content = tacit("predict", "--server", address, "--pin", pin, one_digit, "--json").json
        assert (content["output"], content["inputs"]) == ([7], 1)
        assert len(content["logits"][0]) == 10
        assert content["plan"]


def test_clients_are_told_of_inputs_beside_the_range(tacit, server, tmp_path):
    _, address, pin = server
    x = np.zeros((1, 28, 28), np.float32)
    x[0, :7] = 3
    np.save(tmp_path / "x.npy", x)
    done = tacit("predict", "--server", address, "--pin", pin, tmp_path / "x.npy", "--json")
    assert done.json["clipped"] == 0.25
    assert "25.00% of the input's values are outside of 0 to 1" in done.err


def test_both_sides_report_the_same_traffic(tacit, server):
    process, address, pin = server
    mine = tacit("predict", "--server", address, "--pin", pin, DIGITS, "--json").json
    theirs = json.loads(process.stdout.readline())
    assert mine["output"] == list(range(10))
    assert mine["bytes"] == theirs["bytes"]


def test_a_query_budget(tacit, compiled, one_digit):
    with serving(compiled("exact"), "--plaintext", "--max-inputs", "1") as (process, line):
        reach = ("--server", line["listening"], "--plaintext", "--json")
        refused = tacit("predict", *reach, DIGITS)
        assert (refused.code, refused.json["error"]["kind"]) == (1, "refused")
        assert "at most 1 inputs in a session" in refused.json["error"]["message"]
        error = json.loads(process.stdout.readline())["error"]
        assert error["kind"] == "refused"
        assert "at most 1 inputs in a session" in error["message"]
        assert tacit("predict", *reach, one_digit).json["output"] == [7]
        assert json.loads(process.stdout.readline())["end"] == "finished"


def test_an_interrupt_ends_the_server(server):
    process, _, _ = server
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=10) == 0


def test_wrong_pins_are_refused(tacit, server, one_digit):
    _, address, pin = server
    wrong = pin[:-4] + ("0000" if pin[-4:] != "0000" else "1111")
    done = tacit("predict", "--server", address, "--pin", wrong, one_digit, seconds=20)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert tacit("predict", "--server", address, "--pin", pin, one_digit).code == 0


def test_plaintext_to_a_tls_port(tacit, server, one_digit):
    _, address, pin = server
    done = tacit("predict", "--server", address, "--plaintext", "--timeout", 3, one_digit, seconds=20)
    assert done.code == 1
    assert done.err.startswith("error: ")
    assert tacit("predict", "--server", address, "--pin", pin, one_digit).code == 0


@pytest.mark.parametrize("noise", [b"", b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 64])
def test_strangers_do_not_stop_the_server(tacit, server, one_digit, noise):
    _, address, pin = server
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(noise)
    assert tacit("predict", "--server", address, "--pin", pin, one_digit).code == 0


def test_plaintext_on_loopback(tacit, compiled, one_digit):
    with serving(compiled("exact"), "--plaintext") as (_, line):
        assert line["pin"] is None
        content = tacit("predict", "--server", line["listening"], "--plaintext", one_digit, "--json").json
        assert content["output"] == [7]


def test_plaintext_beyond_loopback_is_refused(tacit, compiled):
    done = tacit("serve", compiled("exact"), "--listen", "0.0.0.0:0", "--plaintext", seconds=20)
    assert done.code == 1
    assert "loopback" in done.err


def test_taken_ports(tacit, compiled, server):
    _, address, _ = server
    done = tacit("serve", compiled("exact"), "--listen", address, seconds=20)
    assert done.code == 1
    assert address in done.err


def test_absent_servers(tacit, one_digit):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
        done = tacit("predict", "--server", address, "--pin", "0" * 64, "--timeout", 3, one_digit, seconds=20)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")


def test_servers_that_never_answer(tacit, one_digit):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        done = tacit("predict", "--server", address, "--plaintext", "--timeout", 2, one_digit, seconds=20)
    assert done.code == 1
    assert done.err.startswith("error: ")


def test_inputs_the_model_does_not_take(tacit, server, tmp_path):
    _, address, pin = server
    np.save(tmp_path / "small.npy", np.zeros((1, 27, 28), np.float32))
    done = tacit("predict", "--server", address, "--pin", pin, tmp_path / "small.npy", seconds=20)
    assert done.code == 1
    assert "28" in done.err


@pytest.mark.alone
def test_each_client_is_planned_for_the_link_that_is_measured(tacit, compiled, one_digit, tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path))
    plans = []
    for options in ((), ("--network", "60ms,100")):
        with serving(compiled("exact"), "--plaintext", "--protocols", "measured", *options) as (process, line):
            reach = ("--server", line["listening"], "--plaintext", *options)
            mine = tacit("predict", *reach, one_digit, "--json").json
            theirs = json.loads(process.stdout.readline())
        assert (mine["output"], mine["measured"], theirs["measured"]) == ([7], True, True)
        assert mine["bytes"] == theirs["bytes"]
        assert mine["phases"]["setup"]["bytes"]["server_to_client"] > 12_800
        assert theirs["link"]["round_trip_seconds"] > (0.06 if options else 0)
        plans.append((mine["rounds"], sum(mine["bytes"].values())))
    near, far = plans
    assert far[0] <= near[0]
    # Chains compare in as few rounds near as far, so what the far plan saves may be bytes: over its link it is faster.
    assert far[0] * 0.03 + far[1] * 8 / 100e6 < near[0] * 0.03 + near[1] * 8 / 100e6


def test_a_link_is_measured_by_servers_only(tacit, compiled, one_digit):
    for command in (("plan", compiled()), ("run", compiled(), one_digit)):
        refused = tacit(*command, "--protocols", "measured", "--json")
        assert (refused.code, refused.json["error"]["kind"]) == (1, "misuse")
        assert "for servers" in refused.json["error"]["message"]
