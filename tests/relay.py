"""A link with a real delay and bandwidth: `python relay.py HOST:PORT ROUND_TRIP_MS MBITS` passes connections on.

Each direction of each connection has a reader, which stamps what arrives with the moment at which the link delivers
it, and a writer, which waits for that moment. The bandwidth is that of a direction of a connection. What is on its way
is bounded by what the link can hold, so that a sender feels a slow link as it would feel a real one.
"""

import contextlib
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

READ = 16 << 10
"""Bytes read at a time: a third of a millisecond at 400 Mbit/s."""
SPARE = 0.05
"""Seconds of sending that may be under way beyond the delay."""
SPIN = 0.0003
"""Sleeping is not more exact than this, in seconds; the rest is waited for awake."""


def wait_until(moment: float) -> None:
    while (left := moment - time.perf_counter()) > 0:
        if left > SPIN:
            time.sleep(left - SPIN)


def carry(source: socket.socket, sink: socket.socket, delay: float, bandwidth: float) -> None:
    """One direction of a connection, in the calling thread and one more; `delay` in seconds, bytes a second."""
    most = max(4, int((delay + SPARE) * bandwidth / READ))
    under_way: queue.Queue[tuple[float, bytes]] = queue.Queue(most)

    def deliver() -> None:
        with contextlib.suppress(OSError):
            while True:
                moment, data = under_way.get()
                wait_until(moment)
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)

    threading.Thread(target=deliver, daemon=True).start()
    free = 0.0
    while True:
        try:
            data = source.recv(READ)
        except OSError:
            data = b""
        free = max(free, time.perf_counter()) + len(data) / bandwidth
        under_way.put((free + delay, data))
        if not data:
            return


def main(server: str, round_trip_ms: float, mbits: float) -> None:
    host, _, port = server.rpartition(":")
    delay, bandwidth = round_trip_ms / 2e3, mbits * 1e6 / 8
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        print(f"127.0.0.1:{listener.getsockname()[1]}", flush=True)
        while True:
            near, _ = listener.accept()
            far = socket.create_connection((host, int(port)))
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=carry, args=(source, sink, delay, bandwidth), daemon=True).start()


@contextlib.contextmanager
def relay(server: str, round_trip_ms: float, mbits: float) -> Iterator[str]:
    """A relay to `server` (HOST:PORT) in a process of its own; the value is its address."""
    command = [sys.executable, str(Path(__file__)), server, str(round_trip_ms), str(mbits)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


if __name__ == "__main__":
    sys.setswitchinterval(0.0005)
    main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
