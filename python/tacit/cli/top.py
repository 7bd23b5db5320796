"""`tacit top`: a running server in the terminal."""

import time
from typing import Annotated

import typer
from rich.live import Live

from tacit.cli.options import AsJson
from tacit.report import terminal, watching
from tacit.session.watch import look

Address = Annotated[
    str,
    typer.Argument(metavar="HOST:PORT", help="Where the server shows its metrics: its --metrics.", show_default=False),
]
Interval = Annotated[float, typer.Option(min=0.1, max=3600, metavar="SECONDS", help="Time between two looks.")]
Once = Annotated[bool, typer.Option("--once", help="Show it once and stop; so does --json.")]


def top(address: Address, interval: Interval = 1.0, once: Once = False, json: AsJson = False) -> None:
    """Show what a server does: its sessions, its queue, what it has answered and refused, its memory.

    The server must show its metrics: `tacit serve ... --metrics 127.0.0.1:9100`. Goes on until Ctrl-C.
    """
    found = look(address)
    if json:
        terminal.emit_json({**watching.state(found), "sessions": found.sessions})
        return
    if once or not terminal.console.is_terminal:
        terminal.console.print(watching.screen(address, found, None))
        return
    with Live(watching.screen(address, found, None), console=terminal.console, screen=True, auto_refresh=False) as live:
        done, since = found.total("tacit_inputs_total"), time.monotonic()
        while True:
            time.sleep(interval)
            found = look(address)
            before, then = done, since
            done, since = found.total("tacit_inputs_total"), time.monotonic()
            live.update(watching.screen(address, found, (done - before) / (since - then)), refresh=True)
