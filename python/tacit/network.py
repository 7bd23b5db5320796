"""A link between the parties, as `--network` names it."""

from typing import Any, NamedTuple

from tacit.errors import MisuseError


class Network(NamedTuple):
    """Round-trip time in milliseconds and bandwidth in megabits per second, each way."""

    round_trip_ms: float
    megabits_per_second: float

    def seconds(self, cost: dict[str, Any]) -> float:
        """Time on the wire of a cost: bytes both ways one after the other, half a round trip a round."""
        bits = 8 * float(sum(cost["bytes"].values()))
        return bits / (self.megabits_per_second * 1e6) + float(cost["rounds"]) * self.round_trip_ms / 2e3


NAMED = {"lan": Network(0.3, 3000.0), "wan": Network(40.0, 400.0)}


def parse(text: str) -> Network:
    """`lan`, `wan` or `RTTms,Mbps`, such as `20ms,100`."""
    if text in NAMED:
        return NAMED[text]
    first, comma, second = text.partition(",")
    try:
        network = Network(float(first.removesuffix("ms")), float(second.removesuffix("Mbps")))
    except ValueError:
        network = Network(-1, -1)
    if not comma or not network.round_trip_ms >= 0 or not 0 < network.megabits_per_second < float("inf"):
        raise MisuseError(f"--network {text} is neither lan, wan nor RTTms,Mbps such as 20ms,100")
    return network
