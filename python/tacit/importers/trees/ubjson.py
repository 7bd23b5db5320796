"""A reader of Universal Binary JSON (draft 12), as XGBoost writes it.

It reads what is there and no more: lengths are checked against the bytes that are left before anything is made, and
containers may lie in each other only so deep.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import MisuseError

MOST_DEPTH = 64
MOST_VALUES = 1 << 24
"""Most values that take Python objects of their own; numbers of a typed list do not."""
NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
LENGTHS = frozenset("iUIlL")
CONSTANTS = {"Z": None, "T": True, "F": False}
TEXTS = frozenset("SH")


def is_ubjson(head: bytes) -> bool:
    """Whether a file that begins so may be one: an object whose first key has a length, as no JSON text has."""
    return len(head) > 1 and head[:1] == b"{" and chr(head[1]) in LENGTHS | {"#", "$"}


def parse(data: bytes) -> Any:
    """The value that `data` is; raises `MisuseError` for anything else. Typed lists of numbers are arrays."""
    reader = Reader(data)
    try:
        value = reader.value(reader.marker(), 0)
    except (struct.error, ValueError) as error:
        raise MisuseError(f"no readable UBJSON, at byte {reader.at}: {error}") from error
    if reader.at != len(data):
        raise MisuseError(f"no readable UBJSON: it ends at byte {reader.at} of {len(data)}")
    return value


@dataclass
class Reader:
    """Bytes, where the next value begins, and how many values were made."""

    data: bytes
    at: int = 0
    made: int = 0

    def take(self, length: int) -> bytes:
        """The next bytes."""
        if not 0 <= length <= len(self.data) - self.at:
            raise ValueError(f"{length} bytes of {len(self.data) - self.at}")
        self.at += length
        return self.data[self.at - length : self.at]

    def marker(self) -> str:
        """The next marker that is not one of nothing."""
        found = self.take(1)
        while found == b"N":
            found = self.take(1)
        return chr(found[0])

    def peek(self) -> str:
        """The marker that comes next."""
        return chr(self.data[self.at]) if self.at < len(self.data) else ""

    def number(self, kind: str) -> Any:
        """A number of a kind."""
        dtype = np.dtype(NUMBERS[kind])
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def length(self) -> int:
        """A length with its marker."""
        kind = self.marker()
        if kind not in LENGTHS:
            raise ValueError(f"a length of kind {kind!r}")
        length = int(self.number(kind))
        if length < 0:
            raise ValueError(f"a length of {length}")
        return length

    def text(self) -> str:
        """A text with its length."""
        return self.take(self.length()).decode("utf-8", "replace")

    def value(self, kind: str, depth: int) -> Any:
        """A value whose marker was read."""
        self.made += 1
        if depth > MOST_DEPTH or self.made > MOST_VALUES:
            raise ValueError(f"containers deeper than {MOST_DEPTH}, or more than {MOST_VALUES} values")
        if kind in NUMBERS:
            return self.number(kind)
        if kind in CONSTANTS:
            return CONSTANTS[kind]
        if kind == "C":
            return self.take(1).decode("latin-1")
        if kind in TEXTS:
            return self.text()
        if kind == "[":
            return self.listed(depth)
        if kind == "{":
            return self.members(depth)
        raise ValueError(f"a value of kind {kind!r}")

    def header(self) -> tuple[str | None, int | None]:
        """The kind and the number of a container's values, where it says them in front."""
        kind = count = None
        if self.peek() == "$":
            self.take(1)
            kind = self.marker()
        if self.peek() == "#":
            self.take(1)
            count = self.length()
        if kind is not None and count is None:
            raise ValueError("a container of a kind without a number")
        # Each value takes a byte at least, but constants of a kind that is said in front.
        least = 0 if kind in CONSTANTS else 1
        if count is not None and (count * least > len(self.data) - self.at or count > MOST_VALUES << 4):
            raise ValueError(f"a container of {count} values")
        return kind, count

    def listed(self, depth: int) -> Any:
        """A list, or an array of numbers of one kind."""
        kind, count = self.header()
        if kind in NUMBERS and count is not None:
            dtype = np.dtype(NUMBERS[kind])
            return np.frombuffer(self.take(dtype.itemsize * count), dtype).astype(dtype.newbyteorder("="))
        values: list[Any] = []
        while not self.ends("]", count, len(values)):
            values.append(self.value(kind or self.marker(), depth + 1))
        return values

    def members(self, depth: int) -> dict[str, Any]:
        """An object."""
        kind, count = self.header()
        values: dict[str, Any] = {}
        read = 0
        while not self.ends("}", count, read):
            name = self.text()
            values[name] = self.value(kind or self.marker(), depth + 1)
            read += 1
        return values

    def ends(self, marker: str, count: int | None, read: int) -> bool:
        """Whether a container has all of its values; its end is read where it has one."""
        if count is not None:
            return read >= count
        while self.peek() == "N":
            self.take(1)
        if self.peek() != marker:
            return False
        self.take(1)
        return True
