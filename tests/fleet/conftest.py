"""Fleets on this machine. Without Ray (`make test-fleet` installs it) every test here is skipped."""

from pathlib import Path

import numpy as np
import pytest
from conftest import ASSETS


def pytest_collection_modifyitems(items):
    """Ray leaves sockets and files to the end of the process, and warns of what it will change."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def mnist(compiled):
    """MNIST with exact rounding, so that each answer is that of the interpreter."""
    return compiled("exact")


@pytest.fixture(scope="session")
def digits():
    """A handwritten digit of each class."""
    with np.load(ASSETS / "mnist_digits.npz") as archive:
        return archive["x"]


@pytest.fixture
def fleets(tmp_path):
    """Start fleets, which end with the test."""
    from fleet.fleets import FleetProcess

    running = []

    def start(text, *arguments, ready=True):
        file = tmp_path / "fleet.toml"
        file.write_text(text)
        running.append(FleetProcess(file, *arguments))
        if ready:
            running[-1].ready()
        return running[-1]

    yield start
    for process in running:
        process.close()
