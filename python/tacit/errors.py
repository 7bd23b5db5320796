"""The exception tree. Each error names the guilty side; a session is dropped after any of them.

- `TacitError`: the root.
- `MisuseError`: the caller's fault (wrong shape, wrong dtype, bad file); nothing was sent.
- `PeerError`: the other side sent something else than the protocol expects.
- `TransportError`: the connection failed, timed out, or could not be authenticated.
- `BusyError`: a `TransportError` of a server that is full or about to stop; its `retry_after` says in how many
  seconds it is worth trying again.
- `RefusedError`: a `TransportError` of a server that refuses this client, or what it asks for.
- `UnsupportedError`: a model or option this version cannot run; names the node and a way out.
"""

from typing import Any

from tacit._core import (
    BusyError,
    MisuseError,
    PeerError,
    RefusedError,
    TacitError,
    TransportError,
    UnsupportedError,
)

__all__ = ["BusyError", "MisuseError", "PeerError", "RefusedError", "TacitError", "TransportError", "UnsupportedError"]

KINDS: dict[type[BaseException], str] = {
    MisuseError: "misuse",
    PeerError: "peer",
    BusyError: "busy",
    RefusedError: "refused",
    TransportError: "transport",
    UnsupportedError: "unsupported",
    OSError: "system",
}


def failure(error: BaseException, message: str) -> dict[str, Any]:
    """An error as `--json` shows it: `kind`, `message`, and the `node` it is about or null.

    Kinds: misuse, peer, busy, refused, transport, unsupported, system (files and devices), usage (the command
    line), interrupted, internal.
    """
    found = [kind for base, kind in KINDS.items() if isinstance(error, base)]
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        found = ["interrupted"]
    elif hasattr(error, "exit_code"):
        found = ["usage"]
    return {"kind": (found or ["internal"])[0], "message": message, "node": getattr(error, "node", None)}
