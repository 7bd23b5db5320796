"""SPU between two processes of `.venv-peers`: prepared once, then as many sessions as wanted."""

import json
import os
import re
import socket
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from ratios import Cost
from works import Operator, Prepared

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-peers/bin/python"
RUNS = ("cold", "warm")
LINK = re.compile(r"Link details: total send bytes (\d+),")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "YACL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
START_SECONDS = 120.0
INSTALL = "SecretFlow SPU is not installed: `make .venv-peers/.packages` (about 1 GB)"


def version(python: Path = PYTHON) -> str | None:
    """Which SPU is installed; None without one."""
    if not python.exists():
        return None
    code = "import importlib.metadata as m; print(m.version('spu'))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def operator_job(work: Operator) -> dict[str, Any]:
    """An operator for `spu_prepare.py`; its result stays shared, as ours does."""
    fields = {name: value for name, value in asdict(work).items() if name not in ("title", "arguments")}
    return {**fields, "reveal": False}


def network_job(files: Prepared) -> dict[str, Any]:
    """A network for `spu_prepare.py`; its result goes to the client."""
    paths = {"network": str(files.exported.resolve()), "input": str(files.input.resolve())}
    return {**paths, "owner": "client", "ring_bits": 64, "reveal": True}


def prepare(job: dict[str, Any], folder: Path) -> Path:
    """Compile and share out; gives the job's file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.json"
    path.write_text(json.dumps({**job, "folder": str(folder.resolve())}))
    done = subprocess.run(
        [PYTHON, HERE / "spu_prepare.py", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"SPU did not prepare {folder.name}: {done.stdout[-2000:]}")
    return path


class Session:
    """Two parties that are loaded and wait."""

    def __init__(self, job: Path) -> None:
        ports = free_ports()
        self.logs: list[IO[str]] = [tempfile.TemporaryFile("w+") for _ in ports]
        self.parties = []
        for party, log in enumerate(self.logs):
            command = [str(word) for word in (PYTHON, HERE / "spu_party.py", job, party, *ports)]
            started = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **ONE_THREAD},
            )
            self.parties.append(started)

    def run(self) -> dict[str, Cost]:
        """Let both go at once; the costs of the cold and the warm run."""
        try:
            for party in self.parties:
                assert party.stdout is not None
                while not party.stdout.readline().startswith('{"ready"'):
                    if party.poll() is not None:
                        raise RuntimeError(f"a party of SPU ended early: {self.said()}")
            for party in self.parties:
                assert party.stdin is not None
                party.stdin.write("go\n")
                party.stdin.flush()
            outputs = [party.communicate()[0] for party in self.parties]
        finally:
            for party in self.parties:
                party.kill()
                party.wait()
        if any(party.returncode for party in self.parties):
            raise RuntimeError(f"a party of SPU failed: {self.said()}")
        return merged([parsed(output) for output in outputs])

    def said(self) -> str:
        """The end of what both wrote to standard error."""
        for log in self.logs:
            log.seek(0)
        return " / ".join(log.read()[-1500:] for log in self.logs)


def free_ports() -> list[int]:
    """Two ports of loopback that nobody listens on."""
    with socket.socket() as first, socket.socket() as second:
        for found in (first, second):
            found.bind(("127.0.0.1", 0))
        return [found.getsockname()[1] for found in (first, second)]


def parsed(output: str) -> dict[str, dict[str, Any]]:
    """A party's costs by run; `bytes` are what SPU's own statistics of the link say it sent."""
    lines = output.splitlines()
    runs = [json.loads(line) for line in lines if line.startswith('{"run"')]
    sent = [int(found[1]) for found in map(LINK.search, lines) if found]
    if len(runs) != len(RUNS) or len(sent) != len(RUNS):
        raise RuntimeError(f"SPU reported {len(runs)} runs and {len(sent)} statistics of its link: {output[-1500:]}")
    return {run["run"]: {**run, "bytes": size + run["opening_bytes"]} for run, size in zip(runs, sent, strict=True)}


def merged(parties: list[dict[str, dict[str, Any]]]) -> dict[str, Cost]:
    """Of each run the bytes both sent, the client's seconds, and what each party used."""
    costs = {}
    for name in RUNS:
        client, server = (party[name] for party in parties)
        costs[name] = Cost(
            seconds=client["seconds"],
            bytes=client["bytes"] + server["bytes"],
            cpu_seconds=[client["cpu_seconds"], server["cpu_seconds"]],
            peak_memory_bytes=[client["peak_memory_bytes"], server["peak_memory_bytes"]],
            tcp_bytes=client["tcp_bytes"] + server["tcp_bytes"],
        )
    return costs


def result(folder: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What SPU gave in its warm run, and what the same function gives in float."""
    return np.load(folder / "warm.npy").astype(float), np.load(folder / "float.npy").astype(float)
