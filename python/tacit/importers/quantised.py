"""Networks that were trained with few bits: a directory of `quantised.json` and `weights.npz`.

The weights of their `QuantisedConv` nodes are integers already and the ranges of their activations are known, so that
nothing is calibrated.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.quantize import Ranges
from tacit.data import claims
from tacit.errors import MisuseError
from tacit.importers.source import Node, Source

DESCRIPTION = "quantised.json"
WEIGHTS = "weights.npz"
FORMAT = "tacit-quantised"
VERSION = 1
LONGEST_DESCRIPTION = 1 << 24
NAMED = ("weight", "scale", "bias")
"""Fields of a node that name arrays."""


@dataclass(frozen=True)
class Quantised:
    """The network, the smallest and the largest value of its activations, and what it says of itself.

    `activation_bits` are those of a ReLU that does not say; `preprocess` is what `--preprocess` takes, or None.
    """

    source: Source
    ranges: Ranges
    activation_bits: int
    labels: tuple[str, ...] = ()
    preprocess: str | None = None


def is_quantised(path: Path) -> bool:
    """Whether `path` is such a directory."""
    return (path / DESCRIPTION).is_file()


def import_quantised(folder: Path) -> Quantised:
    """Read a directory; raises `MisuseError` naming what is wrong in it."""
    content = description(folder / DESCRIPTION)
    try:
        graph = content["source"]
        nodes = tuple(node(entry) for entry in graph["nodes"])
        source = Source(
            str(graph["name"]),
            str(graph["input"]["name"]),
            tuple(int(side) for side in graph["input"]["shape"]),
            str(graph["output"]),
            nodes,
            arrays(folder / WEIGHTS, nodes),
        )
        ranges = {str(name): interval(bounds) for name, bounds in content["ranges"].items()}
        labels = tuple(str(label) for label in content.get("labels", ()))
        return Quantised(source, ranges, int(content["activation_bits"]), labels, content.get("preprocess"))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise MisuseError(f"{folder / DESCRIPTION} is no network of few bits: {what}; export it again") from error


def description(path: Path) -> dict[str, Any]:
    """A JSON object of a format and version that this program reads."""
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST_DESCRIPTION + 1)
        content = json.loads(text) if len(text) <= LONGEST_DESCRIPTION else None
    except (OSError, ValueError, RecursionError) as error:
        raise MisuseError(f"{path} is no readable JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise MisuseError(f"{path} does not describe a network of few bits (format {FORMAT})")
    if content.get("version") != VERSION:
        raise MisuseError(f"{path} has version {content.get('version')}, this program reads {VERSION}: update Tacit")
    return content


def node(entry: Mapping[str, Any]) -> Node:
    """A node whose remaining fields are its operation."""
    operation = {key: value for key, value in entry.items() if key not in ("name", "inputs", "output")}
    return Node(str(entry["name"]), tuple(map(str, entry["inputs"])), str(entry["output"]), operation)


def interval(bounds: Any) -> tuple[float, float]:
    """A finite range."""
    low, high = (float(end) for end in bounds)
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"range {low}..{high}")
    return low, high


def arrays(path: Path, nodes: tuple[Node, ...]) -> dict[str, NDArray[np.float32]]:
    """The arrays that the nodes name, as float32."""
    names = {node.operation[field] for node in nodes for field in NAMED if node.operation.get(field) is not None}
    try:
        with path.open("rb") as file:
            claims.check(path, file, names)
        with np.load(path, allow_pickle=False) as archive:
            missing = sorted(names.difference(archive.files))
            if missing:
                raise MisuseError(f"{path} lacks the array `{missing[0]}`; export the network again")
            return {name: np.ascontiguousarray(archive[name], dtype=np.float32) for name in sorted(names)}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise MisuseError(f"{path} is no readable file of arrays: {error}") from error
