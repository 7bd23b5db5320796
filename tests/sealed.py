"""Model files whose header was edited, with a digest that holds: what a reader meets behind the digest."""

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEGINNING = b'{"__metadata__":{"digest":"'
DIGITS = 64


def header_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a safetensors file, and its data."""
    length = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def sealed(header: dict[str, Any], data: bytes) -> bytes:
    """A model file with this header, whose digest is put right, and these data."""
    entries = {"digest": "0" * DIGITS, **{k: v for k, v in header["__metadata__"].items() if k != "digest"}}
    tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
    text = json.dumps({"__metadata__": entries, **tensors}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    content = bytearray(struct.pack("<Q", len(text)) + text + data)
    at = 8 + len(BEGINNING)
    assert content[8:at] == BEGINNING
    content[at : at + DIGITS] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content)


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the metadata of a model file."""
    header, data = header_of(path.read_bytes())
    change(header["__metadata__"])
    path.write_bytes(sealed(header, data))
