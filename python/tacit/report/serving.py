"""What a server shows on the terminal: where it listens, what clients may pin, and how sessions ended."""

from typing import Any

from tacit.report import terminal


def show_address(
    address: str, pin: str | None, metrics: str | None = None, websocket: str | None = None, page: str | None = None
) -> None:
    """Where a server listens, and the command that reaches it."""
    terminal.console.print(f"listening on {address}", highlight=False)
    know = f"--pin {pin}" if pin else "--plaintext"
    terminal.console.print(f"tacit predict --server {address} {know} IN.npy", highlight=False, soft_wrap=True)
    if websocket is not None:
        terminal.console.print(f"browsers connect to {'wss' if pin else 'ws'}://{websocket}", highlight=False)
    if page is not None:
        terminal.console.print(f"page on {page}", highlight=False)
    if metrics is not None:
        terminal.console.print(f"metrics on http://{metrics}/metrics", highlight=False)


def show_offerings(offerings: list[dict[str, Any]]) -> None:
    """What clients may pin of each model, in the words of `predict`."""
    for model in offerings:
        plans = model["plan_digests"]
        pins = {"--graph-digest": model["graph_digest"], "--model-commitment": model["commitment"]}
        pins |= {"--plan-digest": plans[0]} if len(plans) == 1 else {}
        terminal.console.print(f"model {model['name']}", highlight=False, markup=False, soft_wrap=True)
        if model.get("secure_against") == "client":
            terminal.console.print("  secure against clients that send anything", highlight=False)
        if model["card"] is not None:
            pins["--card-key"] = model["card"]["key"]
        for option, digest in pins.items():
            if digest is not None:
                terminal.console.print(f"  {option} {digest}", highlight=False, soft_wrap=True)
        if len(plans) > 1:
            terminal.console.print(f"  {len(plans)} plans, by link and by what clients learn", highlight=False)


def show_card(card: dict[str, Any]) -> None:
    """A model card whose signature holds."""
    title = f"{card['name']} {card['version']}".rstrip()
    for line in (f"model card: {title}", card["description"], f"about the file {card['commitment']}"):
        if line:
            terminal.console.print(line, highlight=False, markup=False, soft_wrap=True)
    terminal.console.print(f"signed by {card['key']}", highlight=False, soft_wrap=True)


def show_session(session: dict[str, Any], json: bool) -> None:
    """One line about a session that ended, well or badly."""
    if json:
        terminal.emit_json(session)
    elif "error" in session:
        ended = "turned away" if session["end"] == "refused" else "failed"
        terminal.warn(f"session with {session['client']} {ended}: {session['error']['message']}")
    else:
        sent, received = terminal.traffic(session)
        time = terminal.duration(session["seconds"])
        end = "" if session["end"] == "finished" else "; the client was gone before it said goodbye"
        line = f"session: {sent} from the client, {received} to it, {time}{link_of(session)}{end}"
        terminal.console.print(line, highlight=False)


def link_of(session: dict[str, Any]) -> str:
    """The link that was measured, if it was."""
    link = session.get("link")
    if link is None:
        return ""
    round_trip = terminal.duration(link["round_trip_seconds"])
    return f", on a link of {round_trip} and {link['bits_per_second'] / 1e6:.0f} Mbit/s"
