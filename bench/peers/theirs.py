"""SPU between two processes of `.venv-peers`: prepared once, then as many sessions as wanted."""

import json
import os
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ratios import Cost
from works import Operator, Prepared

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-peers/bin/python"
RUNS = ("cold", "warm")
LINK = re.compile(r"Link details: total send bytes (\d+),")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "YACL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
SESSION_SECONDS = 3600.0
TAIL = 1500
INSTALL = "SecretFlow SPU is not installed: `make .venv-peers/.packages` (about 1 GB)"


def version() -> str | None:
    """Which SPU is installed; None without one."""
    if not PYTHON.exists():
        return None
    code = "import importlib.metadata as m; print(m.version('spu'))"
    done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def operator_job(work: Operator) -> dict[str, Any]:
    """An operator for `spu_prepare.py`; its result stays shared, as ours does."""
    fields = {name: value for name, value in asdict(work).items() if name not in ("title", "arguments")}
    return {**fields, "reveal": False}


def network_job(files: Prepared) -> dict[str, Any]:
    """A network for `spu_prepare.py`; its result goes to the client."""
    paths = {"network": str(files.exported.resolve()), "input": str(files.input.resolve())}
    return {**paths, "owner": "client", "ring_bits": 64, "reveal": True}


def step_job(exported: Path) -> dict[str, Any]:
    """A token of a language model for `spu_prepare.py`; the best next token goes to the client."""
    return {"step": str(exported.resolve()), "owner": "client", "ring_bits": 64, "reveal": True}


class PeerError(RuntimeError):
    """SPU could not do a work: it crashed, refused it, or took longer than `SESSION_SECONDS`."""


def prepare(job: dict[str, Any], folder: Path) -> Path:
    """Compile and share out; gives the job's file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "job.json"
    path.write_text(json.dumps({**job, "folder": str(folder.resolve())}))
    done = subprocess.run(
        [PYTHON, HERE / "spu_prepare.py", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise PeerError(f"SPU did not prepare {folder.name}: {done.stdout[-TAIL:]}")
    return path


def session(job: Path) -> dict[str, Cost]:
    """A fresh session of two parties, which start at once when both are loaded; the costs of its two runs."""
    ports = free_ports()
    parties = [started(job, party, ports) for party in range(2)]
    try:
        for party in parties:
            wait_until_ready(party)
        with ThreadPoolExecutor(len(parties)) as pool:
            outputs = list(pool.map(lambda party: party.communicate("go\n", SESSION_SECONDS)[0], parties))
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"a session of SPU took more than {SESSION_SECONDS:g} s") from error
    finally:
        for party in parties:
            party.kill()
            party.wait()
    for party, output in zip(parties, outputs, strict=True):
        if party.returncode != 0:
            raise PeerError(f"a party of SPU ended with {party.returncode}: {output[-TAIL:]}")
    return merged([parsed(output) for output in outputs])


def started(job: Path, party: int, ports: list[int]) -> "subprocess.Popen[str]":
    """A party's process."""
    command = [str(word) for word in (PYTHON, HERE / "spu_party.py", job, party, *ports)]
    environment = {**os.environ, **ONE_THREAD}
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def wait_until_ready(party: "subprocess.Popen[str]") -> None:
    """Read until it says that it is loaded."""
    assert party.stdout is not None
    said = ""
    for line in party.stdout:
        if line.startswith('{"ready"'):
            return
        said += line
    raise PeerError(f"a party of SPU did not start: {said[-TAIL:]}")


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
        raise PeerError(f"SPU reported {len(runs)} runs and {len(sent)} statistics of its link: {output[-TAIL:]}")
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
            sent=[client["bytes"], server["bytes"]],
        )
    return costs


def result(folder: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What SPU gave in its warm run, and what the same function gives in float."""
    return np.load(folder / "warm.npy").astype(float), np.load(folder / "float.npy").astype(float)
