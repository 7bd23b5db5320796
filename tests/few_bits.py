"""A small residual network as training with few bits hands it over: a directory that `tacit compile` reads."""

import json
from pathlib import Path
from typing import Any

import numpy as np

CHANNELS = (2, 4)
SIDE = 6
UNIT = 1 / 32


class Network:
    """Nodes, arrays and ranges, collected one after another under a fixed seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.ranges: dict[str, list[float]] = {"x": [-1.0, 1.0]}

    def node(self, name: str, inputs: list[str], **operation: Any) -> str:
        """Append a node that writes a tensor of its own name."""
        self.nodes.append({"name": name, "inputs": inputs, "output": name, **operation})
        return name

    def conv(self, name: str, tensor: str, inputs: int, scale: float, winograd: bool = True) -> str:
        """A 3x3 convolution with three-bit weights, of which the topmost counts double."""
        importance = [1, 2, -8] if winograd else [1, 2, -4]
        levels = np.array([0, 1, 2, 3, *np.arange(4) + importance[2]])
        shape = (CHANNELS[1], inputs, *((4, 4) if winograd else (3, 3)))
        self.arrays[f"{name}_weight"] = self.rng.choice(levels, shape).astype(np.int8)
        self.arrays[f"{name}_scale"] = (scale * self.rng.uniform(0.5, 1, CHANNELS[1])).astype(np.float32)
        self.arrays[f"{name}_bias"] = self.rng.uniform(0, 2, CHANNELS[1]).astype(np.float32)
        window = {"kernel": [3, 3], "stride": [1, 1], "padding": [1] * 4, "dilation": [1, 1], "groups": 1}
        bits = {"winograd": winograd, "importance": importance, "offset": 0}
        names = {field: f"{name}_{field}" for field in ("weight", "scale", "bias")}
        return self.node(name, [tensor], op="QuantisedConv", **window, **bits, **names)

    def relu(self, name: str, tensor: str, bits: int) -> str:
        """A ReLU whose step is the same whatever its bits."""
        self.ranges[name] = [0.0, (2**bits - 1) * UNIT]
        return self.node(name, [tensor], op="Relu", maximum=None, bits=bits)

    def write(self, folder: Path) -> Path:
        """The directory."""
        folder.mkdir(parents=True, exist_ok=True)
        shape = [CHANNELS[0], SIDE, SIDE]
        graph = {"name": "small", "input": {"name": "x", "shape": shape}, "output": "logits", "nodes": self.nodes}
        about = {"format": "tacit-quantised", "version": 1, "name": "small", "labels": ["a", "b", "c"]}
        content = {**about, "activation_bits": 4, "source": graph, "ranges": self.ranges}
        (folder / "quantised.json").write_text(json.dumps(content))
        np.savez(folder / "weights.npz", **self.arrays)
        return folder


def network(folder: Path, seed: int = 1) -> Path:
    """A convolution, a residual block and a classifier."""
    made = Network(seed)
    made.conv("stem", "x", CHANNELS[0], 0.1)
    skip = made.relu("skip", "stem", 8)
    few = made.node("few", [skip], op="Requantize", bits=4)
    made.ranges["few"] = made.ranges["skip"]
    made.conv("inner", few, CHANNELS[1], 0.01)
    made.relu("hidden", "inner", 4)
    made.conv("outer", "hidden", CHANNELS[1], 0.05, winograd=False)
    made.node("sum", ["outer", skip], op="Add")
    made.relu("joined", "sum", 8)
    length = CHANNELS[1] * SIDE * SIDE
    made.node("flat", ["joined"], op="Reshape", shape=[length])
    made.arrays["last"] = made.rng.normal(0, 0.1, (3, length)).astype(np.float32)
    made.node("logits", ["flat"], op="Gemm", weight="last", bias=None)
    made.ranges["logits"] = [-40.0, 40.0]
    return made.write(folder)


def inputs(count: int, seed: int = 2) -> np.ndarray:
    """Inputs over all of their range."""
    return np.random.default_rng(seed).uniform(-1, 1, (count, CHANNELS[0], SIDE, SIDE)).astype(np.float32)
