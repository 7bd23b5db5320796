"""Fixtures shared by all tests."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# A shell's background jobs ignore interrupts, and so would every process that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "python" / "tacit" / "assets"
DATA = Path(__file__).parents[2] / "shared" / "data"
MNIST = DATA / "mnist" / "mnist.npz"


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be exactly one JSON object."""
        assert self.out, f"exit code {self.code} and no output; standard error: {self.err}"
        content = json.loads(self.out)
        assert isinstance(content, dict)
        return content


Command = Callable[..., Outcome]


@pytest.fixture(scope="session")
def tacit() -> Command:
    """Run `tacit` in a process of its own; a traceback fails the test."""

    def run(*arguments: object, seconds: float = 120) -> Outcome:
        command = [sys.executable, "-m", "tacit", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def compiled(tacit: Command, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A shipped MNIST network compiled with a rounding for a suite, once per session."""
    folder = tmp_path_factory.mktemp("compiled")

    def build(rounding: str = "stochastic", suite: str = "auto", network: str = "mnist") -> Path:
        path = folder / f"{network}-{rounding}-{suite}.tacit"
        if not path.exists():
            calibration = ASSETS / "mnist_calibration.npz"
            arguments = ("--calibrate", calibration, "--rounding", rounding, "--suite", suite)
            done = tacit("compile", ASSETS / f"{network}.onnx", "-o", path, *arguments)
            assert done.code == 0, done.err
        return path

    return build


@pytest.fixture
def one_digit(tmp_path: Path) -> Path:
    """A .npy file with one digit, without a batch axis."""
    path = tmp_path / "digit.npy"
    with np.load(ASSETS / "mnist_digits.npz") as digits:
        np.save(path, digits["x"][7])
    return path
