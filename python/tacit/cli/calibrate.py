"""`tacit calibrate`."""

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tacit.cli.options import AsJson
from tacit.measure import calibration
from tacit.report import terminal

WORST = 8
"""How many measurements are shown: those whose prediction is farthest off."""


def calibrate(
    runs: Annotated[int, typer.Option(min=1, max=20, help="Runs of each operation; the median counts.")] = 3,
    json: AsJson = False,
) -> None:
    """Measure this machine for `plan` and for servers that plan: about half a minute, once.

    Both parties run in fresh processes, a thread each, over TLS and loopback. Let nothing else run meanwhile. The
    rates are kept in the user's cache folder, or in $TACIT_CACHE; without them plans reckon with those of the
    machine that the project is measured on.
    """
    with terminal.progress("calibrating") as advance:
        content = calibration.calibrate(runs, advance)
    if json:
        terminal.emit_json(content)
        return
    table = Table(title="Measurements told worst", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("operation", overflow="fold")
    for heading in ("phase", "measured", "predicted"):
        table.add_column(heading, justify="right")
    worst = sorted(content["samples"], key=lambda told: -abs(told["predicted"] / told["seconds"] - 1))
    for told in worst[:WORST]:
        seconds = (terminal.duration(told[name]) for name in ("seconds", "predicted"))
        table.add_row(told["operation"], told["phase"], *seconds)
    terminal.console.print(table)
    terminal.console.print(f"median error {content['median_error']:.0%}; kept in {content['file']}", highlight=False)
