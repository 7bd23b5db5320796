"""Files of options in TOML."""

import tomllib
from pathlib import Path
from typing import Any

from tacit.errors import MisuseError

LONGEST_FILE = 1 << 20


def content(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, of its first 1 MB, and what it says; raises `MisuseError` where it is no TOML."""
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST_FILE).decode()
        return text, tomllib.loads(text)
    except OSError as error:
        raise MisuseError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MisuseError(f"{path}: {error}") from error
