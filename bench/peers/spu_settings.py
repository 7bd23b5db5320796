"""What both parties of SPU and the program agree on; runs in `.venv-peers`."""

import struct
from typing import Any

from spu import libspu

CLIENT, SERVER, SHARED = 0, 1, -1
FRACTION_BITS = {64: 18, 32: 12}


def config(job: dict[str, Any]) -> Any:
    """Cheetah, one thread, inputs that stay with their owners."""
    ring = {64: libspu.FieldType.FM64, 32: libspu.FieldType.FM32}[job["ring_bits"]]
    chosen = libspu.RuntimeConfig(libspu.ProtocolKind.CHEETAH, ring, FRACTION_BITS[job["ring_bits"]])
    chosen.max_concurrency = 1
    chosen.experimental_enable_colocated_optimization = True
    chosen.enable_pphlo_profile = True  # prints the link's statistics after each run
    return chosen


def pack(share: Any) -> bytes:
    """A share as bytes."""
    parts = [share.meta, *share.share_chunks]
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def unpack(content: bytes) -> Any:
    """The share in `content`."""
    parts, start = [], 0
    while start < len(content):
        (size,) = struct.unpack_from("<Q", content, start)
        parts.append(content[start + 8 : start + 8 + size])
        start += 8 + size
    share = libspu.Share()
    share.meta, share.share_chunks = parts[0], parts[1:]
    return share
