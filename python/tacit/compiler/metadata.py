"""What the Python side keeps in a .tacit file beside the graph: entries of its safetensors metadata.

The core writes them with the model, and its digest covers them; it reads those it knows and leaves the others alone.
They are no part of the plan, so that clients do not get them.
"""

import json
from pathlib import Path
from typing import Any, BinaryIO

from tacit.errors import MisuseError

LONGEST_HEADER = 1 << 26
LENGTH = 8
PREPROCESS = "preprocess"
SOURCE = "source"
OPTIONS = "options"
COLUMNS = "columns"
"""The names of the features of a model of tables, a list as JSON."""
SCHEMA = "schema"
"""How rows of a table become inputs and what results mean, as JSON (`tacit.data.schema`)."""
TREES = "trees"
"""Among the options: how many trees are summed."""
SALT = "salt"
"""What the commitment to the file hides its contents with; the core draws it where it is not given."""


def entries(path: Path) -> dict[str, str]:
    """All entries; raises `MisuseError` for a file that is no safetensors file."""
    try:
        with path.open("rb") as file:
            return dict(header(path, file)["__metadata__"])
    except (OSError, KeyError, TypeError) as error:
        raise MisuseError(f"{path} has no readable header: {error}") from error


def origin(source: Path, options: dict[str, Any]) -> dict[str, str]:
    """Entries with the name of what was compiled, without the folder it was in, and the options that it was with."""
    return {SOURCE: source.resolve().name, OPTIONS: json.dumps(options)}


def noted(options: str | None) -> dict[str, Any] | None:
    """The options that a file says it was compiled with; None where it does not say."""
    try:
        content = json.loads(options or "null")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def salt(path: Path) -> str:
    """The salt of a model file; raises `MisuseError` for a file without one."""
    try:
        return entries(path)[SALT]
    except KeyError as error:
        raise MisuseError(f"{path} has no salt: an earlier release wrote it") from error


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
