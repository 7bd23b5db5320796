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
from tacit.session.pair import Pair, both
from tacit.session.terms import Inputs
from tacit.session.usage import Usage

MANY = 64
"""Tokens of which the mean cost is planned: as many as a plan prepares layers for, or several times as many."""
LONG = 4 * MANY
"""Inputs of a session whose end is far behind those tokens."""


def bench_decoder(pair: Pair, context: int | None, tokens: int, progress: Progress | None = None) -> dict[str, Any]:
    """Steps of a session with a model that keeps keys and values, of a prompt and of an answer.

    There are `tokens` of each, behind one that counts as setup. `per_prompt_token`, of which nobody learns what may
    follow, and `per_token` have the mean of bytes and rounds, of both directions, and the median of seconds. Bytes and
    rounds are the same whatever the tokens are and however many there were before, and `exact` says whether they are
    those of the plan. `mean_per_token` of the plan is the mean over so many tokens of an answer that what is prepared
    for several together is in it, far from the end of a session, where less is prepared. With passes two of them come
    first, of which the second is `per_pass`, and two of another session have results, as with a draft:
    `per_drafted_pass` is the second of those. `session` has everything of the first session, of all its `inputs`,
    whose `cpu_seconds` and `peak_memory_bytes` are those of either party. Raises `MisuseError` for a model without
    steps, or whose context is not `context` where that is given, and for passes of no more tokens than are measured
    one by one.
    """
    text = pair.model.text
    steps = None if text is None or text.decoding is None else text.decoding.steps
    if text is None or steps is None:
        raise MisuseError(f"{pair.model.path} keeps no keys and values: compile a language model with --context N")
    if context is not None and context != steps.context:
        raise MisuseError(f"{pair.model.path} has a context of {steps.context}; compile it with --context {context}")
    at_once = pair.pass_inputs
    if 1 < at_once < tokens + 2:
        raise MisuseError(f"with --pass {at_once} measure at most {at_once - 2} --tokens, not {tokens}")
    lead = 2 * at_once if at_once > 1 else 0
    seconds, costs, total = [], [], 2 * tokens + 1
    passes: list[tuple[Cost, float]] = []
    steps_of = random_steps(text, lead + total)
    with pair.server() as server:
        usage = Usage()
        with pair.dial(server).session(lead + total) as session:
            for at in range(0, lead, at_once):
                began = monotonic()
                made = session.remember(steps_of[at : at + at_once])
                passes.append((cost_of(made), monotonic() - began))
            for done, x in enumerate(steps_of[lead:]):
                began = monotonic()
                # The first counts as setup.
                made = session.remember(x[None]) if done <= tokens else session.predict(x[None]).report
                costs.append(cost_of(made))
                seconds.append(monotonic() - began)
                if progress is not None:
                    progress(done + 1, total)
        used = both(usage.report(), server.final_report(pair.timeout_seconds))
    opened = lead + total
    sessions = [Inputs(lead + runs, lead + min(runs, tokens + 1), opened=opened) for runs in (1, tokens + 1, total)]
    sessions += [Inputs(lead + runs, lead + 1, opened=lead + LONG) for runs in (1, 1 + MANY)]
    sessions += [Inputs(inputs, inputs, opened=opened) for inputs in (at_once, lead)] if lead else []
    sessions += [Inputs(inputs, in_passes=True, opened=lead) for inputs in (at_once, lead)] if lead else []
    foreseen = [cost_of(planned) for planned in pair.predicted_of(sessions)]
    read, written = (Cost.between(*foreseen[at : at + 2]) for at in range(2))
    many = foreseen[3], foreseen[4]
    spent = [Cost.between(costs[0], costs[tokens]), Cost.between(costs[tokens], costs[-1])]
    wanted = [read, written]
    passed: dict[str, Any] = {}
    if lead:
        drafted = drafted_passes(pair, random_steps(text, lead))
        spent += [Cost.between(first[0], second[0]) for first, second in (passes, drafted)]
        wanted += [Cost.between(*foreseen[at : at + 2]) for at in (5, 7)]
        fields = zip(("per_pass", "per_drafted_pass"), spent[2:], (passes, drafted), strict=True)
        passed = {"pass": at_once}
        passed |= {field: {**each(cost, 1), "seconds": runs[1][1]} for field, cost, runs in fields}
    return {
        "bench": "decoder",
        "machine": machine(),
        "version": _core.__version__,
        "commit": commit(),
        "protocol": _core.PROTOCOL,
        "threads": pair.threads,
        "network": pair.network,
        "link": pair.link,
        "context": steps.context,
        "tokens": tokens,
        **used,
        "session": {
            "inputs": lead + total,
            "bytes": costs[-1].bytes,
            "rounds": costs[-1].rounds,
            "seconds": sum(seconds) + sum(run[1] for run in passes),
        },
        "first": {"bytes": costs[0].bytes, "rounds": costs[0].rounds, "seconds": seconds[0]},
        **passed,
        "per_prompt_token": {**each(spent[0], tokens), "seconds": median(seconds[1 : tokens + 1])},
        "per_token": {**each(spent[1], tokens), "seconds": median(seconds[tokens + 1 :])},
        "planned": {
            "per_prompt_token": each(read, tokens),
            "per_token": each(written, tokens),
            "mean_per_token": each(Cost.between(*many), MANY),
        },
        "exact": spent == wanted,
    }


def drafted_passes(pair: Pair, x: np.ndarray[Any, np.dtype[np.float32]]) -> list[tuple[Cost, float]]:
    """Costs of the session behind each pass over the inputs `x` (N, rows, 1), as with a draft, and seconds of each."""
    runs = []
    with pair.server() as server, pair.dial(server).session(len(x)) as session:
        for at in range(0, len(x), pair.pass_inputs):
            began = monotonic()
            made = session.predict(x[at : at + pair.pass_inputs]).report
            runs.append((cost_of(made), monotonic() - began))
    return runs


def each(cost: Cost, tokens: int) -> dict[str, float]:
    """What one of so many tokens costs."""
    return {"bytes": cost.bytes / tokens, "rounds": cost.rounds / tokens}


def random_steps(text: Text, count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Inputs (count, rows, 1) of random tokens under a fixed seed, one after another."""
    if text.decoding is None or text.tables is None:
        raise MisuseError("the public embedding is missing; read the model's file X.text")
    ids = np.random.default_rng(0).integers(0, len(text.tables.words), count)
    return text.inputs(text.decoding.inputs(ids.tolist(), text.sequence, text.pad))
