"""Compiled models: what a .tacit file says of itself, and its interpreter."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import _core
from tacit.compiler import metadata
from tacit.data import links
from tacit.data.links import Link
from tacit.data.parts import unit_of_each
from tacit.data.preprocess import Preprocessing, from_json
from tacit.data.ranges import KEYS, Bounds
from tacit.data.schema import Schema
from tacit.data.schema import parse as parse_schema
from tacit.data.tables import by_column, is_frame
from tacit.data.text import ENTRY, Text, stored
from tacit.data.wanted import Wanted
from tacit.errors import MisuseError
from tacit.importers.source import Part, Selection
from tacit.session.terms import Terms

FLOAT_ERROR = 2.0**-24
"""How far rounding a sum to float32 moves it at most, where it is no larger than 2."""
SIMULATION_BATCH = 32
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Model:
    """A .tacit file; its methods raise `MisuseError` when it is missing or corrupt."""

    path: Path

    @cached_property
    def description(self) -> dict[str, Any]:
        """Public facts: name, suite, digest, input, output, layers."""
        described: dict[str, Any] = json.loads(_core.describe(str(self.path)))
        return described

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input, without the batch."""
        return tuple(self.description["input"]["shape"])

    @property
    def bounds(self) -> Bounds:
        """The range of inputs, in their own units; values beside it are cut."""
        entry = self.description["input"]
        if self.reads_keys:
            return Bounds.everything()
        return Bounds.of(entry["range"], float(entry["scale"]), self.inputs)

    @property
    def reads_keys(self) -> bool:
        """Whether the model compares float32 numbers as they are, and knows missing values."""
        return bool(self.description["input"]["encoding"] == KEYS)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the features, where the file has them."""
        _ = self.description  # a file that is no model is refused as such
        names = json.loads(metadata.entries(self.path).get(metadata.COLUMNS, "[]"))
        return tuple(map(str, names))

    @cached_property
    def schema(self) -> Schema | None:
        """How rows of a table become inputs and what results mean, of a model of tables that knows its columns."""
        _ = self.description  # a file that is no model is refused as such
        stored = metadata.entries(self.path).get(metadata.SCHEMA)
        if stored is None:
            return None
        found = parse_schema(stored, str(self.path))
        return found if self.error is None else found.with_error(self.error)

    @cached_property
    def error(self) -> float | None:
        """How far scores of decision trees may be from their library's; None of other models.

        Each leaf and the base score are rounded to the unit of the result, by half of it at most. Libraries that add in
        float32 round each sum, by 2^-24 at most where sums are no larger than 2; errors of larger ones go both ways.
        """
        trees = (metadata.noted(metadata.entries(self.path).get(metadata.OPTIONS)) or {}).get(metadata.TREES)
        return None if trees is None else (int(trees) + 1) * self.output_scale / 2 + int(trees) * FLOAT_ERROR

    @property
    def wanted(self) -> Wanted:
        """What the model takes, for those who read inputs from files."""
        return Wanted(self.input_shape, self.inputs, self.columns, self.reads_keys, self.schema)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of one result, without the batch; `simulate` flattens its axes."""
        return tuple(self.description["output"]["shape"])

    @cached_property
    def preprocessing(self) -> Preprocessing | None:
        """How pixels become inputs, when `compile --preprocess` said so."""
        _ = self.description  # a file that is no model is refused as such
        stored = metadata.entries(self.path).get(metadata.PREPROCESS)
        return None if stored is None else from_json(stored)

    @cached_property
    def text(self) -> Text | None:
        """How text becomes inputs, of a model that reads text."""
        _ = self.description  # a file that is no model is refused as such
        entries = metadata.entries(self.path)
        return stored(self.path, entries) if ENTRY in entries else None

    @cached_property
    def selection(self) -> Selection:
        """The part of the float model that was compiled."""
        noted = metadata.noted(metadata.entries(self.path).get(metadata.OPTIONS)) or {}
        return Selection.of(noted)

    @property
    def output_scale(self) -> float:
        """Real value of one last place of the output; of several results, before their units."""
        return float(self.description["output"]["scale"])

    @cached_property
    def inputs(self) -> tuple[Part, ...]:
        """The inputs, where they are several or have more axes than the engine has."""
        return tuple(map(Part.of, self.description["input"].get("parts", ())))

    @cached_property
    def outputs(self) -> tuple[Part, ...]:
        """The results, where they are several or have more axes than the engine has."""
        return tuple(map(Part.of, self.description["output"].get("parts", ())))

    @property
    def states(self) -> tuple[str, ...]:
        """Tensors that stay shared from one input of a session to the next."""
        return tuple(self.description.get("states", ()))

    @property
    def link(self) -> Link | None:
        """What clients may make of results, such as probabilities of scores; None where results are the estimates."""
        return links.of(self.description.get("link"))

    def estimates(self, outputs: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Estimates (N, outputs) that the link makes of integers (N, outputs), None without a link."""
        link = self.link
        return None if link is None else link.estimates(self.real(outputs))

    def real(self, outputs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Real values (N, outputs) of integers (N, outputs)."""
        values: NDArray[np.float64] = outputs * np.float64(self.output_scale) * unit_of_each(self.outputs)
        return values

    def plan(self, terms: Terms | None = None, *, explain: bool = False) -> dict[str, Any]:
        """The public plan of a session and its predicted cost: bytes and rounds exactly, seconds about.

        With `explain` it holds `alternatives`, by layer, and `sources` of correlations with their seconds.
        """
        options = {**(terms or Terms()).options(), "explain": explain}
        planned: dict[str, Any] = json.loads(_core.plan(str(self.path), json.dumps(options)))
        return planned

    def suited_batch(self, terms: Terms) -> int:
        """How many inputs of a session share a run with least predicted time; 1 unless inputs are rows of numbers."""
        return _core.suited_batch(str(self.path), json.dumps(terms.options()))

    def compare_suites(self, terms: Terms | None = None) -> list[dict[str, Any]]:
        """What every suite would take: `suite`, `protocols`, and the plan's `report` or the `reason` it cannot run."""
        options = (terms or Terms()).options()
        rows: list[dict[str, Any]] = json.loads(_core.compare_suites(str(self.path), json.dumps(options)))
        return rows

    def inspect(self) -> dict[str, Any]:
        """What the file says of itself: digest of the whole file, whether it `holds`, origin, tensors, operators.

        Unlike everything else it also reads a file that is damaged, as long as its header can be read.
        """
        found: dict[str, Any] = json.loads(_core.inspect(str(self.path)))
        found["options"] = metadata.noted(found["options"])
        return found

    def encode(self, rows: Any) -> NDArray[np.float32]:
        """Inputs (N, *shape) of rows: a data frame, or a mapping from names of columns to arrays (N,).

        Raises `MisuseError` for columns that are missing, and where the model does not know its columns.
        """
        schema = self.wanted.rows
        if schema is None:
            raise MisuseError(f"{self.path} does not know the names of its columns; give an array")
        return schema.encode(by_column(rows))

    def simulate(
        self, x: NDArray[np.float32] | Any, progress: Progress | None = None, seed: int | None = None
    ) -> NDArray[np.int64]:
        """Integer outputs (N, outputs) of the interpreter for inputs (N, *shape), on all processors.

        Models of tables also take a data frame, or a mapping from names of columns to arrays (N,).

        With a `seed` stochastic rounding is drawn from it, as the default protocols round. Inputs of a model with
        states are those of one session, in order.
        """
        if is_frame(x) or isinstance(x, Mapping):
            x = self.encode(x)
        if self.states:
            return np.asarray(_core.simulate(str(self.path), x, seed))
        with ThreadPoolExecutor(processors(), "tacit-simulate") as pool:
            starts = accumulate((len(part) for part in parts(x)), initial=0)
            seeds = [None if seed is None else seed + start for start in starts]
            running = [
                pool.submit(_core.simulate, str(self.path), part, drawn)
                for part, drawn in zip(parts(x), seeds, strict=False)
            ]
            try:
                return np.concatenate(list(finished(running, len(x), progress)))
            finally:
                pool.shutdown(cancel_futures=True)


def finished(
    running: Iterable[Future[NDArray[np.int64]]], total: int, progress: Progress | None
) -> Iterator[NDArray[np.int64]]:
    """Results in order, each reported as it comes."""
    done = 0
    for future in running:
        outputs = future.result()
        done += len(outputs)
        if progress is not None:
            progress(done, total)
        yield outputs


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parts(x: NDArray[np.float32]) -> Iterator[NDArray[np.float32]]:
    """Batches small enough for progress to be seen, and for every processor to have some."""
    size = max(1, min(SIMULATION_BATCH, -(-len(x) // processors())))
    for start in range(0, len(x), size):
        yield x[start : start + size]
