"""A client that asks item after item: `python client.py ADDRESS PIN TOKENS NUMBER INPUTS.npz`.

Each line of standard input is the number of an input, each line of standard output what became of its session. It is a
process of its own, so that it can be killed.
"""

import json
import sys
import time

import numpy as np
from tacit import Client, TacitError


def main(address: str, pin: str, tokens: str, number: int, file: str) -> None:
    with open(tokens) as lines:  # noqa: PTH123 (the process starts sooner without pathlib)
        token = lines.read().split()[number]
    with np.load(file) as archive:
        x = archive["x"]
    client = Client(address, pin=pin, token=token, timeout_seconds=60, connect_seconds=30)
    for line in sys.stdin:
        at, began = int(line), time.monotonic()
        try:
            found = {"output": client.predict(x[at : at + 1]).outputs[0].tolist()}
        except TacitError as error:
            found = {"kind": type(error).__name__, "error": str(error)}
        print(json.dumps({"item": at, "seconds": time.monotonic() - began, **found}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
