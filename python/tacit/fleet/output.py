"""Standard output for a command's own results: what Ray prints there goes to standard error."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class MainThreadOnly:
    """A stream whose writes of other threads than the main one go to another stream; else it is the first."""

    def __init__(self, own: TextIO, others: TextIO) -> None:
        """Writes of the main thread go to `own`, those of all others to `others`."""
        self.own, self.others = own, others

    def write(self, text: str) -> int:
        """Write to the stream of this thread."""
        main = threading.current_thread() is threading.main_thread()
        return (self.own if main else self.others).write(text)

    def __getattr__(self, name: str) -> Any:
        """Everything else is that of the first stream."""
        return getattr(self.own, name)


@contextmanager
def own_output() -> Iterator[None]:
    """Keep standard output for the main thread until the end of the block.

    Ray's threads print there that workers have died, whatever it is told about logs.
    """
    before = sys.stdout
    sys.stdout = MainThreadOnly(before, sys.stderr)
    try:
        yield
    finally:
        sys.stdout = before
