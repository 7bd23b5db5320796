"""What an operator's signals do: a pause loses nothing, a stop drains, a reload goes unnoticed."""

import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from faults.authorities import Authority
from faults.parties import ClientProcess, ServerProcess, ask
from tacit import Model

SESSIONS = 8
SLOW = "300ms,100"
PATIENT = {"timeout_seconds": 60, "connect_seconds": 60, "session_seconds": 600}


def test_a_stop_lets_sessions_end(job):
    """Sessions that run are answered, those that come later are told, and all are in the log."""
    server = job.serve("--plaintext", "--network", SLOW, "--sessions", SESSIONS, "--drain", 60)
    how = {**PATIENT, "network": SLOW}
    with ThreadPoolExecutor(SESSIONS) as pool:
        running = [pool.submit(ask, server.address, job.x, **how) for _ in range(SESSIONS)]
        time.sleep(1.5)
        server.signal(signal.SIGTERM)
        time.sleep(0.2)
        late = ask(server.address, job.x, **how)
        outcomes = [future.result() for future in running]
    assert late["error"]["kind"] == "busy"
    assert "the server is stopping; try again in 10 s" in late["error"]["message"]
    assert all(job.right(outcome) for outcome in outcomes), outcomes
    assert server.process.wait(10) == 0
    ends = [server.line(1)["end"] for _ in range(SESSIONS + 1)]
    assert sorted(ends) == ["finished"] * SESSIONS + ["refused"]
    server.close()


def test_a_stop_drains_resnet20(resnet20):
    model, x = resnet20
    server = ServerProcess(model, "--plaintext", "--sessions", SESSIONS, "--drain", 120)
    expected = Model(model).simulate(x)
    with ThreadPoolExecutor(SESSIONS) as pool:
        running = [pool.submit(ask, server.address, x[i : i + 1], **PATIENT) for i in range(SESSIONS)]
        time.sleep(1)
        server.signal(signal.SIGTERM)
        outcomes = [future.result() for future in running]
    for i, outcome in enumerate(outcomes):
        assert np.array_equal(outcome["outputs"], expected[i : i + 1]), outcome.get("error")
    assert server.process.wait(10) == 0
    assert [server.line(1)["end"] for _ in range(SESSIONS)] == ["finished"] * SESSIONS
    server.close()


def test_a_drain_ends_in_time_and_breaks_off_what_is_left(job):
    server = job.serve("--plaintext", "--network", "1000ms,100", "--timeout", 60, "--drain", 1)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(ask, server.address, job.x, **PATIENT, network="1000ms,100")
        time.sleep(1.5)
        server.signal(signal.SIGTERM)
        assert "error" in running.result()
    assert server.process.wait(10) == 0
    line = server.line(1)
    assert line["end"] == "failed"
    assert "the server stopped while this session ran" in line["error"]["message"]
    server.close()


def test_a_second_signal_ends_at_once(job):
    server = job.serve("--plaintext", "--network", "1000ms,100", "--drain", 600)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(ask, server.address, job.x, **PATIENT, network="1000ms,100")
        time.sleep(1.5)
        server.signal(signal.SIGINT)
        time.sleep(0.5)
        assert server.alive
        server.signal(signal.SIGINT)
        assert server.process.wait(5) == 128 + signal.SIGINT
        assert "error" in running.result()
    server.close()


def test_a_reload_under_load_loses_nothing_and_shows_the_new_certificate(job, tmp_path):
    authority = Authority(tmp_path, "ours")
    first, second = (authority.issue(name, "IP:127.0.0.1") for name in ("first", "second"))
    files = (tmp_path / "now.pem", tmp_path / "now.key")
    for source, file in zip(first, files, strict=True):
        shutil.copy(source, file)
    server = ServerProcess(job.model, "--certificate", files[0], "--key", files[1])
    how = {**PATIENT, "plaintext": False, "ca": authority.ca}
    stop, outcomes = threading.Event(), []

    def load() -> None:
        while not stop.is_set():
            outcomes.append(ask(server.address, job.x, **how))

    with ThreadPoolExecutor(4) as pool:
        loads = [pool.submit(load) for _ in range(4)]
        time.sleep(1)
        for source, file in zip(second, files, strict=True):
            shutil.copy(source, file)
        server.signal(signal.SIGHUP)
        time.sleep(2)
        stop.set()
        for future in loads:
            future.result()
    assert len(outcomes) > SESSIONS
    assert all(job.right(outcome) for outcome in outcomes)
    pinned = {**PATIENT, "plaintext": False, "pin": server.pin}
    assert "the server's key is not the pinned one" in ask(server.address, job.x, **pinned)["error"]["message"]
    files[0].write_text("no certificate")
    server.signal(signal.SIGHUP)
    time.sleep(1)
    assert job.right(ask(server.address, job.x, **how)), "a file that cannot be used changes nothing"
    said = server.close()
    assert "reloaded" in said
    assert "not reloaded, the server goes on as it was" in said


def test_a_client_comes_back_when_the_server_does(job):
    """A server is replaced under a client that retries: the address is what stays."""
    server = job.serve("--plaintext", "--timeout", 30)
    address = server.address
    client = ClientProcess(address, job.file, "--plaintext", "--timeout", 30, "--retry-for", 60)
    assert np.array_equal(client.outcome(60)["logits"], job.expected)
    server.close()
    client = ClientProcess(address, job.file, "--plaintext", "--timeout", 30, "--retry-for", 60)
    time.sleep(2)
    assert client.process.poll() is None
    again = ServerProcess(job.model, "--plaintext", "--listen", address)
    out, err = client.process.communicate(timeout=60)
    assert client.process.returncode == 0, out
    assert "trying again in" in err
    again.close()
