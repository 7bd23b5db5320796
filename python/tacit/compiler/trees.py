"""Compiles ensembles of decision trees, which need no calibration: their leaves are exact."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit import _core
from tacit.compiler import metadata
from tacit.errors import MisuseError
from tacit.importers.trees import Ensemble

if TYPE_CHECKING:
    from tacit.compiler.compiler import Options

SUITE = "auto"


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
