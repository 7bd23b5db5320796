"""Model files as they lie on disk: plain, or compressed by xz or gzip, never larger than a bound."""

import gzip
import lzma
import zlib
from pathlib import Path
from typing import BinaryIO, Protocol

from tacit.errors import MisuseError

MOST_BYTES = 2 * 10**9
"""Largest model after decompression; a protobuf message cannot be larger than 2 GiB."""
XZ_MEMORY = 512 * 2**20
"""Most memory an xz file may ask for to be decompressed, in bytes; `xz -9` needs 65 MiB."""
STEP = 2**20
PACKINGS = {".xz": "an xz", ".gz": "a gzip"}


class Reader(Protocol):
    """What gives the decompressed bytes of a file, piece by piece, and none at its end."""

    def read(self, size: int) -> bytes:
        """At most `size` bytes."""


class XzReader:
    """An xz file whose decompression needs no more than `XZ_MEMORY`."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.decompressor = lzma.LZMADecompressor(memlimit=XZ_MEMORY)

    def read(self, size: int) -> bytes:
        """At most `size` bytes; raises `EOFError` for a file that ends too early."""
        while not self.decompressor.eof:
            piece = self.file.read(STEP) if self.decompressor.needs_input else b""
            if self.decompressor.needs_input and not piece:
                raise EOFError("it ends too early")
            content = self.decompressor.decompress(piece, size)
            if content:
                return content
        return b""


def packed(path: Path) -> bool:
    """Whether the file's name says that it is compressed."""
    return path.suffix in PACKINGS


def model_name(path: Path) -> str:
    """The file's name without `.onnx` and `.xz` or `.gz`."""
    return Path(path.stem).stem if packed(path) else path.stem


def unpack(path: Path) -> bytes:
    """The content of a compressed file.

    Raises `MisuseError` when it is absent, damaged, or larger than `MOST_BYTES` after decompression.
    """
    try:
        with path.open("rb") as file:
            return collect(path, XzReader(file) if path.suffix == ".xz" else gzip.GzipFile(fileobj=file))
    except FileNotFoundError:
        raise MisuseError(f"{path} does not exist") from None
    except (lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        what = f"{path} is not {PACKINGS[path.suffix]} file, or is damaged ({error})"
        raise MisuseError(f"{what}; copy it again") from error


def collect(path: Path, reader: Reader) -> bytes:
    """All of it, as long as it is within bounds."""
    content = bytearray()
    while piece := reader.read(STEP):
        content += piece
        if len(content) > MOST_BYTES:
            raise MisuseError(
                f"{path} is larger than {MOST_BYTES / 1e9:g} GB after decompression; unpack a smaller model"
            )
    return bytes(content)
