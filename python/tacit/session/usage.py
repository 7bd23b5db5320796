"""What this process used: CPU time and peak memory."""

import resource
import sys
from pathlib import Path
from time import process_time


class Usage:
    """CPU seconds since construction (all threads) and the process's peak memory."""

    def __init__(self) -> None:
        self.began = process_time()

    def report(self) -> dict[str, float | int]:
        """Fields `cpu_seconds` and `peak_memory_bytes`."""
        return {"cpu_seconds": process_time() - self.began, "peak_memory_bytes": peak_memory_bytes()}


def peak_memory_bytes() -> int:
    """Largest resident size so far.

    Linux: VmHWM, since `ru_maxrss` of a started process begins at its parent's size.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    except (OSError, StopIteration):  # another system, or no descriptor left
        pass
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
