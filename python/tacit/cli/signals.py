"""Signals as operators of long-running commands mean them."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handled(stop: Callable[[], None], end: Callable[[int], None], reload: Callable[[], None]) -> Iterator[None]:
    """Until the end of the block: the first SIGTERM or SIGINT stops, the second ends by its number, SIGHUP reloads.

    The handlers of before are put back afterwards.
    """
    stops = 0

    def stopped(number: int, _frame: FrameType | None) -> None:
        nonlocal stops
        stops += 1
        if stops > 1:
            end(number)
        else:
            stop()

    def reloaded(_number: int, _frame: FrameType | None) -> None:
        reload()

    handlers = {signal.SIGTERM: stopped, signal.SIGINT: stopped, signal.SIGHUP: reloaded}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


SIGNALLED = 128
"""What the shell adds to the number of the signal that ended a program."""
