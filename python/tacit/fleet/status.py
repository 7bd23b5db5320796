"""What a fleet does now: as JSON, and as a table."""

import os
import time
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

if TYPE_CHECKING:
    from tacit.fleet.head import Head
    from tacit.fleet.members import Member, Members


def state_of(head: "Head") -> dict[str, Any]:
    """The state of a fleet, as `tacit fleet status --json` prints it."""
    return {
        "fleet": head.fleet.name,
        "since": head.since,
        "pid": os.getpid(),
        "stopping": head.stopping,
        "door": {**head.entrance, **{name: head.at_door.get(name) for name in ("waiting", "relayed", "tickets")}},
        "metrics": None if head.scrape is None else head.scrape.address,
        "models": [model_of(pool) for pool in head.pools.values() if pool.offered or pool.members],
        "servers": [server_of(one, pool) for pool in head.pools.values() for one in pool.members.values()],
    }


def model_of(pool: "Members") -> dict[str, Any]:
    """A model: how many servers it has and should have."""
    load, now = pool.load(), time.monotonic()
    return {
        "model": pool.pool.name,
        "generation": pool.pool.generation,
        "min": pool.pool.min,
        "max": pool.pool.max,
        "wanted": pool.scaler.wanted,
        "fixed": pool.scaler.fixed is not None,
        "ready": load.ready,
        "running": load.running,
        "waiting": load.waiting,
        "allowed": load.allowed,
        "restarts": pool.restarts,
        "last_error": pool.last_error or None,
        "backoff_seconds": round(pool.backoff.waits(now), 1),
    }


def server_of(member: "Member", pool: "Members") -> dict[str, Any]:
    """A server."""
    seen, info = member.seen, member.info
    return {
        "server": member.id,
        "model": pool.pool.name,
        "generation": member.generation,
        "state": "placing" if member.state == "starting" and member.placed is None else member.state,
        "warm": member.warm and member.state == "ready",
        "seconds": round(time.monotonic() - member.since, 1),
        "node": info.get("node"),
        "pid": info.get("pid"),
        "address": info.get("address"),
        "websocket": info.get("websocket"),
        "pin": info.get("pin"),
        "running": seen.get("running", 0),
        "waiting": seen.get("waiting", 0),
        "allowed": seen.get("allowed", 0),
        "prepared": seen.get("prepared", 0),
        "memory_bytes": seen.get("memory_bytes", 0),
        "answered": seen.get("inputs", 0),
        "ended": seen.get("sessions", {}),
    }


def tables(state: dict[str, Any]) -> list[Table]:
    """The state for people: a table of models and one of servers."""
    models = Table(title=f"Fleet {state['fleet']}", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("model", "generation"):
        models.add_column(heading, overflow="fold")
    for heading in ("ready", "wanted", "range", "running", "waiting", "restarts"):
        models.add_column(heading, justify="right")
    for row in state["models"]:
        wanted = f"{row['wanted']}{' fixed' if row['fixed'] else ''}"
        numbers = (row["ready"], wanted, f"{row['min']}-{row['max']}", row["running"], row["waiting"], row["restarts"])
        models.add_row(row["model"], row["generation"], *map(str, numbers))
    servers = Table(title="Servers", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("server", "state", "address"):
        servers.add_column(heading, overflow="fold")
    for heading in ("running", "waiting", "allowed", "answered", "memory"):
        servers.add_column(heading, justify="right")
    for row in state["servers"]:
        condition = row["state"] if row["warm"] or row["state"] != "ready" else "warming"
        counts = (row["running"], row["waiting"], row["allowed"], row["answered"], f"{row['memory_bytes'] >> 20} MiB")
        servers.add_row(row["server"], condition, row["address"] or "-", *map(str, counts))
    return [models, servers]
