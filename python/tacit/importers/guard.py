"""Files whose nodes do not fit together are refused by name, whatever it is in them that a converter stumbles over."""

from collections.abc import Iterator
from contextlib import contextmanager

from tacit.errors import UnsupportedError

FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


@contextmanager
def guarded(name: str, operator: str) -> Iterator[None]:
    """Raise `UnsupportedError` naming the node for failures of the block that say nothing to people."""
    try:
        yield
    except FAILURES as failure:
        detail = f"{type(failure).__name__}: {failure}"
        what = f"node `{name}`: {operator} has inputs or attributes that do not fit together ({detail})"
        error = UnsupportedError(f"{what}; see that onnxruntime runs the model, and export it again")
        error.node = name
        raise error from failure
