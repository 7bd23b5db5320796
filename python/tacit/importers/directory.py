"""Files of a directory of Hugging Face, read and checked: configurations in JSON, weights in safetensors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

LONGEST_CONFIG = 1 << 20


def read_weights(folder: Path) -> dict[str, NDArray[np.float32]]:
    """All weights, of one file or of those an index names, as float32."""
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError:
        raise MisuseError("reading weights needs safetensors; install tacit[text]") from None

    index = folder / "model.safetensors.index.json"
    names = ["model.safetensors"]
    if index.is_file():
        names = sorted({Path(str(name)).name for name in read_json(index).get("weight_map", {}).values()})
    weights: dict[str, NDArray[np.float32]] = {}
    for name in names:
        if not (folder / name).is_file():
            advice = "save the model with save_pretrained(..., safe_serialization=True)"
            raise MisuseError(f"{folder} has no {name}; {advice}")
        try:
            stored = load_file(folder / name)
        except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise MisuseError(f"{folder / name} is no readable safetensors file of numbers: {error}") from error
        weights |= {key: value.astype(np.float32, copy=False) for key, value in stored.items()}
    return weights


def renamed(weights: Mapping[str, NDArray[np.float32]], prefix: str) -> dict[str, NDArray[np.float32]]:
    """Names without the family's prefix, and with the roles of norms as they are called today."""
    old = {".gamma": ".weight", ".beta": ".bias"}
    names = {name: name.removeprefix(prefix) for name in weights}
    for name, short in names.items():
        for end, new in old.items():
            names[name] = names[name].removesuffix(end) + new if short.endswith(end) else names[name]
    return {names[name]: value for name, value in weights.items()}


class Present(dict[str, NDArray[np.float32]]):
    """Weights; an absent one is the directory's fault."""

    def __init__(self, folder: Path, weights: Mapping[str, NDArray[np.float32]]) -> None:
        super().__init__(weights)
        self.folder = folder

    def __missing__(self, name: str) -> NoReturn:
        raise MisuseError(f"{self.folder}: the weights lack `{name}`; save the whole model again")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; raises `MisuseError` for anything else."""
    content = parsed(path)
    if not isinstance(content, dict):
        raise MisuseError(f"{path} is no JSON object")
    return content


def read_list(path: Path) -> list[dict[str, Any]]:
    """A JSON list of objects; raises `MisuseError` for anything else."""
    content = parsed(path)
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise MisuseError(f"{path} is no JSON list of objects")
    return content


def parsed(path: Path) -> Any:
    """What a JSON file says."""
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST_CONFIG + 1)
        return json.loads(text) if len(text) <= LONGEST_CONFIG else None
    except FileNotFoundError:
        raise MisuseError(f"{path} does not exist") from None
    except (OSError, ValueError, RecursionError) as error:
        raise MisuseError(f"{path} is no readable JSON: {error}") from error
