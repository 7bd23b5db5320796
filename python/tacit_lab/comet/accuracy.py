"""How well finetuned encoders do with unified functions, and with approximate inverse square roots in them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tacit.compiler.float_model import FloatModel
from tacit.data import corpus
from tacit.data.text import Text
from tacit.errors import MisuseError
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Source
from tacit.report.metrics import Values

from tacit_lab.comet.clear import Clear, InverseRoot
from tacit_lab.comet.starts import Bounds, Root, affine, branches, flooding, line_error, unflooded
from tacit_lab.glue import TASKS, Task

LEARNED = 128
"""Training inputs that show the ranges."""
STEP = 16
"""Lengths of inputs are multiples of this."""
ITERATIONS = (0, 3, 4)
SEED = 1
KINDS = {"original": "", "activation": "-activation", "attention": "-attention", "unified": "-unified"}
"""Models of a task, and how their folders' names end: with no function unified, with one of the two, and with both."""


@dataclass(frozen=True)
class Inputs:
    """Inputs (N, 2, tokens) of one length, and their places among all."""

    places: NDArray[np.int64]
    x: NDArray[np.float32]


@dataclass(frozen=True)
class Sentences:
    """Texts of a file of the task as a model in a directory reads them."""

    folder: Path
    task: Task
    text: Text
    file: corpus.Corpus

    @classmethod
    def read(cls, folder: Path, name: str, path: Path, limit: int | None) -> "Sentences":
        """The first `limit` texts or pairs of a file. Raises `MisuseError` for a model that is not there."""
        tokenizer = folder / "tokenizer.json"
        if not tokenizer.is_file():
            raise MisuseError(f"{folder} holds no model; make train-glue TASK={name} writes it")
        task = TASKS[name]
        text = Text(tokenizer.read_text(encoding="utf-8"), task.sequence, "classes")
        return cls(folder, task, text, corpus.load(path, task.labels).first(limit))

    @property
    def wanted(self) -> Values:
        """Classes or scores."""
        found = self.file.scores if self.task.estimates else self.file.labels
        if found is None:
            raise MisuseError(f"the file of {self.task.title} has no column `{self.task.label}`")
        return found.astype(np.float64)

    def by_length(self) -> Iterator[Inputs]:
        """Inputs that are as short as their texts allow."""
        tokens = self.text.tokens(self.file.inputs(True))
        lengths = np.minimum(-(-tokens.lengths // STEP) * STEP, self.task.sequence)
        for length in np.unique(lengths):
            places = np.flatnonzero(lengths == length)
            yield Inputs(places, tokens.x[places][:, :, :length])

    def plain(self) -> float:
        """The measure of the float model."""
        outputs = np.zeros((len(self.wanted), len(self.task.labels)))
        for part in self.by_length():
            outputs[part.places] = FloatModel(self.folder, (), part.x.shape[2])(part.x)
        return self.task.score(outputs, self.wanted)


class Approximate:
    """The unified model in a directory, whose ranges are those of the first texts of a training file."""

    def __init__(self, name: str, folder: Path, training: Path) -> None:
        self.name, self.folder = name, folder
        self.sources: dict[int, Source] = {}
        self.bounds: dict[str, Bounds] = {}
        for part in Sentences.read(folder, name, training, LEARNED).by_length():
            Clear(self.source(part), bounds=self.bounds)(part.x)

    def source(self, part: Inputs) -> Source:
        """The graph for inputs of that length."""
        length = part.x.shape[2]
        if length not in self.sources:
            self.sources[length] = import_onnx(self.folder, length)
        return self.sources[length]

    def measured(self, dev: Sentences, root: InverseRoot) -> float:
        """The measure with an inverse root."""
        outputs = np.zeros((len(dev.wanted), len(dev.task.labels)))
        for part in dev.by_length():
            run = Clear(self.source(part), root, self.bounds, learning=False)
            outputs[part.places] = run(part.x)
        return dev.task.score(np.nan_to_num(outputs), dev.wanted)

    def ranges(self) -> dict[str, dict[str, float]]:
        """For each inverse root its bounds, and the branches of the affine start."""
        return {
            name: {"low": low, "high": high, "ratio": high / low, "branches": branches((low, high))}
            for name, (low, high) in self.bounds.items()
        }


def roots() -> Iterator[tuple[str, InverseRoot]]:
    """The starts, with as many iterations as the paper has."""
    for count in ITERATIONS:
        yield f"affine-{count}", Root(affine, count, line_error)
        yield f"flooding-{count}", Root(flooding(SEED), count)
    yield "unflooded-4", Root(unflooded(SEED), 4)


def kinds(name: str, models: Path) -> dict[str, Path]:
    """Folders of a task's models by kind, of those that are there; that of the unified model in any case."""
    folders = {kind: models / f"{name}{end}" for kind, end in KINDS.items()}
    return {kind: folder for kind, folder in folders.items() if kind == "unified" or folder.is_dir()}


def measure(
    name: str, models: Path, data: Path, limit: int | None, chosen: Iterable[str] | None = None
) -> dict[str, Any]:
    """One task: measures in float of the models that there are, and of the unified one with each inverse root."""
    dev = data / "glue" / f"{name}_dev.tsv"
    read = {kind: Sentences.read(folder, name, dev, None) for kind, folder in kinds(name, models).items()}
    unified = read["unified"]
    content: dict[str, Any] = {"measure": unified.task.measure, "inputs": len(unified.wanted)}
    content |= {kind: sentences.plain() for kind, sentences in read.items()}
    approximate = Approximate(name, unified.folder, data / "glue" / f"{name}_train.tsv")
    some = Sentences.read(unified.folder, name, dev, limit)
    wanted = None if chosen is None else set(chosen)
    content["roots"] = {"exact": some.plain()}
    content["roots"] |= {root: approximate.measured(some, f) for root, f in roots() if wanted is None or root in wanted}
    return {**content, "roots_inputs": len(some.wanted), "ranges": approximate.ranges()}
