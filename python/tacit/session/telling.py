"""What a part of the core that runs in a thread tells, up to the last of it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

POLL_SECONDS = 0.1


def until_over(running: Future[Any], told: Callable[[float], str | None]) -> Iterator[str]:
    """What `told` gives while `running` goes on, and all that is left when it is over.

    `told` waits for up to so many seconds and gives None when there was nothing. Between its None and a look at
    `running` the last may be told and the thread end, so the end counts only if it came before `told` was asked.
    """
    while True:
        over = running.done()
        content = told(0.0 if over else POLL_SECONDS)
        if content is not None:
            yield content
        elif over:
            return
