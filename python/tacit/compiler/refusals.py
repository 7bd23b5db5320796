"""What the compiler refuses beside the importer and the engine, and what refusals of the engine advise."""

from collections.abc import Iterator
from contextlib import contextmanager

from tacit.data.preprocess import Preprocessing
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.source import Source

ADVICE = "; "
"""What stands between the reason of a refusal and what to do about it."""
REFUSED = "node `{}` is not supported; "
"""How the engine begins a refusal, before the reason."""


@contextmanager
def advised() -> Iterator[None]:
    """Add what to do to a refusal of the engine, also of one of its passes, that does not say it."""
    try:
        yield
    except (MisuseError, UnsupportedError) as error:
        passes = isinstance(error, UnsupportedError) or str(error).startswith("after `")
        if ADVICE in str(error).removeprefix(REFUSED.format(getattr(error, "node", None))) or not passes:
            raise
        again = UnsupportedError(f"{error}{ADVICE}change the layer, or choose an earlier result (--result NAME)")
        again.node = getattr(error, "node", None)
        raise again from error


def refuse_nothing(source: Source) -> None:
    """Raise `UnsupportedError` for a network whose result is its input."""
    origins = {node.output: node.inputs[0] for node in source.nodes if node.operation["op"] == "Identity"}
    name = source.output
    while name in origins:
        name = origins[name]
    if name == source.input_name:
        raise UnsupportedError(
            f"the result `{source.output}` is the input itself; choose a result that is computed (--result NAME)"
        )


def check_passes(suite: str, disabled: bool) -> None:
    """Raise `MisuseError` for a pass that the suite does not have."""
    if disabled and suite != "ufo":
        raise MisuseError(f"--disable-pass is for suite ufo; suite {suite} has no such passes")


def check_channels(shape: tuple[int, ...], preprocessing: Preprocessing | None) -> None:
    """Raise `MisuseError` when what the preprocessing makes cannot be an input of the model's `shape`."""
    if preprocessing is None:
        return
    side = preprocessing.crop
    if (
        len(shape) != 3
        or shape[0] != preprocessing.channels
        or side not in (None, shape[1])
        or side not in (None, shape[2])
    ):
        made = [preprocessing.channels, side or "height", side or "width"]
        raise MisuseError(f"the preprocessing makes images {made}; the model takes {list(shape)}")
