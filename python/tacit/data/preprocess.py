"""From 8-bit pixels to what a network takes: resize, crop, order of channels, scale, mean and deviation."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tacit.errors import MisuseError

Pixels = NDArray[np.uint8]
ORDERS = ("RGB", "BGR", "L")
RESAMPLES = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
LONGEST_SIDE = 4096
LONGEST_FILE = 1 << 16
PART = 256


@dataclass(frozen=True)
class Preprocessing:
    """What happens to 8-bit pixels x, in this order.

    The short side is resized to `resize` pixels and the centre cut to `crop` by `crop`, unless
    None or the image is `crop` by `crop` already. Channels are put into `channel_order` (L is
    grey, one channel). The input is `(x * scale - mean) / std`; `mean` and `std` have a value per
    channel, in that order, or one for all. Raises `MisuseError` naming a field that is wrong.
    """

    resize: int | None = None
    crop: int | None = None
    channel_order: Literal["RGB", "BGR", "L"] = "RGB"
    scale: float = 1.0
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    resample: Literal["bilinear", "bicubic"] = "bilinear"

    def __post_init__(self) -> None:
        for name in ("resize", "crop"):
            side = getattr(self, name)
            whole = isinstance(side, int) and not isinstance(side, bool)
            if side is not None and not (whole and 1 <= side <= LONGEST_SIDE):
                refuse(name, f"null or a number of pixels, 1 to {LONGEST_SIDE}")
        if self.resize is not None and self.crop is not None and self.crop > self.resize:
            refuse("crop", "at most `resize`")
        if self.channel_order not in ORDERS:
            refuse("channel_order", f"one of {', '.join(ORDERS)}")
        if self.resample not in RESAMPLES:
            refuse("resample", f"one of {', '.join(RESAMPLES)}")
        self.check_numbers()

    def check_numbers(self) -> None:
        """Scale, mean and deviation are finite, of the right length, and divide by nothing near 0."""
        if not finite(self.scale) or self.scale == 0:
            refuse("scale", "a number other than 0")
        for name in ("mean", "std"):
            values = getattr(self, name)
            if not isinstance(values, tuple) or len(values) not in {1, self.channels} or not all(map(finite, values)):
                refuse(name, f"a list of {self.channels} numbers, one per channel, or of one")
        if min(self.std) < 1e-6:
            refuse("std", "at least 1e-6")

    @property
    def channels(self) -> int:
        """Channels of the input: 1 or 3."""
        return 1 if self.channel_order == "L" else 3

    @property
    def mode(self) -> Literal["RGB", "L"]:
        """Pillow's name of the pixels that `fit` and `normalise` take."""
        return "L" if self.channel_order == "L" else "RGB"

    def fit(self, image: Image.Image) -> Pixels:
        """Pixels (height, width, channels) of an image in `mode`, resized and cropped."""
        if image.size != (self.crop, self.crop):
            if self.resize is not None:
                image = image.resize(shortened(image.size, self.resize), RESAMPLES[self.resample])
            if self.crop is not None:
                image = centre(image, self.crop)
        return np.asarray(image, np.uint8).reshape(image.height, image.width, self.channels)

    def inputs(self, pixels: Pixels) -> NDArray[np.float32]:
        """Inputs (N, channels, height, width) of grey or RGB images (N, height, width, channels), a part at a time."""
        starts = range(0, len(pixels), PART)
        parts = [self.normalise(self.fit_all(pixels[start : start + PART])) for start in starts]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def fit_all(self, pixels: Pixels) -> Pixels:
        """`fit` of each image of (N, height, width, channels)."""
        if self.crop is None and self.resize is None:
            return pixels
        images = (Image.fromarray(one[..., 0] if self.channels == 1 else one) for one in pixels)
        return np.stack([self.fit(image) for image in images])

    def normalise(self, pixels: Pixels) -> NDArray[np.float32]:
        """The input (N, channels, height, width) of grey or RGB pixels (N, height, width, channels)."""
        ordered = pixels[..., ::-1] if self.channel_order == "BGR" else pixels
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        x = (ordered.astype(np.float32) * np.float32(self.scale) - mean) / std
        return np.ascontiguousarray(x.transpose(0, 3, 1, 2))

    def to_json(self) -> str:
        """The fields, as `from_json` reads them."""
        return json.dumps(asdict(self))


def refuse(name: str, what: str) -> NoReturn:
    """Raise `MisuseError` about a field."""
    raise MisuseError(f"preprocessing: `{name}` must be {what}")


def finite(value: Any) -> bool:
    """Whether a value of JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def shortened(size: tuple[int, int], short: int) -> tuple[int, int]:
    """Width and height with `short` for the shorter of both."""
    width, height = (short if side == min(size) else int(short * side / min(size)) for side in size)
    return width, height


def centre(image: Image.Image, side: int) -> Image.Image:
    """The middle of an image; raises `MisuseError` when it is too small."""
    if min(image.size) < side:
        raise MisuseError(f"an image of {image.width}x{image.height} pixels is smaller than the crop {side}x{side}")
    left, top = (round((length - side) / 2) for length in image.size)
    return image.crop((left, top, left + side, top + side))


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PRESETS: Mapping[str, Preprocessing] = {
    "imagenet": Preprocessing(256, 224, scale=1 / 255, mean=MEAN, std=STD),
    "mobilenet": Preprocessing(256, 224, mean=(128.0,), std=(128.0,)),
    "caffe-squeezenet": Preprocessing(227, 227, "BGR", mean=(104.0, 117.0, 123.0)),
    "cifar10": Preprocessing(32, 32, scale=1 / 255, mean=MEAN, std=STD),
    "mnist": Preprocessing(28, 28, "L", scale=1 / 255),
    "unit": Preprocessing(scale=1 / 255),
    "raw": Preprocessing(),
}


def parse(text: str) -> Preprocessing:
    """A preset by its name, or the specification in a JSON file."""
    if text in PRESETS:
        return PRESETS[text]
    path = Path(text)
    if not path.is_file():
        raise MisuseError(f"preprocessing `{text}` is neither a file nor one of {', '.join(PRESETS)}")
    with path.open("rb") as file:
        return from_json(file.read(LONGEST_FILE + 1).decode(errors="replace"))


def from_json(text: str) -> Preprocessing:
    """The specification that `to_json` wrote, or a person; raises `MisuseError` for anything else."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"preprocessing is no JSON: {str(error)[:100]}") from error
    known = {field.name for field in fields(Preprocessing)}
    if not isinstance(content, dict) or not known.issuperset(content):
        raise MisuseError(f"preprocessing must be a JSON object with fields among {', '.join(sorted(known))}")
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
    return Preprocessing(**values)
