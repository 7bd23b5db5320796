"""The format GGUF, versions 2 and 3: values by their names, and tensors, whose blocks are dequantised exactly.

The format is described in https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. All numbers are little endian.
"""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError, UnsupportedError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
MOST_VALUES = 1 << 24
MOST_AXES = 4
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Formats of single values by their type."""
TEXT, LIST = 8, 9
BLOCK = 32
"""Weights of a block of the quantised types."""
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


@dataclass
class File:
    """What a file says of itself, and where its tensors are."""

    path: Path
    values: dict[str, Any]
    tensors: dict[str, tuple[tuple[int, ...], int, int]] = field(default_factory=dict)
    content: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))

    def tensor(self, name: str) -> Floats:
        """A tensor as float32, its longest axis of memory last."""
        shape, kind, start = self.tensors[name]
        if kind not in KINDS:
            known = ", ".join(named.name for named in KINDS.values())
            error = f"{self.path}: tensor `{name}` has type {kind}; convert the file to one of {known}"
            raise UnsupportedError(error)
        count, of = math.prod(shape), KINDS[kind]
        if count % of.block:
            damaged(self.path, f"tensor `{name}` has {count} values, which are no whole blocks")
        length = count // of.block * of.size
        raw = self.content[start : start + length]
        if len(raw) != length:
            damaged(self.path, f"tensor `{name}` ends beyond the file")
        return of.read(raw.reshape(-1, of.size)).reshape(shape)


@dataclass(frozen=True)
class Kind:
    """A type of tensors: its name, weights and bytes of a block, and how blocks (N, bytes) are read (N, weights)."""

    name: str
    block: int
    size: int
    read: Callable[[Bytes], Floats]


def halves(blocks: Bytes) -> Floats:
    """Float16 numbers (N, bytes / 2) as float32."""
    return np.ascontiguousarray(blocks).view("<f2").astype(np.float32)


def nibbles(blocks: Bytes) -> Floats:
    """Four bits each: the lower halves of all bytes, then the upper ones."""
    return np.concatenate([blocks & 15, blocks >> 4], axis=1).astype(np.float32)


def q4_0(blocks: Bytes) -> Floats:
    """A scale and 32 weights of four bits, 8 standing for zero."""
    found: Floats = halves(blocks[:, :2]) * (nibbles(blocks[:, 2:]) - np.float32(8))
    return found


def q4_1(blocks: Bytes) -> Floats:
    """A scale, a least value and 32 weights of four bits."""
    found: Floats = halves(blocks[:, :2]) * nibbles(blocks[:, 4:]) + halves(blocks[:, 2:4])
    return found


def q8_0(blocks: Bytes) -> Floats:
    """A scale and 32 weights of eight bits."""
    found: Floats = halves(blocks[:, :2]) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8).astype(np.float32)
    return found


def singles(blocks: Bytes) -> Floats:
    """Float32 numbers."""
    return np.ascontiguousarray(blocks).view("<f4").astype(np.float32)


KINDS: Mapping[int, Kind] = {
    0: Kind("F32", 1, 4, singles),
    1: Kind("F16", 1, 2, halves),
    2: Kind("Q4_0", BLOCK, 18, q4_0),
    3: Kind("Q4_1", BLOCK, 20, q4_1),
    8: Kind("Q8_0", BLOCK, 34, q8_0),
}
"""Types of tensors by their numbers in the format."""


@dataclass
class Cursor:
    """A place in a file that is read from its beginning."""

    path: Path
    content: Bytes
    at: int = 0

    def take(self, length: int) -> bytes:
        """The next bytes."""
        if length < 0 or self.at + length > len(self.content):
            damaged(self.path, "it ends in its header")
        part = self.content[self.at : self.at + length].tobytes()
        self.at += length
        return part

    def number(self, kind: str) -> Any:
        """The next number."""
        return struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")))[0]

    def text(self) -> str:
        """The next text."""
        return self.take(self.number("Q")).decode("utf-8", "replace")

    def value(self, kind: int, nested: bool = False) -> Any:
        """The next value of a type."""
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == TEXT:
            return self.text()
        if kind != LIST or nested:
            damaged(self.path, f"it has a value of type {kind}")
        inner, count = self.number("I"), self.number("Q")
        if count > MOST_VALUES:
            damaged(self.path, f"it has a list of {count} values")
        return [self.value(inner, nested=True) for _ in range(count)]


def read(path: Path) -> File:
    """The header of a file; tensors are read as they are asked for. Raises `MisuseError` for a damaged one."""
    try:
        content = np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise MisuseError(f"{path} cannot be read: {error}") from error
    cursor = Cursor(path, content)
    if cursor.take(len(MAGIC)) != MAGIC:
        damaged(path, "it does not begin as one")
    version = cursor.number("I")
    if version not in VERSIONS:
        raise UnsupportedError(f"{path} has version {version} of GGUF; convert it to version {VERSIONS[-1]}")
    tensors, values = cursor.number("Q"), cursor.number("Q")
    if max(tensors, values) > MOST_VALUES:
        damaged(path, f"it has {tensors} tensors and {values} values")
    file = File(path, {}, content=content)
    for _ in range(values):
        name = cursor.text()
        file.values[name] = cursor.value(cursor.number("I"))
    places = []
    for _ in range(tensors):
        name, axes = cursor.text(), cursor.number("I")
        if not 1 <= axes <= MOST_AXES:
            damaged(path, f"tensor `{name}` has {axes} axes")
        shape = tuple(cursor.number("Q") for _ in range(axes))[::-1]
        places.append((name, shape, cursor.number("I"), cursor.number("Q")))
    step = file.values.get("general.alignment", ALIGNMENT)
    if not isinstance(step, int) or step < 1:
        damaged(path, f"its tensors are aligned to {step!r}")
    start = -(-cursor.at // step) * step
    file.tensors = {name: (shape, kind, start + offset) for name, shape, kind, offset in places}
    return file


def damaged(path: Path, why: str) -> NoReturn:
    """Raise `MisuseError` about a file."""
    raise MisuseError(f"{path} is no readable GGUF file: {why}; download it again")
