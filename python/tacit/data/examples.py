"""Inputs and labels from .npy, .npz, .csv and picture files, checked before anything else sees them."""

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data import claims, tables
from tacit.data.parts import joined
from tacit.data.pictures import is_picture, pixels
from tacit.data.preprocess import Pixels, Preprocessing
from tacit.data.schema import Schema
from tacit.data.tables import is_table
from tacit.data.wanted import Wanted
from tacit.errors import MisuseError
from tacit.importers.source import Part

ARRAYS = ("x", "y")
"""What is read of a .npz file."""
MOST_ARRAYS = 256
"""Most inputs of one model in a file."""
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
    """Inputs as read from the file, float32, and labels (N,) when it has any, or numbers (N,) to be estimated.

    Of a table `kept` are columns that were asked for beside the inputs, and `extra` names those that were left out.
    """

    x: NDArray[np.float32]
    y: NDArray[np.int64] | None
    scores: NDArray[np.float64] | None = None
    kept: Mapping[str, Sequence[Any]] = {}
    extra: tuple[str, ...] = ()


def load(
    path: Path,
    shape: tuple[int, ...] | None = None,
    preprocessing: Preprocessing | None = None,
    parts: Sequence[Part] = (),
) -> Examples:
    """Read a file like `load_one` for a model whose inputs have `shape` and `parts`."""
    return load_one(path, Wanted(shape, parts), preprocessing)


def load_one(path: Path, wanted: Wanted, preprocessing: Preprocessing | None = None) -> Examples:
    """Read `x` and `y` of a .npz file, the one array of a .npy file, the rows of a .csv file, or a picture.

    A .npz file may have an array for each of several `parts` of the input instead, by their names.

    The wanted `shape` is the model's input without batch: the array is then (N, *shape), a single input
    becoming a batch of one. With `preprocessing`, uint8 arrays and pictures go through it; float32
    arrays are inputs as they are. Raises `MisuseError` for an unreadable file, another dtype,
    another shape, an empty batch, NaN or infinity where nothing may be missing, or labels that do not fit.
    """
    shape, parts = wanted.shape, wanted.parts
    named = None if is_picture(path) or is_table(path) else by_name(path)
    if named is not None and parts:
        arrays: dict[str, NDArray[Any]] = {name: named[name] for name in ("y",) if name in named}
        arrays["x"] = joined(parts, {name: array for name, array in named.items() if name != "y"})
    elif is_table(path):
        return of_table(path, wanted)
    else:
        arrays = read(path, preprocessing)
    x: NDArray[Any] = arrays["x"]
    if x.dtype == np.uint8 and preprocessing is not None and x.size:
        x = preprocessing.inputs(channels_last(path, x, preprocessing.channels))
    if x.dtype != np.float32:
        advice = "convert them with x.astype(np.float32)"
        advice += ", or name the preprocessing of pixels (--preprocess)" if x.dtype == np.uint8 else ""
        raise MisuseError(f"{path} holds {x.dtype} inputs; {advice}")
    if wanted.schema is not None and not wanted.schema.is_plain and x.shape[1:] == (len(wanted.schema.columns),):
        return encoded(path, x, arrays.get("y"), wanted.schema)
    if shape is not None:
        x = batch(path, x, shape)
    if x.size == 0 or x.ndim == 0:
        raise MisuseError(f"{path} holds no input: its shape is {list(x.shape)}")
    if not (wanted.missing or np.isfinite(x).all()):
        raise MisuseError(f"{path} holds NaN or infinity")
    y = arrays.get("y")
    return Examples(np.ascontiguousarray(x), labels(path, y, len(x)), scores(path, y, len(x)))


def by_name(path: Path) -> dict[str, NDArray[Any]] | None:
    """All arrays of a .npz file without an array `x`: several inputs by their names. None for any other file."""
    if path.suffix != ".npz" or not path.is_file() or not zipfile.is_zipfile(path):
        return None
    try:
        with path.open("rb") as file:
            with zipfile.ZipFile(file) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
            if "x" in names or not 1 <= len(names) <= MOST_ARRAYS:
                return None
            file.seek(0)
            claims.check(path, file, names)
            content = np.load(file, allow_pickle=False)
            return {name: content[name] for name in names}
    except UNREADABLE:
        return None  # the plain reader says what is wrong


def load_all(
    paths: Sequence[Path],
    shape: tuple[int, ...] | None = None,
    preprocessing: Preprocessing | None = None,
    parts: Sequence[Part] = (),
) -> Examples:
    """Read several files like `load_wanted` for a model whose inputs have `shape` and `parts`."""
    return load_wanted(paths, Wanted(shape, parts), preprocessing)


def load_wanted(paths: Sequence[Path], wanted: Wanted, preprocessing: Preprocessing | None = None) -> Examples:
    """Read several files like `load_one`, one after another; all of one shape, with labels if each has them."""
    read = [load_one(path, wanted, preprocessing) for path in paths]
    if len(read) == 1:
        return read[0]
    for path, part in zip(paths, read, strict=True):
        if part.x.shape[1:] != read[0].x.shape[1:]:
            shapes = f"{list(part.x.shape)} and not {['N', *read[0].x.shape[1:]]}"
            raise MisuseError(f"{path} has shape {shapes} like {paths[0]}; each of several files needs a batch axis")
    known = [part.y for part in read if part.y is not None]
    y = np.concatenate(known) if len(known) == len(read) else None
    kept = {name: [value for part in read for value in part.kept[name]] for name in wanted.kept}
    extra = tuple(dict.fromkeys(name for part in read for name in part.extra))
    return Examples(np.concatenate([part.x for part in read]), y, None, kept, extra)


def origins(paths: Sequence[Path], count: int) -> list[str]:
    """A name for each of `count` inputs read from `paths`: the file's if each gave one, else the running number."""
    return [path.name for path in paths] if len(paths) == count else [f"input {index}" for index in range(count)]


def picture(path: Path, preprocessing: Preprocessing | None) -> Pixels:
    """The pixels of a picture as a batch of one (1, height, width, channels)."""
    if preprocessing is None:
        raise MisuseError(
            f"{path} is a picture, and nothing says how to prepare it; name a preprocessing (--preprocess)"
        )
    return pixels(path, preprocessing)[None]


def channels_last(path: Path, x: Pixels, channels: int) -> Pixels:
    """Images (N, height, width, channels) of an array in that order or with the channels first; N may be missing."""
    if channels == 1 and x.ndim in {2, 3} and 1 not in {x.shape[0], x.shape[-1]}:
        x = x[..., None]
    if x.ndim == 3:
        x = x[None]
    if x.ndim == 4 and x.shape[1] == channels:
        return x.transpose(0, 2, 3, 1)
    if x.ndim == 4 and x.shape[3] == channels:
        return x
    wanted = f"(N, {channels}, height, width) or (N, height, width, {channels})"
    raise MisuseError(f"{path} has pixels of shape {list(x.shape)}; need {wanted}")


def of_table(path: Path, wanted: Wanted) -> Examples:
    """The rows of a .csv or .parquet file, by the model's names where it has some.

    Raises `MisuseError` for values that are missing where the model does not know missing values.
    """
    rows = tables.load(path, wanted.rows, wanted.kept)
    x = rows.x if wanted.shape is None else batch(path, rows.x, wanted.shape)
    if wanted.shape is not None and not (wanted.missing or np.isfinite(x).all()):
        row, place = (int(found[0]) for found in np.nonzero(~np.isfinite(x)))
        where = f"row {row + 1}" + (f", column `{named(wanted, place)}`" if wanted.rows else "")
        raise MisuseError(f"{path}: {where} is missing or infinite, which this model does not know; fill it first")
    return Examples(x, None, None, rows.kept, rows.extra)


def named(wanted: Wanted, feature: int) -> str:
    """The column that a feature is made of."""
    schema = wanted.rows
    return "" if schema is None else schema.columns[schema.features[feature].column].name


def encoded(path: Path, x: NDArray[np.float32], y: NDArray[Any] | None, schema: Schema) -> Examples:
    """Rows (N, columns) of an array, which are encoded as those of a table are."""
    rows = schema.encode(dict(zip(schema.names, x.T, strict=True)), str(path))
    return Examples(rows, labels(path, y, len(x)), scores(path, y, len(x)))


def read(path: Path, preprocessing: Preprocessing | None = None) -> dict[str, NDArray[Any]]:
    """All arrays needed of a file; a .npy file's array, and a picture's pixels, are called `x`.

    Pickles are refused, and what claims to be larger than `claims.MOST_BYTES`, before it is in memory.
    """
    if is_picture(path):
        return {"x": picture(path, preprocessing)}
    try:
        if path.exists() and not path.is_file():  # a pipe would block, a device has no end
            raise MisuseError(f"{path} is not a regular file")
        with path.open("rb") as file:
            claims.check(path, file, ARRAYS)
            content = np.load(file, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return {"x": content}
            if "x" not in content:
                raise MisuseError(f"{path} has no array `x`; it has {', '.join(content.files) or 'none'}")
            return {name: content[name] for name in ARRAYS if name in content}
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
    """Labels as int64 (N,), one for each input; None where `y` holds numbers to be estimated."""
    if y is None or estimates(y, count):
        return None
    if y.shape != (count,) or not np.issubdtype(y.dtype, np.integer):
        raise MisuseError(
            f"{path} has labels `y` of shape {list(y.shape)} and type {y.dtype}; need {count} integers, or "
            f"{count} floating-point numbers that a model estimates"
        )
    return y.astype(np.int64)


def estimates(y: NDArray[Any], count: int) -> bool:
    """Whether `y` (N,) or (N, 1) holds numbers to be estimated rather than labels."""
    return y.shape in ((count,), (count, 1)) and np.issubdtype(y.dtype, np.floating)


def scores(path: Path, y: NDArray[Any] | None, count: int) -> NDArray[np.float64] | None:
    """Numbers (N,) to be estimated, where `y` holds such."""
    if y is None or not estimates(y, count):
        return None
    if not np.isfinite(y).all():
        raise MisuseError(f"{path} has values `y` that are NaN or infinity")
    return y.reshape(count).astype(np.float64)
