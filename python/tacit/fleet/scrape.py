"""The metrics of all servers of a fleet under one scrape: each sample with the label `server`."""

import re
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tacit.errors import MisuseError

SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (.+)")
ABOUT = re.compile(r"# (HELP|TYPE|UNIT) (\S+) ?(.*)")
TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SUFFIXES = ("_total", "_bucket", "_sum", "_count", "_created")


def merged(texts: Iterable[tuple[str, str]]) -> str:
    """Metrics of several servers as one text: each family once, and a label for the server at each sample."""
    about: dict[str, dict[str, str]] = {}
    lines: dict[str, list[str]] = {}
    for server, text in texts:
        for line in text.splitlines():
            if told := ABOUT.fullmatch(line):
                about.setdefault(told[2], {})[told[1]] = told[3]
            elif sample := SAMPLE.fullmatch(line):
                name, labels, value = sample.groups()
                family = family_of(name, about)
                own = f'server="{server}"' + (f",{labels}" if labels else "")
                lines.setdefault(family, []).append(f"{name}{{{own}}} {value}")
    written: list[str] = []
    for family, samples in lines.items():
        written += [f"# {what} {family} {text}" for what, text in about.get(family, {}).items()]
        written += samples
    return "".join(f"{line}\n" for line in [*written, "# EOF"])


def family_of(name: str, known: dict[str, dict[str, str]]) -> str:
    """The family that a sample belongs to."""
    if name in known:
        return name
    base = next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)
    return base if base in known else name


class Scrape:
    """An HTTP server with `/metrics` and `/healthz`."""

    def __init__(self, listen: str, texts: Callable[[], list[tuple[str, str]]]) -> None:
        """Answer on HOST:PORT with what `texts` gives. Raises `MisuseError` for an address that cannot be had."""
        host, _, port = listen.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise MisuseError(f"`metrics` is HOST:PORT, not {listen!r}")
        try:
            self.server = ThreadingHTTPServer((host.strip("[]"), int(port)), handler(texts))
        except OSError as error:
            raise MisuseError(f"cannot show metrics at {listen}: {error.strerror}") from error
        self.address = f"{host}:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, name="tacit-fleet-metrics", daemon=True).start()


def handler(texts: Callable[[], list[tuple[str, str]]]) -> type[BaseHTTPRequestHandler]:
    """What answers requests."""

    class Answer(BaseHTTPRequestHandler):
        """GET of the two paths; anything else is not found."""

        timeout = 10

        def do_GET(self) -> None:
            """Answer."""
            status, kind, body = 404, "text/plain", "there are /metrics and /healthz\n"
            if self.path == "/metrics":
                status, kind, body = 200, TYPE, merged(texts())
            elif self.path == "/healthz":
                status, body = 200, "ok\n"
            content = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """No line for each request."""

    return Answer
