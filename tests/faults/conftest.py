"""A small network that has every kind of layer, and servers for it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from networks import Network
from tacit import Model
from tacit.compiler import Options, compile_model

from faults.parties import IDLE, ServerProcess, ask


@dataclass(frozen=True)
class Job:
    """A model, one input (as array and file), and the outputs every honest run must give."""

    model: Path
    x: np.ndarray
    file: Path
    expected: np.ndarray

    def serve(self, *options: object, **popen: object) -> ServerProcess:
        """A plaintext server with short timeouts unless told otherwise."""
        return ServerProcess(self.model, *(options or ("--plaintext", "--timeout", IDLE)), **popen)

    def served_by(self, server: ServerProcess, **how: object) -> bool:
        """The next client of `server` gets the right result, and nothing else is in its log."""
        patience = {"timeout_seconds": 30, "connect_seconds": 30}
        return self.right(ask(server.address, self.x, **{**patience, **how})) and server.line(30)["end"] == "finished"

    def right(self, outcome: dict, reveal: str = "output") -> bool:
        """The session gave the interpreter's integers, or its label."""
        expected = self.expected if reveal == "output" else self.expected.argmax(axis=1, keepdims=True)
        return "outputs" in outcome and np.array_equal(outcome["outputs"], expected)


@pytest.fixture(scope="session")
def job(tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("faults")
    network = Network(("N", 2, 6, 6))
    network.conv((4, 2, 3, 3), pads=[1, 1, 1, 1], name="conv").add("Relu", name="relu")
    network.conv((4, 4, 3, 3), pads=[1, 1, 1, 1]).add("Relu").add("Add", "relu.out", name="sum")
    network.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2], name="maxpool")
    network.add("Flatten").gemm(36, 5, name="gemm")
    model = folder / "small.tacit"
    x = np.random.default_rng(1).uniform(0, 1, (32, 2, 6, 6)).astype(np.float32)
    compile_model(network.save(folder), model, x, options=Options(rounding="exact"))
    np.save(folder / "x.npy", x[:1])
    return Job(model, x[:1], folder / "x.npy", Model(model).simulate(x[:1]))


@pytest.fixture(scope="module")
def server(job):
    """A plaintext server that must outlive all tests of a module."""
    server = job.serve()
    yield server
    assert server.alive
    assert "panicked" not in server.close()
