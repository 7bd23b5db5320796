"""A trained quantised model as a directory: `quantised.json` and `weights.npz`, which `tacit compile` reads.

Needs no PyTorch.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = "tacit-quantised"
VERSION = 1
DESCRIPTION = "quantised.json"
WEIGHTS = "weights.npz"
Array = NDArray[Any]


@dataclass
class Quantised:
    """A network of nodes as the importers of Tacit write them, its arrays, and the range of every tensor."""

    name: str
    input_name: str
    input_shape: tuple[int, ...]
    nodes: list[dict[str, Any]] = field(default_factory=list)
    arrays: dict[str, Array] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    preprocess: str | None = None
    activation_bits: int = 6

    def put(self, inputs: Sequence[str], output: str, operation: Mapping[str, Any]) -> str:
        """Append a node, named after the tensor that it writes."""
        self.nodes.append({"name": output, "inputs": list(inputs), "output": output, **operation})
        return output

    def store(self, name: str, array: Array) -> str:
        """Keep an array; whole numbers of 8 bits as such."""
        self.arrays[name] = array
        return name

    def description(self) -> dict[str, Any]:
        """What `quantised.json` holds."""
        shape, output = list(self.input_shape), self.nodes[-1]["output"]
        source = {"name": self.name, "input": {"name": self.input_name, "shape": shape}, "output": output}
        found = {"format": FORMAT, "version": VERSION, "name": self.name, "labels": list(self.labels)}
        if self.preprocess is not None:
            found["preprocess"] = self.preprocess
        return {
            **found,
            "activation_bits": self.activation_bits,
            "source": {**source, "nodes": self.nodes},
            "ranges": {tensor: list(bounds) for tensor, bounds in self.ranges.items()},
        }

    def write(self, folder: Path) -> None:
        """Both files, each as a whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{WEIGHTS}.part"
        with part.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self.arrays)
        part.replace(folder / WEIGHTS)
        part = folder / f"{DESCRIPTION}.part"
        part.write_text(json.dumps(self.description(), indent=1) + "\n", encoding="utf-8")
        part.replace(folder / DESCRIPTION)


def read(folder: Path) -> Quantised:
    """What `write` wrote."""
    content = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    source = content["source"]
    with np.load(folder / WEIGHTS, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return Quantised(
        content["name"],
        source["input"]["name"],
        tuple(source["input"]["shape"]),
        source["nodes"],
        arrays,
        {name: (low, high) for name, (low, high) in content["ranges"].items()},
        tuple(content["labels"]),
        content.get("preprocess"),
        content["activation_bits"],
    )
