"""Sessions as OpenTelemetry traces: a span for each session, and within it one for each phase.

A session's phases may alternate; their spans show how long each took in all, one after the other.
"""

import time
from typing import Any

from tacit.errors import MisuseError

PHASES = ("setup", "offline", "online")
NANOSECONDS = 1_000_000_000
FLUSH_SECONDS = 5


class Traces:
    """Sends traces to a collector, in the background and as far as it takes them."""

    def __init__(self, collector: str) -> None:
        """Send to `collector`, the URL of OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces.

        Raises `MisuseError` for another URL, and where the packages of the extra `traces` are not installed.
        """
        if not collector.startswith(("http://", "https://")):
            raise MisuseError(f"--traces is a URL such as http://127.0.0.1:4318/v1/traces, not `{collector}`")
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise MisuseError("--traces needs OpenTelemetry: pip install 'tacit[traces]'") from error
        provider = TracerProvider(resource=Resource.create({"service.name": "tacit"}), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=collector)))
        self.provider = provider
        self.tracer = provider.get_tracer("tacit")

    def session(self, report: dict[str, Any]) -> None:
        """The trace of a session that ended now, whatever became of it."""
        from opentelemetry.trace import StatusCode, set_span_in_context

        phases = {phase: report.get("phases", {}).get(phase) for phase in PHASES}
        took = report.get("waited_seconds", 0.0) + sum(cost["seconds"] for cost in phases.values() if cost)
        end = time.time_ns()
        begin = end - int(took * NANOSECONDS)
        known = {
            key: report.get(key) for key in ("session", "model", "identity", "end", "reached", "refused", "inputs")
        }
        attributes = {f"tacit.{key}": value for key, value in known.items() if value is not None}
        span = self.tracer.start_span("session", start_time=begin, attributes=attributes)
        if "error" in report:
            span.set_status(StatusCode.ERROR, report["error"]["message"])
        within = set_span_in_context(span)
        at = begin
        waited = {"seconds": report.get("waited_seconds", 0.0)}
        for phase, cost in {"waiting": waited if waited["seconds"] else None, **phases}.items():
            if cost is None:
                continue
            costs = {f"tacit.bytes.{way}": count for way, count in cost.get("bytes", {}).items()}
            if "rounds" in cost:
                costs["tacit.rounds"] = cost["rounds"]
            child = self.tracer.start_span(phase, within, start_time=at, attributes=costs)
            at += int(cost["seconds"] * NANOSECONDS)
            child.end(at)
        span.end(end)

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        self.provider.force_flush(FLUSH_SECONDS * 1000)
        self.provider.shutdown()
