"""The page of a server: files that come with the package, and what may be known of the models."""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.resources import files as resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Any

from tacit.data.text import file_of
from tacit.errors import MisuseError
from tacit.model import Model
from tacit.session.models import Served

File = tuple[str, str, bytes, bytes | None]
"""Path in the URL, media type, bytes, and the same compressed by gzip where that is shorter."""
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
}
INDEX = "/index.html"
FACTS = "/model.json"
NEEDED = "/client/wasm/tacit_web_bg.wasm"
SHORTEST = 1024
"""Bytes from which compressing pays."""


def files(folder: Traversable | None = None) -> list[File]:
    """The files of the page in `folder`, that of the package unless given; the path `/` is index.html.

    Raises `MisuseError` when the client's WebAssembly is not there, as in a clone in which nobody has built it.
    """
    found = [file(path, content) for path, content in walk(folder or resources("tacit") / "page")]
    if not {INDEX, NEEDED} <= {path for path, *_ in found}:
        raise MisuseError(
            "this installation has no page: it lacks the client for browsers. In a clone run `make page`; "
            "wheels of `make wheel` have it"
        )
    return [*found, *(("/", kind, body, packed) for path, kind, body, packed in found if path == INDEX)]


def walk(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    """Path and bytes of each file under a folder whose kind is known."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name) if folder.is_dir() else ():
        path = f"{above}/{entry.name}"
        if entry.is_dir():
            yield from walk(entry, path)
        elif PurePosixPath(path).suffix in KINDS:
            yield path, entry.read_bytes()


def file(path: str, content: bytes, kind: str | None = None) -> File:
    """A file as the server shows it."""
    packed = gzip.compress(content, 6, mtime=0) if len(content) >= SHORTEST else content
    kind = kind or KINDS[PurePosixPath(path).suffix]
    return path, kind, content, packed if len(packed) < len(content) else None


def facts(served: Sequence[Served], offerings: Sequence[dict[str, Any]], reveal: str) -> list[File]:
    """The file model.json: for each model what clients learn of it anyhow, and how pictures and texts become inputs.

    Beside it a file X.text for each model that reads text, as `compile` writes it for clients.

    `reveal` is what clients learn of results where a model says nothing of its own.
    """
    known, texts = [], []
    for place, (one, offered) in enumerate(zip(served, offerings, strict=True)):
        model = Model(one.path)
        text = None
        if model.text is not None:
            path = f"/text/{place}.text"
            texts.append(file(path, file_of(model.text), "application/octet-stream"))
            text = {"file": path[1:], "sequence": model.text.sequence, "pooling": model.text.pooling}
        known.append({**of_model(model), "text": text, "reveal": one.options.get("reveal", reveal), **offered})
    return [file(FACTS, json.dumps({"models": known}).encode(), "application/json"), *texts]


def of_model(model: Model) -> dict[str, Any]:
    """What may be known of a model: shapes, ranges, names of classes, layers, preprocessing."""
    description = model.description
    preprocessing = model.preprocessing
    return {
        "suite": description["suite"],
        "input": description["input"],
        "output": description["output"],
        "labels": description.get("labels", []),
        "layers": description["layers"],
        "preprocessing": None if preprocessing is None else asdict(preprocessing),
    }
