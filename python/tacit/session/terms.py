"""What a session is planned by, as options of commands and of the core."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.measure import calibration
from tacit.session.reveal import Reveal


class Inputs(NamedTuple):
    """How many inputs a session has `all` together.

    So many `remembered` of them come first and are only for a model's states. The others come one by one, or, as with a
    draft of what a language model writes, `in_passes`. They are the first ones of a session that is `opened` for more
    where that is larger: what is prepared for several runs is then for those behind them too.
    """

    all: int
    remembered: int = 0
    in_passes: bool = False
    opened: int = 0


@dataclass(frozen=True)
class Terms:
    """What a server offers: options of `tacit serve` by name, and how many inputs there will be.

    `inputs` are one, or a batch, unless given; `also` are those of further sessions whose costs are asked for.
    `pass_inputs` are those of a run of several that follow each other, 1 where there are no such runs.
    `network` is loopback, lan, wan or RTTms,Mbps. `protocols` is auto (of least predicted time on the network), plain
    (what needs no link), measured (on the link to each client, which only a server can), or one way for all layers
    that have it, as digits4, circuits or ahead.
    `reveal` is what `tacit.session.reveal` reads.
    `post_quantum`: base transfers by ML-KEM-768 as well as by elliptic curves.
    """

    reveal: str = "output"
    ot: str = "auto"
    network: str | None = None
    offline: int = 0
    batch: int = 1
    protocols: str = "auto"
    inputs: Inputs | None = None
    also: tuple[Inputs, ...] = ()
    post_quantum: bool = False
    pass_inputs: int = 1

    def options(self) -> dict[str, Any]:
        """The terms as the core reads them, with the rates of this machine."""
        batch = several(self.batch)
        revealed = Reveal.of(self.reveal).options()
        settings: dict[str, Any] = {"reveal": revealed.pop("reveal"), "ot": self.ot, "batch": batch}
        settings |= {"pass": several(self.pass_inputs)} if self.pass_inputs != 1 else {}
        settings |= {"offline": self.offline or None, **({"post_quantum": True} if self.post_quantum else {})}
        inputs = self.inputs or Inputs(self.batch)
        known = options(self.protocols, self.network or "loopback")
        fields = inputs._asdict().items()
        asked: dict[str, Any] = {"inputs" if name == "all" else name: value for name, value in fields}
        asked |= {"also": [one._asdict() for one in self.also]}
        return {"settings": settings, "network": self.network, **asked, **revealed, **known}


def options(protocols: str, network: str | None) -> dict[str, Any]:
    """Fields that the core plans by; only what differs from its defaults."""
    chosen: dict[str, Any] = {} if protocols == "auto" else {"protocols": protocols}
    known = calibration.rates() if network is not None or protocols == "measured" else None
    return chosen if known is None else {**chosen, "rates": known}


def several(inputs: int) -> int | None:
    """Inputs of a run as the core reads them: nothing where each run has one."""
    return inputs if inputs != 1 else None
