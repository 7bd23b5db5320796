"""Swin: attention within windows, which are shifted in every second layer, and patches merged between stages.

A shifted window at the border has parts from opposite sides of the picture, which must not see each other: each part is
computed as a window of its own, so that nothing is masked and nothing is rolled.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.importers.architectures import pre_norm
from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph
from tacit.importers.architectures.image import CLASSIFIER, ImageArchitecture, all_states, patches, shape
from tacit.importers.architectures.post_norm import Names
from tacit.importers.architectures.pre_norm import PreNorm

BLOCK = "encoder.layers.{}.blocks.{}"
EPSILON = 1e-5


class Windows(NamedTuple):
    """Windows of equal `length` along one axis, from `start` on."""

    start: int
    number: int
    length: int


class Stage(NamedTuple):
    """What a stage works on: its number, height and width in patches, channels, and the side of a window."""

    config: Config
    number: int
    sides: tuple[int, int]
    channels: int
    heads: int
    window: int


def stages(config: Config) -> list[Stage]:
    """All stages, each of which has half the sides and twice the channels of the one before."""
    _, height, width = shape(Config(config.folder, {"patch_size": 4, **config.fields}))
    patch, window, channels = (
        config.whole("patch_size", 4),
        config.whole("window_size", 7),
        config.whole("embed_dim", 96),
    )
    depths, heads = config.get("depths", [2, 2, 6, 2]), config.get("num_heads", [3, 6, 12, 24])
    found = []
    for number in range(len(depths)):
        sides = (height // patch >> number, width // patch >> number)
        if any(side % window for side in sides):
            config.refuse(f"a stage of {sides} patches in windows of {window}", "use sides that are multiples of it")
        found.append(Stage(config, number, sides, channels << number, int(heads[number]), window))
    return found


def check(config: Config) -> None:
    """Refuse what is no network of this kind."""
    config.activation("hidden_act")
    stages(config)


def along(side: int, window: int, shift: int) -> list[Windows]:
    """Windows along an axis; with a shift those at both ends are parts of one."""
    if shift == 0:
        return [Windows(0, side // window, window)]
    inner = Windows(shift, side // window - 1, window)
    return [Windows(0, 1, shift), inner, Windows(side - window + shift, 1, window - shift)]


def bias(table: NDArray[np.float32], window: int, height: int, width: int) -> NDArray[np.float32]:
    """What is added to the scores of a window (1, 1, heads, tokens, tokens), by the distances along both axes."""
    count = 2 * window - 1
    rows, columns = (axis.ravel() for axis in np.indices((height, width)))
    far = [part[:, None] - part[None, :] + window - 1 for part in (rows, columns)]
    found: NDArray[np.float32] = table[far[0] * count + far[1]].transpose(2, 0, 1)[None, None]
    return found


def layers(graph: Graph, config: Config) -> str:
    """Everything from pixels to normalised states of the last stage."""
    filled = Config(config.folder, {"patch_size": 4, **config.fields})
    flat = patches(graph, filled, "embeddings.patch_embeddings.projection")
    x = graph.add("Transpose", "tokens", flat, perm=[0, 2, 1])
    x = graph.normalise("tokens.norm", x, "embeddings.norm", EPSILON)
    if config.get("use_absolute_embeddings", False):
        positions = graph.constant("tokens.positions", graph.weights["embeddings.position_embeddings"])
        x = graph.add("Add", "tokens.placed", x, positions)
    found, depths = stages(config), config.get("depths", [2, 2, 6, 2])
    for stage in found:
        for layer in range(depths[stage.number]):
            alone = min(stage.sides) <= stage.window
            shift = 0 if layer % 2 == 0 or alone else stage.window // 2
            x = block(graph, stage, x, layer, shift)
        if stage is not found[-1]:
            x = merged(graph, stage, x)
    return graph.normalise("last.norm", x, "layernorm", config.real("layer_norm_eps", EPSILON))


def block(graph: Graph, stage: Stage, x: str, layer: int, shift: int) -> str:
    """One layer."""
    config, at, weight = stage.config, f"stage{stage.number}.layer{layer}", BLOCK.format(stage.number, layer)
    epsilon = config.real("layer_norm_eps", EPSILON)
    normed = graph.normalise(f"{at}.first.norm", x, f"{weight}.layernorm_before", epsilon)
    context = attention(graph, stage, normed, layer, shift)
    added = graph.dense(f"{at}.attended", context, f"{weight}.attention.output.dense")
    x = graph.add("Add", f"{at}.attended.sum", x, added)
    normed = graph.normalise(f"{at}.second.norm", x, f"{weight}.layernorm_after", epsilon)
    names = Names("", "", "", "", "", f"{weight}.intermediate.dense", f"{weight}.output.dense", "")
    encoder = PreNorm(stage.channels, stage.heads, 1, epsilon, config.activation("hidden_act"), names)
    return graph.add("Add", f"{at}.sum", x, pre_norm.two_layers(graph, encoder, normed, at, names))


def attention(graph: Graph, stage: Stage, x: str, layer: int, shift: int) -> str:
    """Contexts (N, patches, channels) of all windows."""
    (height, width), channels = stage.sides, stage.channels
    at, weight = f"stage{stage.number}.layer{layer}", BLOCK.format(stage.number, layer)
    biased = bool(stage.config.get("qkv_bias", True))
    image = graph.integers(f"stage{stage.number}.image", [0, height, width, channels])
    flat = {role: graph.dense(f"{at}.{role}", x, f"{weight}.attention.self.{role}", biased) for role in ROLES}
    factor = graph.constant(f"stage{stage.number}.factor", np.float32((channels // stage.heads) ** -0.5))
    flat["query"] = graph.add("Mul", f"{at}.query.scaled", flat["query"], factor)
    table = graph.weights[f"{weight}.attention.self.relative_position_bias_table"]
    images = Images([graph.add("Reshape", f"{at}.{role}.image", flat[role], image) for role in ROLES], table)
    rows = []
    for row, tall in enumerate(along(height, stage.window, shift)):
        places = [
            within(graph, stage, images, f"{at}.{row}.{column}", (tall, wide))
            for column, wide in enumerate(along(width, stage.window, shift))
        ]
        rows.append(joined(graph, f"{at}.{row}", places, 2))
    whole = joined(graph, f"{at}.context", rows, 1)
    return graph.add("Reshape", f"{at}.context.flat", whole, graph.integers(f"{at}.context.sizes", [0, -1, channels]))


ROLES = ("query", "key", "value")


def joined(graph: Graph, name: str, parts: Sequence[str], axis: int) -> str:
    """Parts of a picture side by side."""
    return parts[0] if len(parts) == 1 else graph.add("Concat", f"{name}.joined", *parts, axis=axis)


class Images(NamedTuple):
    """Queries, keys and values (N, height, width, channels), and the table of biases."""

    tensors: Sequence[str]
    table: NDArray[np.float32]


def within(graph: Graph, stage: Stage, images: Images, at: str, windows: tuple[Windows, Windows]) -> str:
    """Contexts (N, height, width, channels) of equally large windows."""
    tall, wide = windows
    heads, size = stage.heads, stage.channels // stage.heads
    orders = {"query": [0, 1, 3, 5, 2, 4, 6], "key": [0, 1, 3, 5, 6, 2, 4], "value": [0, 1, 3, 5, 2, 4, 6]}
    tokens, count = tall.length * wide.length, tall.number * wide.number
    split = [0, tall.number, tall.length, wide.number, wide.length, heads, size]
    flat = {role: [0, count, heads, tokens, size] for role in ROLES} | {"key": [0, count, heads, size, tokens]}
    found = []
    for role, image in zip(ROLES, images.tensors, strict=True):
        part = cut(graph, f"{at}.{role}", image, stage, windows)
        turned = graph.heads(f"{at}.{role}", part, split, orders[role])
        found.append(
            graph.add("Reshape", f"{at}.{role}.flat", turned, graph.integers(f"{at}.{role}.flats", flat[role]))
        )
    scores = graph.add("MatMul", f"{at}.scores", found[0], found[1])
    added = graph.constant(f"{at}.bias", bias(images.table, stage.window, tall.length, wide.length))
    shares = graph.add("Softmax", f"{at}.weights", graph.add("Add", f"{at}.scores.placed", scores, added), axis=-1)
    context = graph.add("MatMul", f"{at}.context", shares, found[2])
    back = [0, tall.number, wide.number, heads, tall.length, wide.length, size]
    turned = graph.heads(f"{at}.context", context, back, [0, 1, 4, 2, 5, 3, 6])
    sides = [0, tall.number * tall.length, wide.number * wide.length, stage.channels]
    return graph.add("Reshape", f"{at}.context.image", turned, graph.integers(f"{at}.context.sides", sides))


def cut(graph: Graph, name: str, image: str, stage: Stage, windows: tuple[Windows, Windows]) -> str:
    """The part of a picture that windows cover."""
    first = [part.start for part in windows]
    end = [part.start + part.number * part.length for part in windows]
    if (first, end) == ([0, 0], list(stage.sides)):
        return image
    bounds = [graph.integers(f"{name}.{role}", value) for role, value in (("first", first), ("end", end))]
    return graph.add("Slice", f"{name}.part", image, *bounds, graph.integers("image.axes", [1, 2]))


def merged(graph: Graph, stage: Stage, x: str) -> str:
    """Four neighbours become one, of twice the channels."""
    at, weight = f"stage{stage.number}.merged", f"encoder.layers.{stage.number}.downsample"
    (height, width), channels = stage.sides, stage.channels
    turned = graph.heads(at, x, [0, height // 2, 2, width // 2, 2, channels], [0, 1, 3, 4, 2, 5])
    four = graph.add("Reshape", f"{at}.four", turned, graph.integers(f"{at}.sizes", [0, -1, 4 * channels]))
    normed = graph.normalise(f"{at}.norm", four, f"{weight}.norm", EPSILON)
    return graph.dense(at, normed, f"{weight}.reduction", biased=False)


def classifier(graph: Graph, _config: Config, x: str) -> str:
    """A classifier of the mean over all patches."""
    pooled = graph.add("ReduceMean", "pooled", x, graph.integers("pooled.axes", [1]), keepdims=0)
    return graph.dense("classifier", pooled, "classifier")


SWIN = ImageArchitecture("swin.", check, layers, {"Model": all_states, CLASSIFIER: classifier}, {"Model": 3})
