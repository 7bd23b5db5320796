"""What this machine is."""

import os
import platform
from pathlib import Path
from typing import Any

FLAGS = ("aes", "avx2", "vaes", "avx512f", "avx512ifma")
"""Vector instructions that make a difference."""


def machine() -> dict[str, Any]:
    """Processor, its vector instructions, number of cores this process may use, and system."""
    have = facts("flags")
    return {
        "processor": processor(),
        "flags": [flag for flag in FLAGS if flag in have.split()],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def processor() -> str:
    """The processor's name."""
    return facts("model name") or platform.processor()


def facts(name: str) -> str:
    """What the system says of its first processor; empty where it says nothing."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    found = [line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name]
    return found[0] if found else ""
