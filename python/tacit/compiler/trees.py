"""Compiles ensembles of decision trees, which need no calibration: their leaves are exact."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit import _core
from tacit.compiler import metadata
from tacit.data.schema import ENDING, Schema
from tacit.errors import MisuseError
from tacit.importers.pipelines.onnx_ml import is_trees_behind
from tacit.importers.pipelines.onnx_ml import read as read_behind
from tacit.importers.source import WHOLE
from tacit.importers.trees import Ensemble, is_trees, read
from tacit.importers.trees.meaning import schema_of
from tacit.importers.trees.onnx_graph import mentions_ensemble
from tacit.model import Model

if TYPE_CHECKING:
    from tacit.compiler.compiler import Options

SUITES = ("auto", "checked")
"""Suites with protocols for trees, first the one that is taken where none is named."""


def compile_trees(source: Path, output: Path, options: "Options") -> dict[str, Any]:
    """Compile the ensemble in a file of a tree library; raises as `compile_ensemble` and the readers of files do."""
    if options.selection != WHOLE:
        raise MisuseError(f"{source} is an ensemble of trees and has one result: leave --result and --input-... out")
    ensemble, schema = (read(source), None) if is_trees(source) else read_behind(source)
    return compile_ensemble(ensemble, source, output, options, schema)


def are_trees(source: Path) -> bool:
    """Whether a file is an ensemble of trees, alone or behind scalers and imputers in ONNX."""
    if is_trees(source):
        return True
    return source.suffix == ".onnx" and mentions_ensemble(source) and is_trees_behind(source)


def compile_ensemble(
    ensemble: Ensemble, source: Path, output: Path, options: "Options | None", schema: Schema | None = None
) -> dict[str, Any]:
    """Compile an ensemble that was read from `source` into `output`; gives the summary of its layers.

    Where the names of its columns are known, or a `schema` is given, what clients need is written beside `output`,
    with the ending .schema.

    Raises `MisuseError` for options that trees do not have, `UnsupportedError` for trees that are too deep.
    """
    suite = SUITES[0] if options is None else options.suite
    if suite not in SUITES:
        raise MisuseError(f"decision trees are for suite {SUITES[0]}, not {suite}")
    if options is not None:
        for note in ensemble.notes:
            options.say(note)
    made = {} if options is None or options.salt_of is None else {metadata.SALT: metadata.salt(options.salt_of)}
    noted = {"suite": suite, metadata.TREES: len(ensemble.trees)}
    entries = {**metadata.origin(source, noted), **made}
    schema = schema or schema_of(ensemble)
    if schema is not None:
        entries |= {metadata.COLUMNS: json.dumps(schema.names), metadata.SCHEMA: schema.to_json()}
    summary: dict[str, Any] = json.loads(_core.compile_trees(ensemble.to_json(), suite, str(output), entries))
    return {**summary, **for_clients(output)}


def for_clients(output: Path) -> dict[str, str]:
    """Write the schema of a model for its clients, if it has one; gives the field of the summary with the file."""
    schema = Model(output).schema
    if schema is None:
        return {}
    path = output.with_suffix(ENDING)
    schema.write(path)
    return {"schema": str(path)}
