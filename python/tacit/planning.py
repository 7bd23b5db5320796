"""How the protocols of single layers are chosen, as options of commands and of the core."""

from typing import Any

from tacit import calibration

PROTOCOLS = ("auto", "plain", *(f"digits{bits}" for bits in range(1, 9)), "circuits")
"""auto: of least predicted time on the given link; plain: what needs no link; the others: one kind for all layers."""


def options(protocols: str, network: str | None) -> dict[str, Any]:
    """Fields that the core plans by; only what differs from its defaults."""
    chosen: dict[str, Any] = {} if protocols == "auto" else {"protocols": protocols}
    known = calibration.rates() if network is not None else None
    return chosen if known is None else {**chosen, "rates": known}
