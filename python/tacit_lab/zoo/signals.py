"""Networks that people write themselves: segmentation, volumes, audio, series, points, and images from images."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit_lab.zoo.entry import Entry, Labels, Shape, largest


def own(name: str, family: str, shape: Shape, labels: Labels | None = largest) -> Entry:
    """A network of `networks`."""

    def make(path: Path) -> None:
        from tacit_lab.zoo import networks
        from tacit_lab.zoo.export import image

        build: Callable[[], Any] = networks.NETWORKS[name]
        image(build, shape)(path)

    return Entry(name, family, "tacit_lab.zoo", "MIT OR Apache-2.0", make, private=True, labels=labels)


ENTRIES = (
    own("unet-transposed", "segmentation", (3, 32, 32)),
    own("unet-bilinear", "segmentation", (3, 32, 32)),
    own("unet-volume", "volumes", (1, 8, 8, 8)),
    own("audio-m5", "audio", (1, 8000)),
    own("keyword-ds-cnn", "audio", (1, 49, 10)),
    own("series-tcn", "series", (2, 48)),
    own("series-wavenet", "series", (1, 64)),
    own("series-transformer", "series", (24, 4)),
    own("tabular-mlp", "tabular", (20,)),
    own("tabular-transformer", "tabular", (12,)),
    own("super-resolution-espcn", "images", (1, 24, 24), None),
    own("autoencoder", "images", (1, 28, 28), None),
    own("face-embedding", "images", (3, 48, 48), None),
)
