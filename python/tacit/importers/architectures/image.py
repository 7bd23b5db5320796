"""What architectures that read pictures have in common: patches, tokens in front, and the registration.

Input `x` is float32 (N, channels, height, width): pixels as `preprocessor_config.json` prepares them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

from tacit.errors import MisuseError
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph, Weights

ImageHead = Callable[[Graph, Config, str], str]
CLASSIFIER = "ForImageClassification"


@dataclass(frozen=True)
class ImageArchitecture:
    """Models of one `model_type`.

    `prefix` is that of the weights in models with a head, `check` refuses configurations, and `layers` writes
    everything from pixels to states (N, tokens, hidden). `heads` are by the ends of names of classes; each
    gives the output and its number of axes is in `ranks`, 2 unless it is there.
    """

    prefix: str
    check: Callable[[Config], None]
    layers: Callable[[Graph, Config], str]
    heads: Mapping[str, ImageHead]
    ranks: Mapping[str, int]


def write(architecture: ImageArchitecture, config: Config, weights: Weights, name: str) -> onnx.ModelProto:
    """The model; `weights` have their names without the prefix."""
    graph, end = Graph(weights), end_of(architecture, config)
    output = architecture.heads[end](graph, config, architecture.layers(graph, config))
    return graph.model(name, shape(config), output, architecture.ranks.get(end, 2))


def end_of(architecture: ImageArchitecture, config: Config) -> str:
    """Which of the heads the model has."""
    found = config.architecture()
    for end in sorted(architecture.heads, key=len, reverse=True):
        if found.endswith(end):
            return end
    known = ", ".join(architecture.heads)
    raise config.unsupported(f"architecture {found}", f"use one of {known}, or export the model to ONNX")


def shape(config: Config) -> tuple[int, int, int]:
    """Channels, height and width of a picture."""
    size = config.get("image_size", 224)
    sides = list(size) if isinstance(size, list) else [size, size]
    if len(sides) != 2 or not all(isinstance(side, int) and 1 <= side <= 4096 for side in sides):
        raise MisuseError(f"{config.folder}: `image_size` in config.json is no number of pixels")
    patch = config.whole("patch_size", 16)
    if any(side % patch for side in sides):
        config.refuse(f"an image_size of {sides} pixels in patches of {patch}", "use a multiple of patch_size")
    return config.whole("num_channels", 3), sides[0], sides[1]


def patches(graph: Graph, config: Config, weight: str, biased: bool = True) -> str:
    """States of patches (N, hidden, patches), row by row."""
    side = config.whole("patch_size", 16)
    kernel = graph.weights[f"{weight}.weight"]
    stored = [graph.constant("patches.weight", kernel)]
    if biased:
        stored.append(graph.constant("patches.bias", graph.weights[f"{weight}.bias"]))
    found = graph.add("Conv", "patches", "x", *stored, kernel_shape=[side, side], strides=[side, side])
    return graph.add("Reshape", "patches.flat", found, graph.integers("patches.rows", [0, len(kernel), -1]))


def placed(graph: Graph, flat: str, front: list[NDArray[np.float32]], positions: NDArray[np.float32]) -> str:
    """Tokens in `front` (hidden) of the patches, all with their positions added: (N, tokens, hidden)."""
    count = len(front)
    padded = graph.add("Pad", "tokens.padded", flat, graph.integers("tokens.pads", [0, 0, count, 0, 0, 0]))
    turned = graph.add("Transpose", "tokens", padded, perm=[0, 2, 1])
    added = positions.reshape(-1, positions.shape[-1]).copy()
    for place, token in enumerate(front):
        added[place] += token.ravel()
    return graph.add("Add", "tokens.placed", turned, graph.constant("tokens.positions", added))


def all_states(_graph: Graph, _config: Config, x: str) -> str:
    """The states of all tokens (N, tokens, hidden)."""
    return x


def first_classifier(graph: Graph, _config: Config, x: str) -> str:
    """A classifier of the first token (N, classes)."""
    return graph.dense("classifier", graph.row("pooled", x, 0), "classifier")
