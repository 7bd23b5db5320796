"""Jobs of many inputs over real sessions: servers and jobs that are killed, results that are kept once."""

import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import tacit as product
from conftest import ASSETS
from service.fleets import DoorProcess
from tacit import Client, Model
from tacit.errors import RefusedError

SECONDS = 60
ROWS = 40


@pytest.fixture(scope="module")
def digits():
    """Forty inputs and their labels."""
    with np.load(ASSETS / "mnist_digits.npz") as content:
        return np.tile(content["x"], (ROWS // 10, 1, 1, 1)), np.tile(content["y"], ROWS // 10)


@contextmanager
def serving(model, folder, listen="127.0.0.1:0", *arguments):
    """A server process with a key that stays, and the line that says where it listens."""
    command = [sys.executable, "-m", "tacit", "serve", str(model), "--listen", listen, "--json", *arguments]
    lines = Path(folder) / f"server-{time.monotonic_ns()}.json"
    with lines.open("w") as out:
        process = subprocess.Popen([*command, "--key-file", str(Path(folder) / "key")], stdout=out)
    try:
        until = time.monotonic() + SECONDS
        while not lines.read_text().endswith("\n"):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        yield process, json.loads(lines.read_text().splitlines()[0])
    finally:
        process.kill()
        process.wait()


def test_a_model_file_is_served_here(compiled, digits):
    x, y = digits
    path = compiled("exact")
    mapped = product.map_private(path, x, inputs_per_session=8, workers=2)
    assert np.array_equal(mapped.outputs, Model(path).simulate(x))
    assert (mapped.classes == y).all()
    assert (mapped.report["sessions"], mapped.report["inputs"], mapped.failed) == (5, ROWS, {})
    assert np.array_equal(mapped.logits, mapped.outputs * Model(path).output_scale)


def test_a_server_that_is_killed_costs_no_result(compiled, digits, tmp_path):
    x, _ = digits
    path, results = compiled("exact"), tmp_path / "results.jsonl"
    with serving(path, tmp_path) as (process, line):
        started = []

        def again():
            process.kill()
            process.wait()
            server = serving(path, tmp_path, line["listening"])
            server.__enter__()
            started.append(server)

        def progress(done, total):
            assert total == ROWS
            if done >= 10 and not replacing.ident:
                replacing.start()

        replacing = Thread(target=again)
        client = Client(line["listening"], pin=line["pin"], timeout_seconds=5)
        try:
            mapped = product.map_private(
                client, x, results=results, inputs_per_session=2, workers=2, tries=20, progress=progress
            )
            replacing.join()
        finally:
            for server in started:
                server.__exit__(None, None, None)
    assert mapped.failed == {}
    assert mapped.report["retries"] >= 1
    assert np.array_equal(mapped.outputs, Model(path).simulate(x))
    names = [json.loads(each)["id"] for each in results.read_text().splitlines()[1:]]
    assert sorted(names, key=int) == [str(at) for at in range(ROWS)]


def test_a_fleet_answers_though_one_of_its_servers_is_killed(compiled, digits, tmp_path):
    x, _ = digits
    path = compiled("exact")
    door, servers = DoorProcess(tmp_path), []
    try:
        servers += [door.serve(path, name) for name in ("first", "second")]
        killed = []

        def progress(done, _):
            if done >= 8 and not killed:
                killed.append(servers[0].process.kill())

        client = Client(door.address, pin=door.pin, timeout_seconds=10, retry_for=30)
        mapped = product.map_private(client, x, inputs_per_session=2, workers=3, progress=progress)
    finally:
        for server in servers:
            server.close()
        door.close()
    assert killed and mapped.failed == {}
    assert np.array_equal(mapped.outputs, Model(path).simulate(x))


JOB = """
import sys
import numpy as np
import tacit
x = np.load(sys.argv[3])
client = tacit.Client(sys.argv[1], pin=sys.argv[2])
tacit.map_private(client, x, results=sys.argv[4], inputs_per_session=1, workers=1)
"""


def test_a_job_that_is_killed_goes_on(compiled, digits, tmp_path):
    x, _ = digits
    path, results = compiled("exact"), tmp_path / "results.jsonl"
    np.save(tmp_path / "x.npy", x)
    with serving(path, tmp_path) as (_, line):
        arguments = [line["listening"], line["pin"], str(tmp_path / "x.npy"), str(results)]
        job = subprocess.Popen([sys.executable, "-c", JOB, *arguments])
        until = time.monotonic() + SECONDS
        while not results.exists() or results.read_bytes().count(b"\n") < 4:
            assert job.poll() is None and time.monotonic() < until
            time.sleep(0.005)
        job.send_signal(signal.SIGKILL)
        job.wait()
        client = Client(line["listening"], pin=line["pin"])
        mapped = product.map_private(client, x, results=results, workers=2, pool="processes")
    assert 3 <= mapped.report["resumed"] < ROWS
    assert np.array_equal(mapped.outputs, Model(path).simulate(x))
    names = [json.loads(each)["id"] for each in results.read_text().splitlines()[1:]]
    assert sorted(names, key=int) == [str(at) for at in range(ROWS)]


def test_a_server_that_refuses_the_client_ends_the_job(tacit, compiled, digits, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(tacit("token", "ward-3", "--json").json["line"] + "\n")
    with (
        serving(compiled("exact"), tmp_path, "127.0.0.1:0", "--tokens", str(tokens)) as (_, line),
        pytest.raises(RefusedError, match="token"),
    ):
        product.map_private(Client(line["listening"], pin=line["pin"]), digits[0])


def test_evaluations_go_to_a_server_and_go_on(tacit, compiled, tmp_path):
    path, results = compiled("exact"), tmp_path / "results.jsonl"
    arguments = ["evaluate", path, ASSETS / "mnist_digits.npz", "--mode", "private", "--results", results]
    with serving(path, tmp_path) as (_, line):
        where = ["--server", line["listening"], "--pin", line["pin"], "--inputs", 3]
        first = tacit(*arguments, *where, "--limit", 5, "--json").json
        assert (first["top1"], first["inputs"], first["sessions"], first["max_error"]) == (1, 5, 2, 0)
        whole = tacit(*arguments, *where, "--json").json
    assert (whole["top1"], whole["inputs"], whole["resumed"], whole["agreement"]) == (1, 10, 5, 1)
    assert whole["output"] == list(range(10))
    lost = tacit(*arguments, "--json")
    assert (lost.code, "--server HOST:PORT" in lost.err) == (1, True)
