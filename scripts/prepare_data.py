"""Test and calibration sets for the networks in ../shared/data/models, as `tacit` reads them.

`.venv/bin/python scripts/prepare_data.py [--data FOLDER] [--output FOLDER] [SET ...]` writes for each
set (default: all)

    NAME.npz               8-bit pixels `x` (N, channels, height, width) and labels `y` (N,)
    NAME-calibration.npz   the same of images that NAME.npz does not have

Give both to `tacit` as they are: `compile --preprocess` says how pixels become inputs, and `evaluate`
reads it from the compiled model.

mnist, cifar10    the 10,000 test images; 300 training images of all classes calibrate
cifar100          1,800 test images; 200 others calibrate, since the data has no training images
imagenet          86 photographs of 224x224; random crops of the 7 free ones calibrate
imagenet227       the same at 227x227, for SqueezeNet
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from tacit_lab.cifar import pixels

Pixels = NDArray[np.uint8]
CALIBRATION = 300
CROPS = 40
SMALLEST_CROP = 0.5


class Images(NamedTuple):
    """Pixels (N, channels, height, width) and class numbers (N,)."""

    x: Pixels
    y: NDArray[np.int64]

    def chosen(self, which: Any) -> "Images":
        """Some of them."""
        return Images(self.x[which], self.y[which])


class Sets(NamedTuple):
    """What is evaluated and what calibrates."""

    test: Images
    calibration: Images


def balanced(images: Images, count: int = CALIBRATION) -> Images:
    """`count` images, equally many of each class, under a fixed seed."""
    order = np.random.default_rng(0).permutation(len(images.y))
    kinds = np.unique(images.y)
    picked = [order[images.y[order] == kind][: count // len(kinds)] for kind in kinds]
    return images.chosen(np.sort(np.concatenate(picked)))


def mnist(data: Path) -> Sets:
    """MNIST, one channel."""
    with np.load(data / "mnist" / "mnist.npz", allow_pickle=False) as archive:
        test, train = (
            Images(archive[f"x_{part}"][:, None], archive[f"y_{part}"].astype(np.int64)) for part in ("test", "train")
        )
    return Sets(test, balanced(train))


def cifar(path: Path) -> Images:
    """A CIFAR file."""
    return Images(*pixels(path))


def cifar10(data: Path) -> Sets:
    """CIFAR-10."""
    train = cifar(data / "cifar10" / "cifar10_train_50k.npz")
    return Sets(cifar(data / "cifar10" / "cifar10_test.npz"), balanced(train))


def cifar100(data: Path) -> Sets:
    """CIFAR-100: the last 200 of its 2,000 images calibrate."""
    images = cifar(data / "cifar100" / "cifar100_test2k.npz")
    return Sets(images.chosen(slice(-200)), images.chosen(slice(-200, None)))


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a tab-separated file with a heading."""
    heading, *rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    return [dict(zip(heading, row, strict=True)) for row in rows]


def photographs(folder: Path, rows: list[tuple[str, int]], prepare: Callable[[Image.Image], list[Pixels]]) -> Images:
    """The pictures that `prepare` makes of each file, with its class."""
    x: list[Pixels] = []
    y: list[int] = []
    for name, label in rows:
        with Image.open(folder / name) as image:
            made = prepare(image.convert("RGB"))
        x += made
        y += [label] * len(made)
    return Images(np.stack(x).transpose(0, 3, 1, 2), np.array(y))


def imagenet(data: Path, side: int = 224) -> Sets:
    """ImageNet photographs of `side` pixels a side."""
    folder = data / "imagenet"
    labelled = [(row["file"], int(row["class_index"])) for row in table(folder / "labels.tsv")]
    free = [
        (row["file"], int(row["accepted_class_indices"].split(",")[0])) for row in table(folder / "free_labels.tsv")
    ]
    random = np.random.default_rng(0)
    test = photographs(folder / "images", labelled, lambda image: [scaled(image, side)])
    return Sets(test, photographs(folder / "free_images", free, lambda image: crops(image, side, random)))


def scaled(image: Image.Image, side: int) -> Pixels:
    """A square picture at another size."""
    size = (side, side)
    return np.asarray(image if image.size == size else image.resize(size, Image.Resampling.BICUBIC))


def crops(image: Image.Image, side: int, random: np.random.Generator) -> list[Pixels]:
    """The picture and random parts of it, half of them mirrored."""
    made = [scaled(image, side)]
    for index in range(CROPS - 1):
        length = int(min(image.size) * random.uniform(SMALLEST_CROP, 1))
        left, top = (int(random.integers(0, whole - length + 1)) for whole in image.size)
        part = scaled(image.crop((left, top, left + length, top + length)), side)
        made.append(part[:, ::-1] if index % 2 else part)
    return made


SETS: dict[str, Callable[[Path], Sets]] = {
    "mnist": mnist,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "imagenet": imagenet,
    "imagenet227": lambda data: imagenet(data, 227),
}


def write(path: Path, images: Images) -> None:
    """Write one file and say so."""
    np.savez(path, x=images.x, y=images.y)
    sys.stdout.write(f"{path}: {len(images.y)} images {list(images.x.shape[1:])}\n")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument("sets", nargs="*", metavar="SET", help="some of " + ", ".join(SETS))
    parser.add_argument("--data", type=Path, default=shared, help="folder of the data sets (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("build/data"), help="default: %(default)s")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.sets if name not in SETS]
    if unknown:
        parser.error(f"no set is called {unknown[0]}; there are {', '.join(SETS)}")
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets or SETS:
        sets = SETS[name](arguments.data)
        write(arguments.output / f"{name}.npz", sets.test)
        write(arguments.output / f"{name}-calibration.npz", sets.calibration)


if __name__ == "__main__":
    main()
