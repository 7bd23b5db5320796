"""Operations between two fresh processes each, one after another: what `tacit calibrate` measures.

A session of a model runs in two processes that have just started, with nothing in their caches and heaps; within one
process that goes on and on, operations are up to a third quicker. `python -m tacit.measure.workload RUNS` runs
all of them in turns, each time in a client and a server that it forks, and prints a line of JSON for each run: how long
it took.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from tacit import _core
from tacit.report.terminal import emit_json


def forked(body: Callable[[int], None]) -> tuple[int, int]:
    """A child that runs `body` with a descriptor to write to; its process id, and the descriptor to read that from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child != 0:
        os.close(writing)
        return child, reading
    code = 1
    try:
        os.close(reading)
        body(writing)
        code = 0
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent's code must not run here
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(code)
    raise AssertionError("not reached")


def once(work: dict[str, Any]) -> dict[str, float]:
    """Seconds of one session of `work`, at the client: of the setup, and of all that follows."""
    operation = json.dumps(work["operation"])
    chosen = {"ot": work["ot"]}

    def serve(writing: int) -> None:
        server = _core.BenchServer(operation, json.dumps({**chosen, "threads": 1}))
        os.write(writing, f"{server.address} {server.pin}\n".encode())
        server.run()

    def ask(writing: int) -> None:
        options = json.dumps({"pin": pin, "threads": 1})
        phases = json.loads(_core.bench(operation, json.dumps(chosen), address, options))["phases"]
        setup, offline, online = (phases[name]["seconds"] or 0.0 for name in ("setup", "offline", "online"))
        os.write(writing, json.dumps({"setup": setup, "run": offline + online}).encode())

    server, listening = forked(serve)
    with os.fdopen(listening) as line:
        address, _, pin = line.readline().strip().partition(" ")
        client, told = forked(ask)
        with os.fdopen(told) as answer:
            took = answer.read()
    failed = [os.waitpid(child, 0)[1] != 0 for child in (client, server)]
    if any(failed):
        sys.exit(f"error: measuring {operation} failed")
    result: dict[str, float] = json.loads(took)
    return result


def main(runs: int) -> None:
    """Print the seconds of every operation, all operations `runs` times over."""
    works = json.loads(_core.wanted())
    for _ in range(runs):
        for work in works:
            emit_json(once(work))


if __name__ == "__main__":
    main(int(sys.argv[1]))
