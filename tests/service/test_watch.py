"""What an operator sees of a running server: metrics, health, the log, `tacit top`."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from faults.authorities import Authority
from faults.parties import COMMAND, ServerProcess, ask
from tacit.session.watch import Snapshot, get, look

PATIENT = {"timeout_seconds": 60, "connect_seconds": 60}
SHOWN = ("--metrics", "127.0.0.1:0")
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def until(server: ServerProcess, holds, seconds: float = 20) -> Snapshot:
    """The server as soon as it holds."""
    assert server.metrics is not None
    end = time.monotonic() + seconds
    while not holds(found := look(server.metrics)):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def until_logged(log: Path, lines: int, seconds: float = 20) -> None:
    """Wait for so many lines of a log: a client may be done before its server has told."""
    end = time.monotonic() + seconds
    while (found := log.read_text().count("\n")) < lines:
        assert time.monotonic() < end, found
        time.sleep(0.02)


def check(found: Snapshot, reports: list[dict], refused: dict[str, int]) -> None:
    """All numbers of a server of the model `small` that gave these reports."""
    count = found.total
    model = {"model": "small"}
    assert count("tacit_sessions_total", end="finished", **model) == 2
    assert count("tacit_inputs_total", **model) == 2
    assert count("tacit_rounds_total", **model) == sum(report["rounds"] for report in reports)
    for way in ("client_to_server", "server_to_client"):
        sent = sum(report["bytes"][way] for report in reports)
        assert count("tacit_bytes_total", direction=way, **model) == sent
    assert all(count("tacit_refusals_total", reason=reason) == times for reason, times in refused.items())
    assert count("tacit_refusals_total") == 3
    for reason in ("garbage", "closed", "timeout"):
        assert count("tacit_handshakes_failed_total", reason=reason) == 1, reason
    for phase in ("setup", "offline", "online"):
        assert count("tacit_session_seconds_count", phase=phase, **model) == 2
        buckets = found.metrics["tacit_session_seconds_bucket"]
        bounds = {dict(key)["le"]: value for key, value in buckets.items() if dict(key)["phase"] == phase}
        assert bounds["+Inf"] == 2
        assert list(bounds.values()) == sorted(bounds.values())
    assert count("tacit_session_cpu_seconds_total") > 0
    assert 1 << 20 < count("tacit_memory_bytes") < count("tacit_memory_budget_bytes")
    assert count("tacit_open_descriptors") < count("tacit_descriptors_limit")
    assert count("tacit_panics_total") == 0


def check_log(lines: list[dict], reports: list[dict]) -> None:
    """A line for each thing that happened, in order."""
    assert [line["event"] for line in lines] == ["listening", *["session"] * 8, "stopping", "stopped"]
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    done = lines[1]
    assert done["identity"] == "token:ward-3"
    assert (done["model"], done["end"], done["inputs"], done["answered"]) == ("small", "finished", 1, 1)
    assert done["bytes"] == reports[0]["bytes"]
    assert (done["rounds"], set(done["phases"])) == (reports[0]["rounds"], {"setup", "offline", "online"})
    assert [line.get("refused") for line in lines[3:6]] == ["budget", "token", "model"]
    assert all(line["error"]["message"] for line in lines[3:9])


def test_every_client_is_counted_by_what_became_of_it(job, tacit, tmp_path):
    made = tacit("token", "ward-3", "--json").json
    tokens, ledger, log = tmp_path / "tokens", tmp_path / "ledger", tmp_path / "log"
    tokens.write_text(f"{made['line']}\n")
    tokens.chmod(0o600)
    options = ("--tokens", tokens, "--ledger", ledger, "--budget", "total=2", "--log", log, *SHOWN)
    server = job.serve("--plaintext", "--connect-timeout", 1, *options)
    try:
        token = {"token": made["token"], **PATIENT}
        assert get(server.metrics, "/healthz", 5) == (200, "ok\n")
        assert get(server.metrics, "/readyz", 5) == (200, "ready\n")
        assert get(server.metrics, "/", 5)[0] == 404
        reports = []
        for _ in range(2):
            outcome = ask(server.address, job.x, **token)
            assert job.right(outcome)
            reports.append(outcome["report"])
            until_logged(log, 1 + len(reports))
        for number, how in enumerate((token, PATIENT, {**token, "model": "other"}), 4):
            assert ask(server.address, job.x, **how)["error"]["kind"] == "refused"
            until_logged(log, number)
        host, port = server.address.split(":")
        for sent in (b"GET / HTTP/1.1\r\n\r\n", b""):
            with socket.create_connection((host, int(port))) as peer:
                peer.sendall(sent)
                peer.shutdown(socket.SHUT_WR)
                with suppress(ConnectionError):
                    peer.recv(100)
        with socket.create_connection((host, int(port))) as silent:
            until(server, lambda found: found.total("tacit_connections") == 1)
            found = until(server, lambda found: found.total("tacit_handshakes_failed_total") == 3)
            assert silent.fileno() >= 0
        reasons = {"budget": 1, "token": 1, "model": 1}
        check(found, reports, reasons)
        shown = tacit("top", server.metrics, "--json").json
        assert shown["ended"]["finished"] == 2
        assert shown["refused"] == reasons
        assert shown["models"]["small"]["inputs"] == 2
        assert shown["ready"]
        assert shown["sessions"] == []
        screen = tacit("top", server.metrics, "--once").out
        assert "small" in screen
        assert "2 finished" in screen
    finally:
        server.signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
        server.close()
    assert made["token"] not in log.read_text()
    check_log([json.loads(line) for line in log.read_text().splitlines()], reports)


def test_sessions_of_the_moment_are_shown(job, tacit):
    """One session runs and one waits; then the server drains."""
    slow = {"network": "200ms,100", **PATIENT}
    server = job.serve("--plaintext", "--network", "200ms,100", "--sessions", 1, "--offline", 2, "--queue", 1, *SHOWN)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ask, server.address, job.x.repeat(6, 0), **slow)
        until(server, lambda found: found.total("tacit_active_sessions", state="running") == 1)
        second = pool.submit(ask, server.address, job.x, **slow)
        until(server, lambda found: found.total("tacit_active_sessions", state="waiting") == 1)
        assert get(server.metrics, "/readyz", 5)[0] == 503
        found = until(server, lambda found: found.total("tacit_prepared_runs") == 2)
        running, waiting = found.sessions
        assert (running["model"], running["reached"], running["inputs"], running["prepared"]) == (
            "small",
            "inputs",
            6,
            2,
        )
        assert (waiting["reached"], waiting["inputs"]) == ("queue", 0)
        assert running["identity"] == waiting["identity"] == "addr:127.0.0.1"
        assert "waits" in tacit("top", server.metrics, "--once").out
        server.signal(signal.SIGTERM)
        assert get(server.metrics, "/readyz", 5)[0] == 503
        assert get(server.metrics, "/healthz", 5)[0] == 200
        assert "error" not in first.result()
        assert second.result()["error"]["kind"] == "busy"
    assert server.process.wait(20) == 0
    server.close()
    assert tacit("top", server.metrics, "--json").code == 1


def test_processor_time_is_that_of_the_session(job):
    """Sessions beside each other count their own time alone, with the threads that help them."""
    server = job.serve("--plaintext", "--threads", 2, "--sessions", 4)
    try:
        assert job.right(ask(server.address, job.x, **PATIENT))
        alone = server.line(10)["cpu_seconds"]
        before = processor_seconds(server)
        with ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(lambda _: ask(server.address, job.x, **PATIENT), range(8)))
        assert all(job.right(outcome) for outcome in outcomes)
        beside = [server.line(10)["cpu_seconds"] for _ in outcomes]
        process = processor_seconds(server) - before
        assert min(alone, *beside) > 0
        # The kernel counts the process in ticks of 10 ms.
        assert 0.5 * process - 0.05 < sum(beside) < process + 0.05
        assert max(beside) < 0.6 * sum(beside)
    finally:
        server.close()


def processor_seconds(server: ServerProcess) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def test_a_log_that_moves_away_is_opened_anew_and_a_full_one_stops_nothing(job, tmp_path):
    log = tmp_path / "log"
    server = job.serve("--plaintext", "--log", log)
    assert job.right(ask(server.address, job.x, **PATIENT))
    server.line(10)
    log.rename(tmp_path / "log.1")
    assert job.right(ask(server.address, job.x, **PATIENT))
    server.line(10)
    log.unlink()
    log.symlink_to("/dev/full")
    for _ in range(2):
        assert job.right(ask(server.address, job.x, **PATIENT))
        server.line(10)
    assert len((tmp_path / "log.1").read_text().splitlines()) == 2
    errors = server.close()
    assert errors.count("cannot be written; the server goes on without it") == 1
    absent = ["serve", job.model, "--listen", "127.0.0.1:0", "--plaintext", "--log", tmp_path / "absent" / "log"]
    done = subprocess.run([*COMMAND, *map(str, absent)], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert "cannot write the log" in done.stderr


def header(address: str, port: int, command: int = 0x21) -> bytes:
    """A PROXY v2 header of a client of IPv4."""
    rest = (
        socket.inet_aton(address) + socket.inet_aton("127.0.0.1") + port.to_bytes(2, "big") + (443).to_bytes(2, "big")
    )
    rest += b"\x04\x00\x02hi"  # an addition of another kind
    return SIGNATURE + bytes([command, 0x11]) + len(rest).to_bytes(2, "big") + rest


@contextmanager
def balancer(server: str, first: bytes) -> Iterator[str]:
    """Passes connections on to a server, each with `first` before its own bytes."""
    host, port = server.split(":")

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def serve(listener: socket.socket, stack: ExitStack) -> None:
        with suppress(OSError):
            while True:
                near = stack.enter_context(listener.accept()[0])
                far = stack.enter_context(socket.create_connection((host, int(port))))
                for byte in first:  # as slowly as it may come
                    far.sendall(bytes([byte]))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

    with ExitStack() as stack, socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener, stack), daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_load_balancer_says_whose_connection_it_is(job, tmp_path):
    """Addresses, and so budgets, are those of the clients."""
    ledger = tmp_path / "ledger"
    server = job.serve("--proxy-protocol", "--ledger", ledger, "--budget", "total=1", *SHOWN)
    how = {"plaintext": False, "pin": server.pin, **PATIENT}
    try:
        for client in ("10.9.8.7", "10.9.8.6"):
            with balancer(server.address, header(client, 4711)) as address:
                assert job.right(ask(address, job.x, **how))
                line = server.line(10)
                assert (line["client"], line["identity"]) == (f"{client}:4711", f"addr:{client}")
                assert ask(address, job.x, **how)["error"]["kind"] == "refused"
                assert server.line(10)["refused"] == "budget"
        with balancer(server.address, header("10.0.0.1", 1, command=0x20)) as address:  # its own connection
            assert job.right(ask(address, job.x, **how))
            assert server.line(10)["identity"] == "addr:127.0.0.1"
        assert "error" in ask(server.address, job.x, **how)
        assert "expected a PROXY v2 header of the load balancer" in server.line(10)["error"]["message"]
        assert look(server.metrics).total("tacit_handshakes_failed_total", reason="garbage") == 1
    finally:
        server.close()
    refused = ["serve", str(job.model), "--listen", "127.0.0.1:0", "--plaintext", "--proxy-protocol"]
    done = subprocess.run([*COMMAND, *refused], capture_output=True, text=True, timeout=30, check=False)
    assert "--proxy-protocol needs TLS" in done.stderr


def test_certificates_show_when_they_end(job, tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("authority"), "clinic")
    server = job.serve(*authority.issue("server", "DNS:localhost").served(), *SHOWN)
    try:
        left = look(server.metrics).total("tacit_certificate_expiry_seconds")
        assert 0 < left < 40 * 24 * 3600
    finally:
        server.close()


@pytest.mark.parametrize("address", ["", "nowhere", "127.0.0.1:99999", "127.0.0.1:1"])
def test_servers_that_are_not_there(tacit, address):
    done = tacit("top", address, "--json")
    assert (done.code, set(done.json)) == (1, {"error"})
