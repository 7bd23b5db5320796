"""Options of commands that run client and server as two processes on this machine."""

from dataclasses import dataclass

from tacit.cli.options import (
    AcceptLeakage,
    Network,
    Offline,
    PostQuantum,
    Protocols,
    RevealTo,
    SuitedBatch,
    SuitedPass,
    Threads,
    Timeout,
    Transfers,
)
from tacit.model import Model
from tacit.session.client import TIMEOUT_SECONDS
from tacit.session.pair import Pair


@dataclass(frozen=True)
class PairOptions:
    """How both parties run a model; `pair` makes them."""

    reveal: RevealTo = "output"
    ot: Transfers = "auto"
    post_quantum: PostQuantum = False
    offline: Offline = 0
    batch: SuitedBatch = None
    pass_inputs: SuitedPass = None
    threads: Threads = None
    timeout: Timeout = TIMEOUT_SECONDS
    network: Network = None
    accept_leakage: AcceptLeakage = False

    def pair(self, model: Model, protocols: str = "auto") -> Pair:
        """Both parties for a model."""
        return Pair(
            model,
            reveal=self.reveal,
            threads=self.threads,
            timeout_seconds=self.timeout,
            network=self.network,
            ot=self.ot,
            post_quantum=self.post_quantum,
            offline=self.offline,
            batch=self.batch,
            pass_inputs=self.pass_inputs or 1,
            accept_leakage=self.accept_leakage,
            protocols=protocols,
        )


@dataclass(frozen=True)
class PlannedPairOptions(PairOptions):
    """The options of a pair, and how its layers run."""

    protocols: Protocols = "auto"

    def planned(self, model: Model) -> Pair:
        """Both parties for a model, with the protocols that were chosen."""
        return self.pair(model, self.protocols)
