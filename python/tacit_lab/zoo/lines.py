"""Rendered lines of text, as readers of text see them."""

import string

import numpy as np
from numpy.typing import NDArray

ALPHABET = string.ascii_letters + string.digits
WORDS = 2
"""Words of a line."""


def lines(count: int, height: int, width: int, seed: int = 0) -> NDArray[np.float32]:
    """Pictures (count, 3, height, width) of random words, -1 black to 1 white, dark on light or light on dark."""
    from PIL import Image, ImageDraw, ImageFont

    random = np.random.default_rng(seed)
    pictures = np.empty((count, 3, height, width), np.float32)
    for picture in pictures:
        words = ["".join(random.choice(list(ALPHABET), int(random.integers(2, 6)))) for _ in range(WORDS)]
        ink, paper = sorted(random.integers([0, 160], [90, 256]), reverse=bool(random.random() < 0.2))
        image = Image.new("L", (width, height), int(paper))
        font = ImageFont.load_default(int(random.integers(height // 2, height * 3 // 4)))
        place = (int(random.integers(2, 8)), int(random.integers(0, height // 6)))
        ImageDraw.Draw(image).text(place, " ".join(words), int(ink), font)
        picture[:] = np.asarray(image, np.float32) / 127.5 - 1
    return pictures
