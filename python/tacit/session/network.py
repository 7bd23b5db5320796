"""A link between the parties, as `--network` names it."""

from typing import Any, NamedTuple

from tacit import _core


class Network(NamedTuple):
    """Round-trip time in seconds and bandwidth in bits per second, each way."""

    round_trip_seconds: float
    bits_per_second: float

    def seconds(self, cost: dict[str, Any]) -> float:
        """Time on the wire of a cost: bytes both ways one after the other, half a round trip a round."""
        bits = 8 * float(sum(cost["bytes"].values()))
        return bits / self.bits_per_second + float(cost["rounds"]) * self.round_trip_seconds / 2


def parse(text: str) -> Network:
    """`lan`, `wan` or `RTTms,Mbps`, such as `20ms,100`, in the words of the core; else `MisuseError`."""
    return Network(*_core.link(text))
