"""`tacit.map_private`: a data set through private sessions."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.batch import dataset as data
from tacit.batch import ray_data
from tacit.batch.dataset import Item
from tacit.batch.pools import spread
from tacit.batch.results import Results
from tacit.batch.worker import Done, Sessions, copied
from tacit.model import Model, Progress
from tacit.session.client import Client, Prediction
from tacit.session.pair import ServerProcess, started

USUAL = Sessions()


@dataclass(frozen=True)
class Mapped:
    """What a job gave: `ids` (N), `outputs` (N, outputs) of those that were answered, in the order of the data set.

    `failed` says of each input without a result why. `report` has `inputs`, `resumed` (those that an earlier job
    had answered), `sessions`, `retries`, `seconds`, `bytes`, `rounds`; `header` what all results have in common.
    """

    ids: list[str]
    outputs: NDArray[np.int64]
    failed: dict[str, str]
    header: dict[str, Any]
    report: dict[str, Any]

    @property
    def prediction(self) -> Prediction:
        """The results as one session would give them, without costs and plan."""
        graph = {"outputs": self.header["outputs"], "link": self.header["link"]}
        return Prediction(self.outputs, {**self.header, "plan": {"graph": graph}})

    @property
    def names(self) -> list[str]:
        """What `classes` number, where that has names."""
        return list(self.header["labels"])

    @property
    def classes(self) -> NDArray[np.int64]:
        """Class numbers (N,): the first largest logit, or what the server revealed."""
        return self.prediction.classes

    @property
    def logits(self) -> NDArray[np.float64] | None:
        """Real outputs (N, outputs); None when only labels are revealed."""
        return self.prediction.logits


def map_private(  # noqa: PLR0913 (one parameter per choice)
    target: Client | Model | Path | str,
    dataset: Any,
    *,
    results: Path | str | None = None,
    inputs_per_session: int = USUAL.inputs,
    workers: int = USUAL.workers,
    pool: str = USUAL.pool,
    tries: int = USUAL.tries,
    progress: Progress | None = None,
) -> Mapped:
    """Run every input of a data set through private sessions with a server, or with all servers behind a door.

    `target` is a `Client` that says where the server or door is; or a compiled model (a `Model` or its file), which a
    server process of its own on this machine serves then. `dataset` is an array (N, *shape) of float32, a file (.npy,
    .npz, .csv, .parquet), a data frame of numbers, a mapping from ids to inputs, anything that yields inputs or pairs
    (id, input), or a `ray.data.Dataset` with columns `id` and `x`, which runs on the workers of Ray.

    Inputs go in sessions of `inputs_per_session` (1 to 1,000,000), `workers` sessions at a time, in `pool` "threads" or
    "processes". A session that breaks off is tried again as a whole, with fresh randomness, up to `tries` times; the
    server counts inputs that it answered to a client who is gone, so budgets may be charged for them twice. Results
    are kept by id, once each. With `results` (a file) they are on the disk after each session, and a job that is
    started again with the same file goes on with what lacks. `progress` is called with (done, total).

    Raises `MisuseError` for inputs that are none and for a file of other results, `RefusedError` where the server
    refuses this client. Inputs that fail for other reasons are in `failed`, and a second run tries them again.
    """
    how = Sessions(inputs_per_session, workers, pool, tries)
    wanted = Model(Path(target)).wanted if isinstance(target, Path | str) else None
    if isinstance(dataset, Path | str):
        dataset = data.read(Path(dataset), target.wanted if isinstance(target, Model) else wanted)
    with Results(None if results is None else Path(results)) as kept, reached(target) as client:
        on_ray = ray_data.is_dataset(dataset)
        job = Job(kept, progress, dataset.count() if on_ray else data.size(dataset), on_ray)
        if on_ray:
            sessions = ray_data.spread(dataset, kept, copied(client), how)
        else:
            todo = data.chunks(job.missing(data.items(dataset)), how.inputs)
            sessions = spread(todo, copied(client), how)
        with closing(sessions):
            for session in sessions:
                job.take(session)
        return job.mapped()


class Job:
    """What has become of a data set so far."""

    def __init__(self, kept: Results, progress: Progress | None, total: int | None, unordered: bool = False) -> None:
        """A job that begins; `kept` has what earlier ones did, and `total` is the number of inputs where known.

        Inputs that are `unordered` are in the order of their results.
        """
        self.unordered = unordered
        self.kept, self.progress, self.total = kept, progress, total
        self.began = monotonic()
        self.order: list[str] = []
        self.failed: dict[str, str] = {}
        self.before = set(kept.rows)
        self.sessions = self.retries = self.rounds = self.answered = 0
        self.bytes = {"client_to_server": 0, "server_to_client": 0}

    def missing(self, given: Iterable[Item]) -> Iterator[Item]:
        """The inputs without a result."""
        for item in given:
            self.order.append(item.id)
            if self.kept.has(item.id, item.digest):
                self.advance(1)
            else:
                yield item

    def take(self, session: Done) -> None:
        """Keep what a session gave."""
        if self.unordered:
            self.order += [item.id for item in session.chunk.items]
        if session.failed is not None:
            self.failed |= {item.id: session.failed for item in session.chunk.items}
        elif not session.resumed:
            self.kept.add(session.header, session.rows)
            self.sessions += 1
            self.rounds += int(session.report["rounds"])
            for way in self.bytes:
                self.bytes[way] += int(session.report["bytes"][way])
        self.retries += session.tries - 1
        self.advance(len(session.chunk.items))

    def advance(self, inputs: int) -> None:
        """Tell how far the job is."""
        self.answered += inputs
        if self.progress is not None:
            self.progress(self.answered, self.total or self.answered)

    def mapped(self) -> Mapped:
        """The end of the job."""
        rows = [self.kept.rows[name] for name in self.order if name in self.kept.rows]
        width = len(rows[0].output) if rows else 0
        return Mapped(
            ids=[row.id for row in rows],
            outputs=np.asarray([row.output for row in rows], np.int64).reshape(len(rows), width),
            failed=self.failed,
            header=self.kept.header or {},
            report={
                "inputs": len(rows),
                "resumed": sum(row.id in self.before for row in rows),
                "failed": len(self.failed),
                "sessions": self.sessions,
                "retries": self.retries,
                "seconds": monotonic() - self.began,
                "bytes": self.bytes,
                "rounds": self.rounds,
            },
        )


@contextmanager
def reached(target: Client | Model | Path | str) -> Iterator[Client]:
    """A client of the server that was named, or of one that serves a model until the end of the block."""
    if isinstance(target, Client):
        yield target
        return
    path = target.path if isinstance(target, Model) else Path(target)
    missing = (target if isinstance(target, Model) else Model(path)).wanted.missing
    with started(["tacit", "serve", str(path), "--listen", "127.0.0.1:0", "--json"]) as server:
        Thread(target=emptied, args=(server,), daemon=True).start()
        yield Client(server.address, pin=server.pin, missing=missing)


def emptied(server: ServerProcess) -> None:
    """Read the lines of a server, which waits for a reader else."""
    assert server.process.stdout is not None
    try:
        for _ in server.process.stdout:
            pass
    except ValueError:  # closed at the end of the block
        return
