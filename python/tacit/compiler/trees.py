"""Compiles ensembles of decision trees, which need no calibration: their leaves are exact."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit import _core
from tacit.compiler import metadata
from tacit.errors import MisuseError
from tacit.importers.source import WHOLE
from tacit.importers.trees import Ensemble, read

if TYPE_CHECKING:
    from tacit.compiler.compiler import Options

SUITE = "auto"


def compile_trees(source: Path, output: Path, options: "Options") -> dict[str, Any]:
    """Compile the ensemble in a file of a tree library; raises as `compile_ensemble` and the readers of files do."""
    if options.selection != WHOLE:
        raise MisuseError(f"{source} is an ensemble of trees and has one result: leave --result and --input-... out")
    return compile_ensemble(read(source), source, output, options)


def compile_ensemble(ensemble: Ensemble, source: Path, output: Path, options: "Options | None") -> dict[str, Any]:
    """Compile an ensemble that was read from `source` into `output`; gives the summary of its layers.

    Raises `MisuseError` for options that trees do not have, `UnsupportedError` for trees that are too deep.
    """
    if options is not None and options.suite != SUITE:
        raise MisuseError(f"decision trees are for suite {SUITE}, not {options.suite}")
    if options is not None:
        for note in ensemble.notes:
            options.say(note)
    made = {} if options is None or options.salt_of is None else {metadata.SALT: metadata.salt(options.salt_of)}
    entries = {**metadata.origin(source, {"suite": SUITE}), **made}
    if ensemble.columns:
        entries[metadata.COLUMNS] = json.dumps(ensemble.columns)
    summary: dict[str, Any] = json.loads(_core.compile_trees(ensemble.to_json(), SUITE, str(output), entries))
    return summary
