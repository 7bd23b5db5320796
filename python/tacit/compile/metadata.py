"""What the Python side keeps in a .tacit file beside the graph: entries of its safetensors metadata.

The core reads the entries it knows and leaves the others alone; they are no part of the plan.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

from tacit.errors import MisuseError

LONGEST_HEADER = 1 << 26
LENGTH = 8


def entries(path: Path) -> dict[str, str]:
    """All entries; raises `MisuseError` for a file that is no safetensors file."""
    try:
        with path.open("rb") as file:
            return dict(header(path, file)["__metadata__"])
    except (OSError, KeyError, TypeError) as error:
        raise MisuseError(f"{path} has no readable header: {error}") from error


def attach(path: Path, added: dict[str, str]) -> None:
    """Add entries to a file, which is replaced only when the new one is complete."""
    with path.open("rb") as file, tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as copy:
        try:
            content = header(path, file)
            content["__metadata__"] |= added
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
            text += b" " * (-len(text) % LENGTH)
            copy.write(len(text).to_bytes(LENGTH, "little") + text)
            shutil.copyfileobj(file, copy)
            shutil.copymode(path, copy.name)
            copy.flush()
            os.fsync(copy.fileno())
            Path(copy.name).replace(path)
        except BaseException:
            Path(copy.name).unlink(missing_ok=True)
            raise


def header(path: Path, file: BinaryIO) -> dict[str, Any]:
    """The header; the file then stands at the tensors."""
    length = int.from_bytes(file.read(LENGTH), "little")
    if length > LONGEST_HEADER:
        raise MisuseError(f"{path} has a header of {length} bytes, more than any model's")
    try:
        content = json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"{path} has no readable header: {error}") from error
    if not isinstance(content, dict):
        raise MisuseError(f"{path} has a header that is no object")
    return content
