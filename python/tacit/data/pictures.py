"""Pictures from .png and .jpg files, checked before they are decoded."""

import warnings
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from tacit.data.preprocess import Pixels, Preprocessing
from tacit.errors import MisuseError

ENDINGS = {".png", ".jpg", ".jpeg"}
MOST_PIXELS = 1 << 26
MODES = {"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"}
# What Pillow raises for damaged or hostile files.
UNREADABLE = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    MemoryError,
    OverflowError,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


def is_picture(path: Path) -> bool:
    """Whether the name is that of a picture."""
    return path.suffix.lower() in ENDINGS


def pixels(path: Path, preprocessing: Preprocessing) -> Pixels:
    """Pixels (height, width, channels) of a picture, turned upright, resized and cropped.

    Grey pictures and those with a palette or an alpha channel become RGB; with `channel_order` L all
    become grey. Raises `MisuseError` for a file that is absent, damaged, no PNG or JPEG, larger than
    `MOST_PIXELS`, or of more than 8 bits a channel.
    """
    if not path.is_file():
        raise MisuseError(f"{path} does not exist" if not path.exists() else f"{path} is not a regular file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            warnings.filterwarnings("ignore", "Palette images with Transparency")
            return decoded(path, preprocessing)
    except UnidentifiedImageError:
        raise MisuseError(f"{path} is no PNG or JPEG picture, or is damaged") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise MisuseError(f"{path} has more than {MOST_PIXELS} pixels; make it smaller first") from None
    except UNREADABLE as error:
        raise MisuseError(f"{path} is a damaged picture: {error}") from error


def decoded(path: Path, preprocessing: Preprocessing) -> Pixels:
    """Decode the picture, once its header says that it is of a sensible size and kind."""
    with Image.open(path, formats=("PNG", "JPEG")) as image:
        if image.width * image.height > MOST_PIXELS:
            raise Image.DecompressionBombError
        if image.mode not in MODES:
            raise MisuseError(f"{path} has pixels of kind {image.mode}; save it with 8 bits a channel")
        upright = ImageOps.exif_transpose(image)
        return preprocessing.fit(upright.convert(preprocessing.mode))
