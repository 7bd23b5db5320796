"""Traces of sessions, as an OpenTelemetry collector receives them."""

import http.server
import signal
import subprocess
import threading
from contextlib import contextmanager

import pytest
from faults.parties import COMMAND, ask

PATIENT = {"timeout_seconds": 60, "connect_seconds": 60}


@contextmanager
def collector():
    """An HTTP server, and the bodies that it was sent."""
    bodies: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1/traces", bodies
        server.shutdown()


def test_each_session_is_a_trace_of_its_phases(job):
    proto = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="the extra `traces` is not installed"
    )
    with collector() as (url, bodies):
        server = job.serve("--plaintext", "--traces", url)
        outcome = ask(server.address, job.x, **PATIENT)
        assert job.right(outcome)
        server.line(10)
        refused = ask(server.address, job.x, model="other", **PATIENT)
        assert "error" in refused
        server.signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        server.close()
    spans = []
    for body in bodies:
        request = proto.ExportTraceServiceRequest()
        request.ParseFromString(body)
        spans += [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]
    roots = [span for span in spans if not span.parent_span_id]
    assert [span.name for span in roots] == ["session", "session"]
    first, second = roots
    children = [span for span in spans if span.parent_span_id == first.span_id]
    assert [span.name for span in children] == ["setup", "offline", "online"]
    rounds = {
        span.name: own.value.int_value for span in children for own in span.attributes if own.key == "tacit.rounds"
    }
    assert rounds == {phase: cost["rounds"] for phase, cost in outcome["report"]["phases"].items()}
    assert all(first.start_time_unix_nano <= span.start_time_unix_nano for span in children)
    assert "no such model" in second.status.message
    assert "no such model" in refused["error"]["message"]


def test_traces_without_their_packages_or_a_url_say_what_to_do(job):
    for given, why in (("nowhere", "--traces is a URL"), ("http://127.0.0.1:9/v1/traces", "tacit[traces]")):
        blocked = (
            "import sys; sys.modules['opentelemetry.sdk.trace'] = None; from tacit.cli import main; main(sys.argv[1:])"
        )
        command = [COMMAND[0], "-c", blocked, "serve", str(job.model), "--listen", "127.0.0.1:0", "--plaintext"]
        done = subprocess.run([*command, "--traces", given], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert why in done.stderr
