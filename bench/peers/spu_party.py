"""One party of SPU, run twice in one session; runs in `.venv-peers`.

`python spu_party.py JOB.json PARTY PORT PORT` loads the program and its shares, says `ready`, waits for a line, and
then connects and runs: the first run is cold, with everything that is done once a session, the second warm. Prints
a line of JSON for each run between what SPU prints.
"""

import json
import os
import resource
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spu
from spu import libspu
from spu_settings import CLIENT, SERVER, config, pack, unpack

RUNS = ("cold", "warm")
PATIENCE_MILLISECONDS = 600_000
RETRY_MILLISECONDS = 10
TCP_INFO_ACKED = 120
"""Offset of `tcpi_bytes_acked` in what Linux says of a connection."""


def connect(party: int, ports: list[int]) -> Any:
    """The link between both parties, over loopback."""
    description = libspu.link.Desc()
    description.id = "peers"
    description.recv_timeout_ms = description.http_timeout_ms = PATIENCE_MILLISECONDS
    description.connect_retry_interval_ms, description.connect_retry_times = RETRY_MILLISECONDS, 1000
    for index, port in enumerate(ports):
        description.add_party(f"party{index}", f"127.0.0.1:{port}")
    return libspu.link.create_brpc(description, party)


def connections() -> Iterator[socket.socket]:
    """Sockets of this process."""
    for path in Path("/proc/self/fd").iterdir():
        try:
            with socket.socket(fileno=os.dup(int(path.name))) as found:
                yield found
        except OSError:
            continue  # no socket, or closed meanwhile


def sent_over_tcp() -> int:
    """Bytes the other side has acknowledged on all connections, framing of the link included."""
    total = 0
    for found in connections():
        if found.type == socket.SOCK_STREAM and found.family in {socket.AF_INET, socket.AF_INET6}:
            facts = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
            if len(facts) >= TCP_INFO_ACKED + 8:
                total += struct.unpack_from("<Q", facts, TCP_INFO_ACKED)[0]
    return total


class Party:
    """The state of a session: runtime and link."""

    def __init__(self, job: dict[str, Any], party: int, ports: list[int]) -> None:
        self.party, self.reveal = party, job["reveal"]
        self.settings, self.ports = config(job), ports
        folder = Path(job["folder"])
        self.folder = folder
        self.program = libspu.Executable()
        self.program.ParseFromString((folder / "program").read_bytes())
        with np.load(folder / f"party-{party}.npz") as archive:
            self.inputs = {name: unpack(archive[name].tobytes()) for name in archive.files}
        self.link: Any = None
        self.runtime: Any = None

    def run(self) -> tuple[float, int, Any]:
        """Evaluate once; seconds, bytes of the opening, and the result at the client if it is to be revealed."""
        start = time.perf_counter()
        if self.link is None:
            self.link = connect(self.party, self.ports)
            self.runtime = spu.Runtime(self.link, self.settings)
        for name, value in self.inputs.items():
            self.runtime.set_var(name, value)
        self.runtime.run(self.program)
        opened, size = self.open() if self.reveal else (None, 0)
        seconds = time.perf_counter() - start
        if not self.reveal:
            opened, _ = self.open()
        self.link.barrier()
        return seconds, size, opened

    def open(self) -> tuple[Any, int]:
        """The server's share of the result goes to the client."""
        share = self.runtime.get_var(self.program.output_names[0])
        if self.party == SERVER:
            packed = pack(share)
            self.link.send(CLIENT, packed)
            return None, len(packed)
        theirs = unpack(self.link.recv(SERVER))
        return spu.Io(2, self.settings).reconstruct([share, theirs]), 0


def say(content: dict[str, Any]) -> None:
    """A line of JSON."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Entry point."""
    job, party = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    state = Party(job, party, [int(port) for port in sys.argv[3:]])
    say({"ready": True})
    sys.stdin.readline()
    for name in RUNS:
        before, cpu = sent_over_tcp() if state.link else 0, time.process_time()
        seconds, opening, result = state.run()
        cost = {"seconds": seconds, "opening_bytes": opening, "tcp_bytes": sent_over_tcp() - before}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        say({"run": name, **cost, "cpu_seconds": time.process_time() - cpu, "peak_memory_bytes": peak})
        if result is not None:
            np.save(state.folder / f"{name}.npy", result)
    state.link.barrier()


if __name__ == "__main__":
    main()
