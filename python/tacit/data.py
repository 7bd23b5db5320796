"""Inputs and labels from .npy and .npz files, checked before anything else sees them."""

import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import MisuseError

# What numpy and zipfile raise for damaged or hostile files.
UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TypeError,
    zipfile.BadZipFile,
    zlib.error,
)


class Examples(NamedTuple):
    """Inputs as read from the file, float32, and labels (N,) when it has any."""

    x: NDArray[np.float32]
    y: NDArray[np.int64] | None


def load(path: Path, shape: tuple[int, ...] | None = None) -> Examples:
    """Read `x` and `y` of a .npz file, or the one array of a .npy file.

    `shape` is the model's input without batch: the array is then (N, *shape), a single input
    becoming a batch of one. Raises `MisuseError` for an unreadable file, a dtype other than
    float32, another shape, an empty batch, NaN or infinity, or labels that do not fit.
    """
    arrays = read(path)
    x = arrays["x"]
    if x.dtype != np.float32:
        raise MisuseError(f"{path} holds {x.dtype} inputs; convert them with x.astype(np.float32)")
    if shape is not None:
        x = batch(path, x, shape)
    if x.size == 0 or x.ndim == 0:
        raise MisuseError(f"{path} holds no input: its shape is {list(x.shape)}")
    if not np.isfinite(x).all():
        raise MisuseError(f"{path} holds NaN or infinity")
    return Examples(np.ascontiguousarray(x), labels(path, arrays.get("y"), len(x)))


def read(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays needed of a file; a .npy file's array is called `x`. Pickles are refused."""
    try:
        if path.exists() and not path.is_file():  # a pipe would block, a device has no end
            raise MisuseError(f"{path} is not a regular file")
        with path.open("rb") as file:
            content = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return {"x": content}
            if "x" not in content:
                raise MisuseError(f"{path} has no array `x`; it has {', '.join(content.files) or 'none'}")
            return {name: content[name] for name in ("x", "y") if name in content}
    except FileNotFoundError:
        raise MisuseError(f"{path} does not exist") from None
    except UNREADABLE as error:
        # numpy takes a foreign file for a pickle and advises to load it unsafely.
        why = "it is foreign, or holds Python objects" if "pickle" in str(error) else str(error)
        raise MisuseError(f"{path} is no readable .npy or .npz file: {why}") from error


def batch(path: Path, x: NDArray[np.float32], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """`x` with its leading batch axis, checked against the model's input shape."""
    if x.shape == shape:
        return x[None]
    if x.shape[1:] != shape:
        raise MisuseError(f"{path} has shape {list(x.shape)}; the model takes {list(shape)} or {['N', *shape]}")
    return x


def labels(path: Path, y: NDArray[Any] | None, count: int) -> NDArray[np.int64] | None:
    """Labels as int64 (N,), one for each input."""
    if y is None:
        return None
    if y.shape != (count,) or not np.issubdtype(y.dtype, np.integer):
        raise MisuseError(f"{path} has labels `y` of shape {list(y.shape)} and type {y.dtype}; need {count} integers")
    return y.astype(np.int64)
