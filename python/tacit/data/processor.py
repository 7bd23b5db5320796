"""How Hugging Face prepares pictures, as preprocessing: preprocessor_config.json beside a model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

from tacit.data.preprocess import LONGEST_FILE, Preprocessing
from tacit.errors import MisuseError

NAME = "preprocessor_config.json"
RESAMPLES: Mapping[Any, Literal["bilinear", "bicubic"]] = {2: "bilinear", 3: "bicubic"}
"""Pillow's numbers of the ways to resize that are known."""


def read(folder: Path) -> Preprocessing | None:
    """What happens to pixels before the model in `folder`, None where no file says it.

    Where the file resizes both sides of a picture apart, the middle square of the picture is taken instead.
    """
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            fields = json.loads(file.read(LONGEST_FILE + 1))
    except (OSError, ValueError, RecursionError) as error:
        raise MisuseError(f"{path} is no readable JSON: {error}") from error
    if not isinstance(fields, dict):
        raise MisuseError(f"{path} is no JSON object")
    return prepared(path, fields)


def prepared(path: Path, fields: Mapping[str, Any]) -> Preprocessing:
    """The same steps, in the order in which the file's own processor takes them."""
    resize = side(path, "size", fields.get("size")) if fields.get("do_resize", True) else None
    crop = side(path, "crop_size", fields.get("crop_size")) if fields.get("do_center_crop") else resize
    resample = fields.get("resample", 2)
    if resample not in RESAMPLES:
        refuse(path, "resample", "2 (bilinear) or 3 (bicubic)")
    scale = fields.get("rescale_factor", 1 / 255) if fields.get("do_rescale", True) else 1.0
    mean: Any = [0.0]
    deviation: Any = [1.0]
    if fields.get("do_normalize", True):
        mean, deviation = (fields.get(f"image_{role}") for role in ("mean", "std"))
        if not isinstance(mean, list) or not isinstance(deviation, list):
            refuse(path, "image_mean` and `image_std", "lists of numbers")
    values = (tuple(mean), tuple(deviation))
    return Preprocessing(resize, crop, scale=scale, mean=values[0], std=values[1], resample=RESAMPLES[resample])


def side(path: Path, name: str, size: Any) -> int:
    """The side of the square that a picture becomes."""
    if isinstance(size, dict):
        found = {size[role] for role in ("shortest_edge", "height", "width") if role in size}
        size = found.pop() if len(found) == 1 else None
    if not isinstance(size, int):
        refuse(path, name, "the side of a square")
    return size


def refuse(path: Path, name: str, what: str) -> NoReturn:
    """Raise `MisuseError` about a field of the file."""
    raise MisuseError(f"{path}: `{name}` is not {what}; say how pictures are prepared by --preprocess")
