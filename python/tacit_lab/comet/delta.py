"""A finetuned encoder as what it differs by from the encoder that it began as, at one bit a weight.

    python -m tacit_lab.comet.delta write BASE FINETUNED FILE.npz [--scale matrix]
    python -m tacit_lab.comet.delta restore BASE FILE.npz FOLDER

Paper: "BitDelta: Your Fine-Tune May Only Be Worth One Bit" (Liu et al., NeurIPS 2024), without its distillation of
scales. A matrix W of the base becomes `gain * W + scale * sign`. `sign` is that of `finetuned - gain * W`, and `scale`
is the mean magnitude of this difference, which is the scale with the least squared error: one number for each row or
for the matrix. BitDelta has no gain. Here the start of a unified model multiplies all queries of a head by one number
(`tacit_lab.train.start`), which is no small change of each weight, so `gain` is the least-squares factor of each row.

A file holds, by the names of weights without the prefix `bert.`:

| array | of | type and shape |
|---|---|---|
| `NAME.sign` | a matrix (rows, columns) with its like in the base | uint8 (ceil(rows * columns / 8),); bit 1 is minus |
| `NAME.gain`, `NAME.scale` | the same | float16 (rows, 1); `gain` less one; `scale` is (1, 1) for one of the matrix |
| `NAME.plus` | anything small with its like in the base | float16, what it differs by |
| `NAME` | what the base lacks (the classifier) | float16 |
| `config.json` | the configuration | uint8, the bytes of the file |
| `base` | the weights of the base | uint8 (32,), the SHA-256 of its `model.safetensors` |

Weights that are those of the base have no array: word embeddings are not trained. The tokenizer is the base's. The same
two folders give the same bytes.
"""

import argparse
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from tacit.errors import MisuseError

Array = NDArray[Any]
Arrays = dict[str, Array]
Scale = Literal["row", "matrix"]
SMALL = 1024
"""Arrays of fewer numbers are stored in float16."""
PREFIX = "bert."
HEAD = "classifier."
WEIGHTS, CONFIGURATION = "model.safetensors", "config.json"
TOKENIZER = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json")
BASE = "base"
SIGN, GAIN, SCALE, PLUS = (f".{part}" for part in ("sign", "gain", "scale", "plus"))


def write(base: Path, finetuned: Path, file: Path, scale: Scale = "row") -> None:
    """Write the delta of the encoder in the folder `finetuned` to the encoder in the folder `base`, as an .npz file.

    Raises `MisuseError` for a folder without weights, and for shapes that the base does not have.
    """
    before, after = weights(base), weights(finetuned)
    content: Arrays = {BASE: digest(base), CONFIGURATION: stored_bytes(finetuned / CONFIGURATION)}
    for name in sorted(after):
        if name not in before:
            content[name] = half(name, after[name])
        elif before[name].shape != after[name].shape:
            raise MisuseError(f"{name} has shape {after[name].shape}, but {before[name].shape} in {base}")
        elif not np.array_equal(before[name], after[name]):
            content |= parts(name, before[name], after[name], scale)
    part = file.with_name(f"{file.name}.part")
    with part.open("wb") as out:
        np.savez(out, allow_pickle=False, **content)
    part.replace(file)


def restore(base: Path, file: Path, folder: Path) -> None:
    """Write the encoder that a delta `file` says into `folder`, as a directory of Hugging Face in float32.

    Raises `MisuseError` for a file that is no delta, or one to another encoder than that in the folder `base`.
    """
    content = read(file)
    if not np.array_equal(content.pop(BASE), digest(base)):
        raise MisuseError(f"{file} is a delta to other weights than those in {base}")
    configuration = content.pop(CONFIGURATION).tobytes()
    known = weights(base)
    try:
        found = {name: restored(name, value, content) for name, value in known.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise MisuseError(f"{file} is no delta: {error}") from error
    own = {name + part for name in known for part in (SIGN, GAIN, SCALE, PLUS)}
    found |= {name: array.astype(np.float32) for name, array in content.items() if name not in own}
    folder.mkdir(parents=True, exist_ok=True)
    named = {name if name.startswith(HEAD) else PREFIX + name: np.ascontiguousarray(a) for name, a in found.items()}
    save_file(named, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / CONFIGURATION).write_bytes(configuration)
    for name in TOKENIZER:
        if (base / name).is_file():
            shutil.copy(base / name, folder / name)


def parts(name: str, before: Array, after: Array, scale: Scale) -> Arrays:
    """The arrays that stand for a weight: those of one bit a number for a matrix that is not small."""
    if before.ndim != 2 or before.size < SMALL:
        return {name + PLUS: half(name, after - before)}
    squares = (before * before).sum(axis=1, keepdims=True)
    gain = half(name, (before * after).sum(axis=1, keepdims=True) / np.where(squares > 0, squares, 1) - 1)
    off = after - (1 + gain.astype(np.float32)) * before
    size = np.abs(off).mean(axis=1 if scale == "row" else None, keepdims=True)
    return {name + SIGN: np.packbits(off < 0), name + GAIN: gain, name + SCALE: half(name, size)}


def restored(name: str, before: Array, content: Arrays) -> Array:
    """A weight in float32 from that of the base and the arrays of a delta."""
    if name + PLUS in content:
        return before + content[name + PLUS].astype(np.float32)
    if name + SIGN not in content:
        return before
    minus = np.unpackbits(content[name + SIGN])[: before.size].reshape(before.shape)
    gain, scale = (content[name + part].astype(np.float32) for part in (GAIN, SCALE))
    found: Array = (1 + gain) * before + np.where(minus, -scale, scale)
    return found


def half(name: str, values: Array) -> Array:
    """In float16. Raises `MisuseError` for numbers that it does not hold."""
    with np.errstate(over="ignore"):
        found = values.astype(np.float16)
    if not np.isfinite(found).all():
        raise MisuseError(f"{name} has numbers beyond float16")
    return found


def weights(folder: Path) -> Arrays:
    """Weights of floating point in a folder, in float32, by their names without a prefix."""
    path = folder / WEIGHTS
    if not path.is_file():
        raise MisuseError(f"{folder} holds no {WEIGHTS}")
    stored = {name.removeprefix(PREFIX): array for name, array in load_file(path).items()}
    return {name: array.astype(np.float32) for name, array in stored.items() if array.dtype.kind == "f"}


def stored_bytes(path: Path) -> Array:
    """The bytes of a file."""
    return np.frombuffer(path.read_bytes(), np.uint8)


def digest(folder: Path) -> Array:
    """The SHA-256 of a folder's weights, 32 bytes."""
    return np.frombuffer(hashlib.sha256((folder / WEIGHTS).read_bytes()).digest(), np.uint8)


def read(file: Path) -> Arrays:
    """The arrays of a delta. Raises `MisuseError` for another file."""
    try:
        with np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise MisuseError(f"{file} is no delta: {error}") from error
    if not {BASE, CONFIGURATION} <= content.keys():
        raise MisuseError(f"{file} is no delta: it names no base")
    return content


def main(words: Sequence[str] | None = None) -> None:
    """Write or restore, as the command line says or as these words do."""
    parser = argparse.ArgumentParser(prog="python -m tacit_lab.comet.delta", description="Deltas of one bit a weight.")
    ways = parser.add_subparsers(dest="way", required=True)
    writes = ways.add_parser("write", help="Write the delta of a finetuned encoder to its base.")
    writes.add_argument("base", type=Path, help="Directory of the encoder before finetuning.")
    writes.add_argument("finetuned", type=Path, help="Directory of the finetuned encoder.")
    writes.add_argument("file", type=Path, help="The .npz file to write.")
    writes.add_argument("--scale", choices=get_args(Scale), default="row", help="What has a scale of its own.")
    restores = ways.add_parser("restore", help="Write the encoder that a delta says.")
    restores.add_argument("base", type=Path, help="Directory of the encoder before finetuning.")
    restores.add_argument("file", type=Path, help="The .npz file to read.")
    restores.add_argument("folder", type=Path, help="Directory to write.")
    options = parser.parse_args(words)
    if options.way == "write":
        write(options.base, options.finetuned, options.file, options.scale)
        print(f"wrote {options.file}: {options.file.stat().st_size} bytes")
    else:
        restore(options.base, options.file, options.folder)
        print(f"wrote {options.folder}")


if __name__ == "__main__":
    main()
