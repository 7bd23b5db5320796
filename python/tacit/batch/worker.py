"""A worker: one session at a time, tried again as a whole."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from tacit.batch.dataset import Chunk
from tacit.batch.results import Row
from tacit.errors import BusyError, MisuseError, PeerError, RefusedError, TransportError
from tacit.session.client import Client, Prediction

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
"""Seconds before a session is tried again: doubled each time, and drawn from the upper half."""


@dataclass(frozen=True)
class Sessions:
    """How a job runs sessions: `inputs` in each, `workers` at a time in a `pool`, each tried up to `tries` times."""

    inputs: int = 16
    workers: int = 2
    pool: str = "threads"
    tries: int = 6

    def __post_init__(self) -> None:
        if min(self.inputs, self.workers, self.tries) < 1:
            raise MisuseError("a job has at least one input in a session, one worker, and one try")


@dataclass(frozen=True)
class Done:
    """A session: its rows, or why it `failed`, and how often it was tried; or inputs that an earlier job answered."""

    chunk: Chunk
    tries: int
    rows: tuple[Row, ...] = ()
    header: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    failed: str | None = None
    resumed: bool = False


def copied(client: Client) -> dict[str, Any]:
    """The options of a client, which go to another process where a client does not."""
    return {each.name: getattr(client, each.name) for each in fields(client) if each.init}


class Worker:
    """A client that runs the sessions of a job, one after another."""

    def __init__(self, options: dict[str, Any], tries: int, sleep: Callable[[float], None] = time.sleep) -> None:
        """A worker with a client of these options, who tries each session up to `tries` times."""
        self.client = Client(**options)
        self.tries = tries
        self.sleep = sleep

    def __call__(self, chunk: Chunk) -> Done:
        """Run a session over a chunk, from the start and with fresh randomness each time that one breaks off.

        An input that does not fit fails at once, and so does what the server answers beside the protocol. Raises
        `RefusedError`, since a server that refuses this client refuses the next session too.
        """
        said = ""
        for attempt in range(1, self.tries + 1):
            try:
                prediction = self.client.predict(chunk.x)
            except RefusedError:
                raise
            except (BusyError, TransportError) as error:
                said = str(error)
                if attempt < self.tries:
                    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))
                    self.sleep(random.uniform(longest / 2, longest))
            except (MisuseError, PeerError) as error:
                return Done(chunk, attempt, failed=str(error))
            else:
                return done(chunk, attempt, prediction)
        return Done(chunk, self.tries, failed=said)


def done(chunk: Chunk, tries: int, prediction: Prediction) -> Done:
    """What a session gave, without what is the same in all."""
    if prediction.report["plan"]["graph"].get("states"):
        raise MisuseError("a model with states reads streams in order; its inputs cannot be spread over sessions")
    outputs = zip(chunk.items, prediction.outputs.tolist(), strict=True)
    rows = tuple(Row(item.id, item.digest, output) for item, output in outputs)
    costs = {name: prediction.report[name] for name in ("bytes", "rounds", "seconds")}
    return Done(chunk, tries, rows, header_of(prediction), costs)


def header_of(prediction: Prediction) -> dict[str, Any]:
    """What all results of a model have in common, and what makes real numbers of them."""
    report, graph = prediction.report, prediction.report["plan"]["graph"]
    names = ("model", "graph_digest", "reveal", "output_scale", "certain")
    known: dict[str, Any] = {name: report[name] for name in names if name in report}
    return {**known, "labels": prediction.names, "outputs": graph.get("outputs", []), "link": graph.get("link")}
