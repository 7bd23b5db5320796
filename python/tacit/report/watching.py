"""What `tacit top` shows: a server's state, its sessions of the moment, and what it has done."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tacit.report.terminal import duration, size
from tacit.session.watch import Snapshot

COLUMNS = ("session", "client", "model", "doing", "answered", "prepared", "age")


def state(server: Snapshot) -> dict[str, Any]:
    """The server's numbers, by the keys of `tacit top --json`."""
    total = server.total
    ends = {end: int(total("tacit_sessions_total", end=end)) for end in ("finished", "client_gone", "failed")}
    models = sorted({dict(key)["model"] for key in server.metrics.get("tacit_sessions_total", {})} - {""})
    return {
        "ready": total("tacit_ready") == 1,
        "version": next((dict(key)["version"] for key in server.metrics["tacit_build_info"]), None),
        "since": total("tacit_start_time_seconds"),
        "running": int(total("tacit_active_sessions", state="running")),
        "sessions_limit": int(total("tacit_sessions_limit")),
        "waiting": int(total("tacit_active_sessions", state="waiting")),
        "queue_limit": int(total("tacit_queue_limit")),
        "connections": int(total("tacit_connections")),
        "memory_bytes": int(total("tacit_memory_bytes")),
        "memory_budget_bytes": int(total("tacit_memory_budget_bytes")),
        "ended": ends,
        "refused": reasons(server, "tacit_refusals_total"),
        "handshakes_failed": reasons(server, "tacit_handshakes_failed_total"),
        "models": {model: of_model(server, model) for model in models},
    }


def reasons(server: Snapshot, name: str) -> dict[str, int]:
    """A count by reason."""
    return {dict(key)["reason"]: int(value) for key, value in sorted(server.metrics.get(name, {}).items())}


def of_model(server: Snapshot, model: str) -> dict[str, Any]:
    """What was done with one model; `mean_seconds` of each phase that there was."""
    means = {}
    for phase in ("waiting", "setup", "offline", "online"):
        count = server.total("tacit_session_seconds_count", model=model, phase=phase)
        if count:
            means[phase] = server.total("tacit_session_seconds_sum", model=model, phase=phase) / count
    return {
        "sessions": int(server.total("tacit_sessions_total", model=model)),
        "inputs": int(server.total("tacit_inputs_total", model=model)),
        "bytes": int(server.total("tacit_bytes_total", model=model)),
        "mean_seconds": means,
    }


def screen(address: str, server: Snapshot, inputs_per_second: float | None) -> Group:
    """All of it for a terminal; the rate is that since the last look, if there was one."""
    known = state(server)
    ready = Text("ready", "green") if known["ready"] else Text("takes no new sessions", "red")
    used, most = size(known["memory_bytes"]), size(known["memory_budget_bytes"])
    rate = "" if inputs_per_second is None else f", {inputs_per_second:.1f} inputs/s"
    head = Text.assemble(f"tacit {known['version']} at {address}: ", ready, rate)
    lines = [
        f"{known['running']} of {known['sessions_limit']} sessions run, {known['waiting']} of {known['queue_limit']} "
        f"wait, {known['connections']} connection(s) at the door, {used} of {most}",
        f"ended: {listed(known['ended'])}; refused: {listed(known['refused'])}; "
        f"failed at the door: {listed(known['handshakes_failed'])}",
    ]
    return Group(head, *map(Text, lines), models(known["models"]), sessions(server.sessions))


def listed(counts: dict[str, int]) -> str:
    """Counts in a row."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items() if count) or "none"


def models(known: dict[str, Any]) -> Table:
    """A row per model that was used."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("model")
    for heading in ("sessions", "inputs", "traffic", "waiting", "setup", "offline", "online"):
        table.add_column(heading, justify="right")
    for name, of in known.items():
        means = [duration(of["mean_seconds"][phase]) if phase in of["mean_seconds"] else "-" for phase in
                 ("waiting", "setup", "offline", "online")]  # fmt: skip
        table.add_row(Text(name), str(of["sessions"]), str(of["inputs"]), size(of["bytes"]), *means)
    return table


def sessions(running: list[dict[str, Any]]) -> Table:
    """A row per session of the moment, the oldest first."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in COLUMNS:
        table.add_column(heading, justify="left" if heading in ("client", "model", "doing") else "right")
    for one in running:
        doing = "waits" if one["reached"] == "queue" else one["reached"]
        who, model = one["identity"] or one["client"], one["model"] or "-"
        done = f"{one['answered']}/{one['inputs']}" if one["inputs"] else "-"
        number, prepared = str(one["session"]), str(one["prepared"])
        table.add_row(number, Text(who), Text(model), doing, done, prepared, duration(one["seconds"]))
    return table
