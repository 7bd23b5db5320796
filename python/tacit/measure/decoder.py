"""What a token of a private language model costs: steps of one session, after the first."""

from statistics import median
from time import monotonic
from typing import Any

import numpy as np

from tacit import _core
from tacit.data.text import Text
from tacit.errors import MisuseError
from tacit.measure.bench import commit
from tacit.measure.machine import machine
from tacit.model import Progress
from tacit.session.generate import Cost, cost_of
from tacit.session.pair import Pair


def bench_decoder(pair: Pair, context: int | None, tokens: int, progress: Progress | None = None) -> dict[str, Any]:
    """Steps of a session with a model that keeps keys and values: `tokens` of them, behind one that counts as setup.

    `per_token` has the mean of bytes and rounds, of both directions, and the median of seconds. Bytes and rounds are
    the same whatever the tokens are and however many there were before. `exact` says whether they are those that the
    plan says. Raises `MisuseError` for a model without steps, or whose context is not `context` where that is given.
    """
    text = pair.model.text
    steps = None if text is None or text.decoding is None else text.decoding.steps
    if text is None or steps is None:
        raise MisuseError(f"{pair.model.path} keeps no keys and values: compile a language model with --context N")
    if context is not None and context != steps.context:
        raise MisuseError(f"{pair.model.path} has a context of {steps.context}; compile it with --context {context}")
    seconds, costs = [], []
    with pair.server() as server, pair.dial(server).session(tokens + 1) as session:
        for done, x in enumerate(random_steps(text, tokens + 1)):
            began = monotonic()
            costs.append(cost_of(session.predict(x[None]).report))
            seconds.append(monotonic() - began)
            if progress is not None:
                progress(done + 1, tokens + 1)
    planned = Cost.between(cost_of(pair.predicted(1)), cost_of(pair.predicted(tokens + 1)))
    spent = Cost.between(costs[0], costs[-1])
    return {
        "bench": "decoder",
        "machine": machine(),
        "version": _core.__version__,
        "commit": commit(),
        "threads": pair.threads,
        "network": pair.network,
        "context": steps.context,
        "tokens": tokens,
        "first": {"bytes": costs[0].bytes, "rounds": costs[0].rounds, "seconds": seconds[0]},
        "per_token": {
            "bytes": spent.bytes / tokens,
            "rounds": spent.rounds / tokens,
            "seconds": median(seconds[1:]),
        },
        "planned": {"bytes": planned.bytes / tokens, "rounds": planned.rounds / tokens},
        "exact": spent == planned,
    }


def random_steps(text: Text, count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Inputs (count, rows, 1) of random tokens under a fixed seed, one after another."""
    if text.decoding is None or text.tables is None:
        raise MisuseError("the public embedding is missing; read the model's file X.text")
    ids = np.random.default_rng(0).integers(0, len(text.tables.words), count)
    return text.inputs(text.decoding.inputs(ids.tolist(), text.sequence, text.pad))
