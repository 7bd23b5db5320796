"""`tacit budget` and `tacit token`: what the clients of a server may ask, and how they are known."""

import json as jsons
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from tacit import _core
from tacit.cli.expand import expand
from tacit.cli.options import AsJson, RevealWord
from tacit.errors import MisuseError
from tacit.report import terminal
from tacit.session.place import Place

budget = typer.Typer(
    help="See and set how many inputs clients may ask.", no_args_is_help=True, rich_markup_mode="markdown"
)

LedgerPlace = Annotated[
    Place, typer.Option(metavar="FILE|URL", parser=Place, help="Ledger of the server; it may be running.")
]
ONE_CLIENT = "as `budget show` writes it: cert:SUBJECT, token:NAME or addr:ADDRESS."
OneClient = Annotated[str, typer.Option("--client", metavar="C", help=f"The client, {ONE_CLIENT}")]
OfClient = Annotated[str | None, typer.Option("--client", metavar="C", help=f"Only this client, {ONE_CLIENT}")]
OneModel = Annotated[str, typer.Option("--model", metavar="M", help="Name of the model.")]
OfModel = Annotated[str | None, typer.Option("--model", metavar="M", help="Only this model.")]
LIMITS = {"total": "in all", "per_day": "a day", "per_minute": "a minute"}
"""The limits of a budget, and how they read."""


def show(ledger: LedgerPlace, client: OfClient = None, model: OfModel = None, json: AsJson = False) -> None:
    """Show what clients have used, and the limits that they have of their own.

    Days are those of UTC. Clients without limits of their own have the defaults that the server was started with.
    """
    rows = jsons.loads(_core.show_budgets(ledger, client, model))
    if json:
        terminal.emit_json({"ledger": ledger.name, "rows": rows})
    else:
        terminal.console.print(usage_table(rows))


def set_limits(
    ledger: LedgerPlace,
    client: OneClient,
    model: OneModel,
    total: Annotated[int | None, typer.Option(min=0, metavar="N", help="Most inputs in all.")] = None,
    per_day: Annotated[int | None, typer.Option(min=0, metavar="N", help="Most inputs in a day of UTC.")] = None,
    per_minute: Annotated[int | None, typer.Option(min=0, metavar="N", help="Most inputs in a minute.")] = None,
    unlimited: Annotated[bool, typer.Option("--unlimited", help="No limit at all, whatever the default.")] = False,
    default: Annotated[bool, typer.Option("--default", help="No limits of its own: the defaults hold again.")] = False,
    json: AsJson = False,
) -> None:
    """Give a client limits of its own for a model, in place of those that it had.

    A limit that is not given is none. What the client has used stays: see `budget reset`. A running server
    keeps to the new limits at once.
    """
    client = _core.client_key(client)
    limits = {"total": total, "per_day": per_day, "per_minute": per_minute}
    given = any(limit is not None for limit in limits.values())
    if [given, unlimited, default].count(True) != 1:
        raise MisuseError("say what holds: --total, --per-day and --per-minute, or --unlimited, or --default")
    if default:
        _core.unset_budget(ledger, client, model)
    else:
        _core.set_budget(ledger, client, model, jsons.dumps(limits))
    if json:
        terminal.emit_json({"client": client, "model": model, "budget": None if default else limits})
    else:
        say(f"limits of {client} for {model}: {spoken(None if default else limits)}")


def reset(
    ledger: LedgerPlace,
    client: OfClient = None,
    model: OfModel = None,
    everything: Annotated[bool, typer.Option("--all", help="All clients and models.")] = False,
    json: AsJson = False,
) -> None:
    """Forget what a client has used, so that its budget begins anew. Limits stay."""
    if everything == (client is not None or model is not None):
        raise MisuseError("say whose budget begins anew: --client, --model or both, or --all")
    count = _core.reset_budgets(ledger, client, model)
    if json:
        terminal.emit_json({"ledger": ledger.name, "reset": count})
    else:
        say(f"reset {count} of the ledger's rows" if count else "nothing was used: there is nothing to reset")


def token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the client.", show_default=False)],
    reveal: Annotated[
        RevealWord | None, typer.Option(help="What this client learns. Default: as the server was started.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Make a token by which a server knows a client.

    The token is shown once and stored nowhere: give it to the client. The line is for the server's file of tokens; it
    has only the token's hash.
    """
    secret, line = _core.generate_token(name, reveal)
    if json:
        terminal.emit_json({"name": name, "token": secret, "line": line})
    else:
        say("token, for the client only; it is not shown again:")
        say(secret)
        say("line for the server's file of tokens:")
        say(line)


budget.command("show", epilog="Example: `tacit budget show --ledger budgets.db --model mnist`")(expand(show))
budget.command(
    "set", epilog="Example: `tacit budget set --ledger budgets.db --client token:ward-3 --model mnist --per-day 20`"
)(expand(set_limits))
budget.command("reset", epilog="Example: `tacit budget reset --ledger budgets.db --client token:ward-3`")(expand(reset))


def say(line: str) -> None:
    """A line as it is, however long."""
    terminal.console.print(line, highlight=False, markup=False, soft_wrap=True)


def spoken(limits: dict[str, int | None] | None) -> str:
    """A budget in words; None is the default."""
    if limits is None:
        return "the server's defaults"
    parts = [f"{limits[name]} inputs {how}" for name, how in LIMITS.items() if limits[name] is not None]
    return ", ".join(parts) or "none"


def usage_table(rows: list[dict[str, Any]]) -> Table:
    """A row per client and model: inputs used, of how many."""
    table = Table(title="Inputs used, of those allowed", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("client", "model"):
        table.add_column(heading, overflow="fold")
    for heading in ("in all", "today", "a minute", "last use (UTC)"):
        table.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        limits = row["budget"] or {}
        total, today, minute = (allowed(limits.get(name), bool(limits)) for name in LIMITS)
        used = (f"{row['used']} of {total}", f"{row['today']} of {today}", minute)
        table.add_row(*map(Text, (row["client"], row["model"], *used, moment(row["last_use"]))))
    return table


def allowed(limit: int | None, own: bool) -> str:
    """A limit for people."""
    if limit is not None:
        return str(limit)
    return "any" if own else "default"


def moment(seconds: int | None) -> str:
    """A time in seconds since 1970 for people."""
    try:
        return "-" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return "beyond the calendar"
