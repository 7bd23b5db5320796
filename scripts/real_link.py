"""Plans on a link that nobody imitates: sessions through a relay with a real delay and bandwidth, as a table.

`.venv/bin/python scripts/real_link.py X.tacit INPUT.npy [--round-trip 40] [--bandwidth 400] [--repeat 3]` serves the
model planned for the link (`--link`), measured (`--protocols measured`) and by default, and asks each for one input in
turns. Seconds are medians of whole sessions, bytes and rounds those of the client's report; a client that comes back
to a server that measures is not measured again. INPUT.npy has an input, or several of which the first is taken.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
from tacit import Client

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from relay import relay

PATIENCE = {"timeout_seconds": 600.0, "connect_seconds": 60.0}


def serve(model: Path, options: list[str]) -> tuple[subprocess.Popen[str], str]:
    """A server and its address."""
    command = [sys.executable, "-m", "tacit", "serve", str(model), "--listen", "127.0.0.1:0", "--json", "--plaintext"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["listening"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("input", type=Path)
    parser.add_argument("--round-trip", type=float, default=40.0, help="milliseconds")
    parser.add_argument("--bandwidth", type=float, default=400.0, help="Mbit/s")
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    x = np.ascontiguousarray(np.load(chosen.input)[:1], np.float32)
    link = f"{chosen.round_trip:g}ms,{chosen.bandwidth:g}"
    ways = {"planned": ["--link", link], "measured": ["--protocols", "measured"], "default": []}
    servers = {name: serve(chosen.model, options) for name, options in ways.items()}
    found: dict[str, list[tuple[float, int, int]]] = {}
    try:
        for _ in range(chosen.repeat):
            for name, (_, server) in servers.items():
                with relay(server, chosen.round_trip, chosen.bandwidth) as address:
                    report = Client(address, plaintext=True, keep_keys=False, **PATIENCE).predict(x).report
                again = name == "measured" and name in found
                cost = (report["seconds"], report["rounds"], sum(report["bytes"].values()))
                found.setdefault("measured before" if again else name, []).append(cost)
    finally:
        for process, _ in servers.values():
            process.kill()
    planned = median(seconds for seconds, _, _ in found["planned"])
    print(f"{link}: way, seconds, over planned, rounds, bytes")
    for name, costs in found.items():
        seconds = median(seconds for seconds, _, _ in costs)
        print(f"{name:16} {seconds:8.3f} {seconds / planned:6.3f} {costs[0][1]:6} {costs[0][2]:12,}")


if __name__ == "__main__":
    main()
