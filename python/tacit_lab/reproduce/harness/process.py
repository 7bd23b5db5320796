"""A command in a process of its own, which ends with everything that it started."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tacit.errors import TacitError

GRACE_SECONDS = 5.0
"""What an interrupted process has to clean up."""


def answer(arguments: Sequence[str], limit_seconds: float) -> dict[str, Any]:
    """The JSON object that `python ARGUMENTS` prints.

    Raises `TacitError` with what it says of its failure, also where it is killed or takes longer than the limit.
    """
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            stop(process)
            raise TacitError(f"took longer than {limit_seconds / 60:.0f} minutes") from None
        except BaseException:
            stop(process)
            raise
        if process.returncode < 0:
            stop(process)
    found = parsed(out)
    if process.returncode != 0 or found is None:
        raise TacitError(reason(process.returncode, found, err))
    return found


def stop(process: subprocess.Popen[str]) -> None:
    """Interrupt the process and its children, then kill what is left of them."""
    for way in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, way)
            process.wait(GRACE_SECONDS)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def parsed(out: str) -> dict[str, Any] | None:
    """The object on the last line, if there is one."""
    try:
        found = json.loads(out.strip().rpartition("\n")[2])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def reason(code: int, found: dict[str, Any] | None, err: str) -> str:
    """Why a process failed, in one line."""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    if found is not None and "error" in found:
        return str(found["error"]["message"])
    return err.strip().rpartition("\n")[2] or f"ended with code {code} and printed no result"
