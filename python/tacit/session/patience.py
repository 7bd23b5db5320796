"""How long a party waits: limits of the connection, of the next byte, and of a whole session."""

from typing import Protocol

from tacit.errors import MisuseError

SHORTEST_TIMEOUT = 0.001
LONGEST_TIMEOUT = 1e9
"""Bounds of all three limits, in seconds."""


class Patient(Protocol):
    """Anything with the three limits of the timeout policy, in seconds."""

    @property
    def connect_seconds(self) -> float:
        """The limit for the connection, and again for the TLS handshake."""

    @property
    def timeout_seconds(self) -> float:
        """The limit for the next byte, in either direction."""

    @property
    def session_seconds(self) -> float:
        """The limit for the whole session after the handshake."""


def timeouts(party: Patient) -> dict[str, float]:
    """The timeout policy of a client or server as the core reads it.

    Raises `MisuseError` naming a limit that is none.
    """
    for name in ("connect_seconds", "timeout_seconds", "session_seconds"):
        # Infinity and nan, which JSON does not have, are not in this range either.
        if not SHORTEST_TIMEOUT <= getattr(party, name) <= LONGEST_TIMEOUT:
            raise MisuseError(
                f"`{name}` is {SHORTEST_TIMEOUT:g} to {LONGEST_TIMEOUT:,.0f} seconds, not {getattr(party, name)}"
            )
    return {"connect": party.connect_seconds, "idle": party.timeout_seconds, "session": party.session_seconds}
