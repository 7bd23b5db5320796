"""Keys, requests and answers of suite lola as files: client and server need not meet.

The client has the public plan X.plan, which `compile` writes beside X.tacit, and two files of keys:
NAME.secret stays with it, NAME.keys goes to the server, once.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import _core
from tacit.compiler import metadata
from tacit.data.preprocess import Preprocessing, from_json
from tacit.errors import MisuseError

PLAN = ".plan"
BEGINNING = b"tacit-he"
ENCRYPTED = 5
"""What follows the first bytes of a secret that is encrypted."""
LONGEST_PLAN = 1 << 24


@dataclass(frozen=True)
class PublicPlan:
    """What a client knows of a model: the plan that both parties compute by, and how pixels become inputs."""

    offer: str
    preprocessing: Preprocessing | None

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input, without the batch."""
        return tuple(_core.plan_shape(self.offer))


def write_plan(model: Path) -> Path:
    """Write the public plan of a model beside it."""
    offer = _core.public_plan(str(model))
    preprocessing = metadata.entries(model).get(metadata.PREPROCESS)
    path = model.with_suffix(PLAN)
    path.write_text(json.dumps({"offer": offer, "preprocess": preprocessing}))
    return path


def read_plan(path: Path) -> PublicPlan:
    """Raises `MisuseError` for what is no public plan."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(LONGEST_PLAN))
        offer, preprocessing = str(content["offer"]), content["preprocess"]
        return PublicPlan(offer, None if preprocessing is None else from_json(preprocessing))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise MisuseError(f"{path} is no public plan: {error}; `compile --suite lola` writes one") from error


def secret_path(name: Path) -> Path:
    """The file of the client's own half of its keys."""
    return name.with_name(f"{name.name}.secret")


def keys_path(name: Path) -> Path:
    """The file of the server's half of the keys."""
    return name.with_name(f"{name.name}.keys")


def is_encrypted(secret: Path) -> bool:
    """Whether the file of a secret needs a passphrase; one that cannot be read does not."""
    try:
        with secret.open("rb") as file:
            return file.read(len(BEGINNING) + 1) == BEGINNING + bytes([ENCRYPTED])
    except OSError:
        return False


def generate(plan: PublicPlan, name: Path, passphrase: str | None = None) -> tuple[Path, Path]:
    """Write fresh keys, the secret readable by its owner only, encrypted with a passphrase; never over others."""
    paths = secret_path(name), keys_path(name)
    taken = [path for path in paths if path.exists()]
    if taken:
        raise MisuseError(f"{taken[0]} exists; keys are not overwritten")
    contents = _core.generate_keys(plan.offer, passphrase)
    for path, content, mode in zip(paths, contents, (0o600, 0o644), strict=True):
        path.touch(mode, exist_ok=False)
        path.write_bytes(content)
    return paths


def encrypt(
    plan: PublicPlan, name: Path, x: NDArray[np.float32], threads: int = 1, passphrase: str | None = None
) -> bytes:
    """The request for inputs `x` (N, *shape) under the keys `name`, whose secret may need a passphrase."""
    x = np.ascontiguousarray(x, np.float32)
    return _core.encrypt(plan.offer, read(secret_path(name)), x, threads, passphrase)


def evaluate(model: Path, keys: Path, request: Path, threads: int = 1) -> bytes:
    """The answer of a model to a request, under the client's evaluation keys."""
    return _core.evaluate_encrypted(str(model), read(keys), read(request), threads)


def decrypt(
    plan: PublicPlan, name: Path, answer: Path, passphrase: str | None = None
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """The outputs (N, outputs) of an answer, `output_scale`, the real value of their last place, and `labels`."""
    outputs, reading = _core.decrypt(plan.offer, read(secret_path(name)), read(answer), passphrase)
    return outputs, json.loads(reading)


def read(path: Path) -> bytes:
    """A whole file; raises `MisuseError` when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise MisuseError(f"{path}: {error.strerror}") from error
