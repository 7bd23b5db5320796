"""Where in a session a fault strikes: the first frame of each phase and layer, in each direction."""

from typing import Any, NamedTuple

from faults.relay import HEADER, TO_CLIENT, TO_SERVER, Frame

HELLO_TAGS = {1: "hello", 2: "plan", 3: "plan", 6: "hello", 8: "hello"}
DIRECTION = {TO_SERVER: "client_to_server", TO_CLIENT: "server_to_client"}
PHASES = ("hello", "plan", "setup", "offline", "conv", "relu", "sum", "maxpool", "gemm", "argmax", "result")
"""What the network of `conftest.job` goes through; `result` is the opening that ends a session."""
SILENT = {("result", TO_SERVER)}
"""Where one party sends nothing."""


class Moment(NamedTuple):
    """Frame number `index` of `sender`."""

    sender: str
    index: int


def moments(frames: list[Frame], report: dict[str, Any]) -> dict[tuple[str, str], Moment]:
    """For each (phase, sender) its first frame, from a clean session's frames and metered layers."""
    found: dict[tuple[str, str], Moment] = {}
    for sender, direction in DIRECTION.items():
        own = [frame for frame in frames if frame.sender == sender]
        for frame in own:
            if frame.tag in HELLO_TAGS:
                found.setdefault((HELLO_TAGS[frame.tag], sender), Moment(sender, frame.index))
        spans = [(named(layer), layer["bytes"][direction]) for layer in report["layers"]]
        at = 0
        for phase, length in spans:
            start = at
            while at < len(own) and sum(HEADER + len(f.body) for f in own[start:at]) < length:
                if own[at].tag not in HELLO_TAGS:
                    found.setdefault((phase, sender), Moment(sender, at))
                at += 1
    return found


def named(layer: dict[str, Any]) -> str:
    """The phase a row of the report belongs to."""
    if layer["phase"] != "online":
        return str(layer["phase"])
    return "result" if "share to the client" in layer["protocol"] else str(layer["name"])
