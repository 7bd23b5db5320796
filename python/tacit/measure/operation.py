"""One operation between two processes: the client here, the server in a process of its own, TLS between.

`python -m tacit.measure.operation OPERATION OPTIONS` (both JSON) is that server. It prints two lines of
JSON: where it listens, and what its one session used.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any

from tacit import _core
from tacit.errors import TacitError
from tacit.measure.bench import median
from tacit.model import Progress
from tacit.report.terminal import emit_json
from tacit.session.client import TIMEOUT_SECONDS
from tacit.session.pair import both, started
from tacit.session.usage import Usage


@dataclass(frozen=True)
class OperationPair:
    """How to measure an operation (as the core reads it) between two processes over loopback.

    `ot` says where correlated transfers come from (see `Listening`); of the operation ot its kind does. `offline`
    prepares the operation, linear layers too, before its input; `post_quantum` is as there.
    """

    operation: dict[str, Any]
    threads: int | None = None
    timeout_seconds: float = TIMEOUT_SECONDS
    network: str | None = None
    ot: str = "auto"
    offline: bool = False
    post_quantum: bool = False

    def options(self) -> dict[str, Any]:
        """Options of both parties' sessions; absent ones are left out."""
        chosen = {"timeouts": {"idle": self.timeout_seconds}, "threads": self.threads, "network": self.network}
        return {name: value for name, value in chosen.items() if value is not None}

    def run(self) -> dict[str, Any]:
        """One session: the client's report, with what both processes used.

        `seconds` are those of the party that ended last: of some operations it is the server.
        """
        operation = json.dumps(self.operation)
        settings: dict[str, Any] = {"ot": self.ot, "offline": 1 if self.offline else None}
        settings |= {"post_quantum": True} if self.post_quantum else {}
        with started(["tacit.measure.operation", operation, json.dumps({**self.options(), **settings})]) as server:
            usage = Usage()
            options = {**self.options(), "pin": server.pin}
            measured = json.loads(_core.bench(operation, json.dumps(settings), server.address, json.dumps(options)))
            mine = {"party_seconds": measured["seconds"], **usage.report()}
            theirs = server.final_report(self.timeout_seconds)
        used = both(mine, theirs)
        return {**measured, "seconds": max(used["party_seconds"].values()), "network": self.network, **used}


def bench_operation(pair: OperationPair, repeat: int, progress: Progress | None = None) -> dict[str, Any]:
    """`repeat` fresh sessions with one operation."""
    name = pair.operation.get("function", pair.operation["operation"])
    conditions = {"bench": name, "threads": pair.threads}
    return {**conditions, **median(pair.run, repeat, progress)}


def serve(operation: str, options: str) -> None:
    """Serve one client."""
    server = _core.BenchServer(operation, options)
    emit_json({"listening": server.address, "pin": server.pin})
    usage = Usage()
    report = json.loads(server.run())
    emit_json({"party_seconds": report["seconds"], **usage.report()})


if __name__ == "__main__":
    try:
        serve(*sys.argv[1:])
    except TacitError as error:
        sys.exit(f"error: {error}")
