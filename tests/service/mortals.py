"""Clients of which some die: `python mortals.py SERVER PIN INPUTS.npz PREDICTIONS SEED`.

Sessions of up to 64 inputs, each in a process of its own, a third of which are killed at a random moment. The last line
is what became of them: predictions right and wrong, processes that were killed, and errors of those that were not.
"""

import json
import os
import random
import signal
import sys
import time

import numpy as np
from tacit import Client, TacitError

MOST = 64
KILLED = 1 / 3


def session(address: str, pin: str, x: np.ndarray, expected: np.ndarray, count: int) -> int:
    """Exit code of a process that asks for the first `count` results: 0 right, 1 wrong, 2 none."""
    client = Client(address, pin=pin, timeout_seconds=120, connect_seconds=60, session_seconds=600, retry_for=120)
    try:
        outputs = client.predict(x[:count]).outputs
    except TacitError as error:
        print(error, file=sys.stderr, flush=True)
        return 2
    return 0 if np.array_equal(outputs, expected[:count]) else 1


def main(address: str, pin: str, file: str, predictions: int, seed: int) -> None:
    with np.load(file) as archive:
        x, expected = archive["x"], archive["expected"]
    chance = random.Random(seed)
    found = {"right": 0, "wrong": 0, "killed": 0, "lost": 0}
    usual = 0.5
    while found["right"] + found["wrong"] < predictions:
        count = chance.randint(1, MOST)
        child = os.fork()
        if child == 0:
            os._exit(session(address, pin, x, expected, count))
        began = time.monotonic()
        if chance.random() < KILLED:
            time.sleep(chance.uniform(0, usual))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            found["killed"] += 1
            continue
        usual += 0.1 * (time.monotonic() - began - usual)
        code = os.WEXITSTATUS(status)
        found["lost"] += code == 2
        found["right"] += count * (code == 0)
        found["wrong"] += count * (code == 1)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
