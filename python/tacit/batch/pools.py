"""Workers side by side: in threads, or in processes of their own."""

import multiprocessing
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from tacit.batch.dataset import Chunk
from tacit.batch.worker import Done, Sessions, Worker
from tacit.errors import MisuseError

AHEAD = 2
"""Sessions that are handed out for each worker: the next is there when one ends, and data sets are not read at once."""
own: Worker | None = None
"""The worker of a process."""


def equip(options: dict[str, Any], tries: int) -> None:
    """Make the worker of a process."""
    global own  # noqa: PLW0603 (a process of a pool has no other place)
    own = Worker(options, tries)


def work(chunk: Chunk) -> Done:
    """Run a session in a process of the pool."""
    assert own is not None
    return own(chunk)


@contextmanager
def threads(options: dict[str, Any], tries: int, workers: int) -> Iterator[tuple[Executor, Callable[[Chunk], Done]]]:
    """So many workers in threads: sessions compute outside of the interpreter."""
    idle: SimpleQueue[Worker] = SimpleQueue()
    for _ in range(workers):
        idle.put(Worker(options, tries))

    def borrowed(chunk: Chunk) -> Done:
        worker = idle.get()
        try:
            return worker(chunk)
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(workers, thread_name_prefix="tacit") as pool:
        yield pool, borrowed


@contextmanager
def processes(options: dict[str, Any], tries: int, workers: int) -> Iterator[tuple[Executor, Callable[[Chunk], Done]]]:
    """So many workers in processes, for inputs whose preparation takes longer than their sessions."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=equip, initargs=(options, tries)) as pool:
        yield pool, work


POOLS = {"threads": threads, "processes": processes}


def spread(chunks: Iterable[Chunk], options: dict[str, Any], how: Sessions) -> Generator[Done, None, None]:
    """All sessions of a job in the order in which they end; when one raises, those that have not begun are dropped."""
    if how.pool not in POOLS:
        raise MisuseError(f"`{how.pool}` is no pool: {', '.join(POOLS)}")
    with POOLS[how.pool](options, how.tries, how.workers) as (executor, session):
        running: set[Future[Done]] = set()
        try:
            for chunk in chunks:
                running.add(executor.submit(session, chunk))
                if len(running) >= AHEAD * how.workers:
                    ended, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (each.result() for each in ended)
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in ended)
        finally:
            for each in running:
                each.cancel()
