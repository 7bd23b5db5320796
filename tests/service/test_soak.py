"""Ten thousand predictions while clients die: none wrong, none lost, and the server as it was."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from faults.parties import ServerProcess
from tacit import Model
from tacit.session.watch import Snapshot, look

MORTALS = Path(__file__).with_name("mortals.py")
PREDICTIONS = 10_000
BEFORE = 1_500
"""Predictions after which the server has all that it will hold."""
CROWDS = 3
GROWTH = 24 << 20
"""What allocators may keep more of after ten times the work, in bytes."""


def crowd(server: ServerProcess, file: Path, predictions: int, seed: int) -> dict[str, int]:
    """What became of the clients of so many predictions."""
    command = [sys.executable, str(MORTALS), server.address, str(server.pin), str(file)]
    quiet = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a process of one thread may fork
    started = [
        subprocess.Popen(
            [*command, str(predictions // CROWDS), str(seed + number)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=quiet,
        )
        for number in range(CROWDS)
    ]  # fmt: skip
    total: dict[str, int] = {}
    for process in started:
        out, err = process.communicate(timeout=900)
        assert process.returncode == 0, err
        for name, count in json.loads(out).items():
            total[name] = total.get(name, 0) + count
        assert total["lost"] == 0, err
    return total


def at_rest(server: ServerProcess) -> Snapshot:
    """The server when the last session is over."""
    end = time.monotonic() + 60
    while (found := look(server.metrics)).total("tacit_active_sessions"):
        assert time.monotonic() < end, found.sessions
        time.sleep(0.1)
    return found


def test_ten_thousand_predictions(job, tmp_path):
    x = np.random.default_rng(3).uniform(0, 1, (64, 2, 6, 6)).astype(np.float32)
    np.savez(tmp_path / "inputs.npz", x=x, expected=Model(job.model).simulate(x))
    ledger = tmp_path / "ledger"
    server = ServerProcess(job.model, "--metrics", "127.0.0.1:0", "--ledger", ledger, "--batch", 8)
    try:
        crowd(server, tmp_path / "inputs.npz", BEFORE, 1)
        early = at_rest(server)
        found = crowd(server, tmp_path / "inputs.npz", PREDICTIONS, 100)
        late = at_rest(server)
        assert found["right"] >= PREDICTIONS - CROWDS
        assert (found["wrong"], found["lost"]) == (0, 0)
        assert found["killed"] > 20
        assert late.total("tacit_panics_total") == 0
        assert late.total("tacit_open_descriptors") <= early.total("tacit_open_descriptors")
        grown = late.total("tacit_memory_bytes") - early.total("tacit_memory_bytes")
        assert grown < GROWTH
        print(f"{found}, {grown / 2**20:.1f} MB more, {server.status('Threads')} threads")
        server.signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
    finally:
        server.close()
