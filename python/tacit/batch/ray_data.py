"""Data sets of Ray Data: sessions run on the workers of a Ray cluster, results come back to the job that keeps them."""

import json
import sys
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from tacit.batch.dataset import Chunk, Item
from tacit.batch.results import Results, Row
from tacit.batch.worker import Done, Sessions, Worker
from tacit.errors import MisuseError

INPUT, ID = "x", "id"
"""Columns of a data set."""
DONE = "done"


def is_dataset(given: Any) -> bool:
    """Whether it is a data set of Ray; Ray is not loaded for the question."""
    ray = sys.modules.get("ray.data")
    return ray is not None and isinstance(given, ray.Dataset)


class RayWorker:
    """A worker in an actor of Ray: takes batches of rows, gives a row of JSON for each session."""

    def __init__(self, options: dict[str, Any], tries: int, known: dict[str, str]) -> None:
        """A worker that leaves inputs out whose ids are `known`, with the digests of their values."""
        self.worker = Worker(options, tries)
        self.known = known

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Run a session over the rows of a batch that have no result yet."""
        items = [Item(str(name), np.asarray(x, np.float32)) for name, x in zip(batch[ID], batch[INPUT], strict=True)]
        resumed = [item.id for item in items if self.known.get(item.id) == item.digest]
        other = [item.id for item in items if item.id in self.known and item.id not in resumed]
        if other:
            raise MisuseError(f"the results have one of another input with the id `{other[0]}`; name another file")
        todo = tuple(item for item in items if item.id not in self.known)
        content: dict[str, Any] = {"resumed": resumed, "ids": [item.id for item in todo]}
        if todo:
            done = self.worker(Chunk(todo))
            rows = [list(row) for row in done.rows]
            content |= {"rows": rows, "tries": done.tries, "failed": done.failed}
            content |= {"header": done.header, "report": done.report}
        return {DONE: np.asarray([json.dumps(content)], dtype=object)}


def numbered(dataset: Any) -> Any:
    """The two columns of a data set; raises `MisuseError` where one lacks: its rows have no order to number them by."""
    names = dataset.schema().names
    if INPUT not in names or ID not in names:
        raise MisuseError(f"a data set of Ray needs the columns `{ID}` and `{INPUT}`, not {', '.join(names)}")
    return dataset.select_columns([ID, INPUT])


def spread(dataset: Any, kept: Results, options: dict[str, Any], how: Sessions) -> Generator[Done, None, None]:
    """All sessions in the order in which they end; actors run them on the cluster that Ray is connected to."""
    known = {row.id: row.input for row in kept.rows.values()}
    arguments = {"options": options, "tries": how.tries, "known": known}
    sessions = numbered(dataset).map_batches(
        RayWorker,
        fn_constructor_kwargs=arguments,
        batch_size=how.inputs,
        batch_format="numpy",
        concurrency=how.workers,
        num_cpus=0,
    )
    for row in sessions.iter_rows():
        yield from read(json.loads(row[DONE]))


def read(content: dict[str, Any]) -> Iterator[Done]:
    """A session as the job takes it, and inputs that had their results before."""
    nothing = np.zeros(0, np.float32)
    if content["resumed"]:
        yield Done(Chunk(tuple(Item(name, nothing) for name in content["resumed"])), 1, resumed=True)
    if content["ids"]:
        chunk = Chunk(tuple(Item(name, nothing) for name in content["ids"]))
        rows = tuple(Row(*fields) for fields in content["rows"])
        yield Done(chunk, content["tries"], rows, content["header"], content["report"], content["failed"])
