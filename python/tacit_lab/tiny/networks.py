"""The networks of MLPerf Tiny (closed division, v1.3) by their definitions, with random weights.

Keyword spotting: a DS-CNN on 49 frames of 10 coefficients, 12 classes. Visual wake words: MobileNetV1 of a quarter of
the width on 96 x 96 pixels, 2 classes. Image classification: a ResNet of 8 layers on 32 x 32 pixels, 10 classes.
Anomaly detection: an autoencoder of 640 features, five frames of 128 bands, whose error says how odd they are. Batch
norms are folded. The last softmax is left out: it changes no label, and a client can compute it. Training data of three
of them cannot be had here, so their numbers are of the cost only, which depends on no weight.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import onnx

from tacit_lab.random_networks import Builder, Window

FILTERS, KEYWORDS = 64, 12
WIDTHS = (8, 16, 32, 32, 64, 64, 128, 128, 128, 128, 128, 128, 256, 256)
"""Channels of the first convolution and of the 13 blocks of MobileNetV1, a quarter each."""
NARROWING = (2, 4, 6, 12)
"""Blocks of MobileNetV1 whose stride is 2, counted from 1."""
RESNET = (16, 32, 64)
HIDDEN = (128, 128, 128, 128, 8, 128, 128, 128, 128)
FEATURES = 640
HALVING = Window(3, 3, 2, (0, 0, 1, 1))
"""A kernel of 3 and a stride of 2, padded as TensorFlow does on an even size."""


def relu(graph: Builder, x: str) -> str:
    """A ReLU."""
    return graph.add("Relu", x)


def pooled(graph: Builder, x: str, channels: int, classes: int) -> str:
    """The average over all places, and a dense layer."""
    return graph.dense(graph.add("Flatten", graph.add("GlobalAveragePool", x)), channels, classes)


def keywords(seed: int = 0) -> onnx.ModelProto:
    """From frames (N, 1, 49, 10) to scores (N, 12)."""
    graph = Builder(seed)
    x = relu(graph, graph.conv("x", (1, FILTERS), Window(10, 4, 2, (4, 1, 5, 1))))
    for _ in range(4):
        x = relu(graph, graph.conv(x, (FILTERS, FILTERS), 3, group=FILTERS))
        x = relu(graph, graph.conv(x, (FILTERS, FILTERS), 1))
    return graph.model("ds-cnn", (1, 49, 10), pooled(graph, x, FILTERS, KEYWORDS), (KEYWORDS,))


def persons(seed: int = 0) -> onnx.ModelProto:
    """From pixels (N, 3, 96, 96) to scores (N, 2)."""
    graph = Builder(seed)
    x = relu(graph, graph.conv("x", (3, WIDTHS[0]), HALVING))
    for at, (given, made) in enumerate(pairwise(WIDTHS), start=1):
        x = relu(graph, graph.conv(x, (given, given), HALVING if at in NARROWING else 3, group=given))
        x = relu(graph, graph.conv(x, (given, made), 1))
    return graph.model("mobilenet-v1-0.25", (3, 96, 96), pooled(graph, x, WIDTHS[-1], 2), (2,))


def images(seed: int = 0) -> onnx.ModelProto:
    """From pixels (N, 3, 32, 32) to scores (N, 10)."""
    graph = Builder(seed)
    given = RESNET[0]
    x = relu(graph, graph.conv("x", (3, given), 3))
    for made in RESNET:
        same = made == given
        inner = relu(graph, graph.conv(x, (given, made), 3 if same else HALVING))
        inner = graph.conv(inner, (made, made), 3)
        beside = x if same else graph.conv(x, (given, made), Window(1, 1, 2))
        x, given = relu(graph, graph.add("Add", inner, beside)), made
    return graph.model("resnet-8", (3, 32, 32), pooled(graph, x, given, 10), (10,))


def anomalies(seed: int = 0) -> onnx.ModelProto:
    """From features (N, 640) to the same as the network would have them."""
    graph = Builder(seed)
    x, given = "x", FEATURES
    for made in HIDDEN:
        x, given = relu(graph, graph.dense(x, given, made)), made
    return graph.model("autoencoder", (FEATURES,), graph.dense(x, given, FEATURES), (FEATURES,))


class Task(NamedTuple):
    """A task: how rows call it, its network, the shape of an input, and the quality that a submission must reach."""

    title: str
    network: Callable[[], onnx.ModelProto]
    shape: tuple[int, ...]
    quality: str


TASKS = {
    "keywords": Task("keyword spotting, DS-CNN", keywords, (1, 49, 10), "90 % of labels"),
    "persons": Task("visual wake words, MobileNetV1", persons, (3, 96, 96), "80 % of labels"),
    "images": Task("image classification, ResNet-8", images, (3, 32, 32), "85 % of labels"),
    "anomalies": Task("anomaly detection, autoencoder", anomalies, (FEATURES,), "0.85 of area under the curve"),
}
