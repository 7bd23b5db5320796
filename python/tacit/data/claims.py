"""How much memory the arrays of a .npy or .npz file ask for, by their headers, before any of it is taken.

A .npz file of a few kilobytes can unpack to terabytes, and a header can name any shape.
"""

import io
import math
import zipfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Any

import numpy as np

from tacit.errors import MisuseError

MOST_BYTES = 4 << 30
"""Most bytes that all arrays read of one file may take."""
LONGEST_HEADER = 10_000
"""Most bytes of an array's header; numpy refuses longer ones, too, but only when it has read them."""
ZIP = b"PK"
Header = tuple[tuple[int, ...], bool, np.dtype[Any]]
READERS: dict[tuple[int, int], Callable[[IO[bytes]], Header]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def check(path: Path, file: IO[bytes], names: Collection[str]) -> None:
    """Raise `MisuseError` if the arrays `names` of the file, or its one array, claim too much; `file` is rewound.

    Raises `ValueError` or what `zipfile` raises for a header that cannot be read.
    """
    if file.read(len(ZIP)) == ZIP:
        claims = archived(file, names)
    else:
        file.seek(0)
        claims = {"x": claimed(file)}
    file.seek(0)
    total = sum(claims.values())
    if total > MOST_BYTES:
        largest = max(claims, key=lambda name: claims[name])
        raise MisuseError(
            f"{path} claims to hold {total / 2**30:,.1f} GiB of numbers, most of them in array `{largest}`; "
            f"the limit is {MOST_BYTES >> 30} GiB for one file: divide it into several, or ask who made it"
        )


def archived(file: IO[bytes], names: Collection[str]) -> dict[str, int]:
    """What the arrays `names` of a .npz file claim, of those that are in it."""
    claims = {}
    with zipfile.ZipFile(file) as archive:
        members = set(archive.namelist())
        for name in names:
            # numpy looks for the bare name first.
            for member in (name, f"{name}.npy"):
                if member in members:
                    with archive.open(member) as content:
                        claims[name] = claimed(content)
                    break
    return claims


def claimed(file: IO[bytes]) -> int:
    """Bytes of the array whose header begins here."""
    version = np.lib.format.read_magic(file)
    if version not in READERS:
        raise ValueError(f"format {version[0]}.{version[1]} of arrays is not supported")
    length = file.read(2 if version == (1, 0) else 4)
    if int.from_bytes(length, "little") > LONGEST_HEADER:
        raise ValueError(f"the header of an array is longer than {LONGEST_HEADER} bytes")
    text = file.read(int.from_bytes(length, "little"))
    shape, _, dtype = READERS[version](io.BytesIO(length + text))
    return math.prod(shape) * dtype.itemsize
