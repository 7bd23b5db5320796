"""Compiles pipelines of scikit-learn: the schema goes to clients, everything that was learnt stays with the server."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tacit.compiler.compiler import Options, compile_model, silent
from tacit.compiler.trees import compile_ensemble, for_clients
from tacit.errors import UnsupportedError
from tacit.importers.pipelines import Layers, Trees
from tacit.importers.pipelines.scores import Dense, sizes
from tacit.model import Model

SUM_BITS = 15
"""Bits of weights and inputs of a model that is a single sum, which cost it next to nothing."""
LAYER_BITS = 12
"""Bits of weights and activations of other models."""
FEWEST_BITS = 8
MOST_COMPARED = 2048
"""Examples whose results are compared with the library's."""
SAFETY = 2.0
"""How many times the largest error that was seen is stated, of models that are more than a sum."""


def compile_pipeline(
    found: Layers | Trees, name: str, example: Any, output: Path, options: Options | None
) -> dict[str, Any]:
    """Compile what was read of a pipeline called `name` into `output`; gives the summary of its layers.

    `example` are rows (N, columns), a data frame or an array, which say how large numbers are. The schema is written
    beside `output` for clients.
    """
    if isinstance(found, Trees):
        return compile_ensemble(found.ensemble, Path(name), output, options, found.schema)
    options = options or Options()
    if found.scores.result.kind == "scores" and not options.labels:
        options = replace(options, labels=found.scores.result.names)
    x, total = found.examples(example), found.total
    with TemporaryDirectory(prefix="tacit-") as folder:
        source = Path(folder, f"{name}.onnx")
        size = sizes(x)
        onnx.save(found.model(size), source)
        units = (("input", tuple(size.tolist())),) if len(size) > 1 else ()
        options = widest(source, output, x, replace(options, schema=found.schema, units=units), total is not None)
        compiled = Model(output)
        error = error_seen(compiled, source, x) if total is None else error_of_sum(compiled, total)
        schema = found.schema.with_error(error)
        summary = compile_model(
            source, output, x, None, replace(options, schema=schema, salt_of=options.salt_of or output)
        )
    options.say(f"scores are within {error:.3g} of the library's" + ("" if total is not None else ", by examples"))
    return {**summary, **for_clients(output)}


def widest(source: Path, output: Path, x: NDArray[np.float32], options: Options, is_sum: bool) -> Options:
    """Compile into `output` with as many bits as there is room for, where nobody chose; gives the options with them."""
    most, least = SUM_BITS if is_sum else LAYER_BITS, FEWEST_BITS
    for bits in range(most, least - 1, -1):
        chosen = replace(
            options, weight_bits=options.weight_bits or bits, activation_bits=options.activation_bits or bits
        )
        try:
            compile_model(source, output, x, None, replace(chosen, say=silent))
        except UnsupportedError:
            given = options.weight_bits is not None and options.activation_bits is not None
            if bits == least or given:
                raise
        else:
            return chosen
    raise AssertionError("the last width returns or raises")


def error_of_sum(model: Model, total: Dense) -> float:
    """How far results may be from the sum `total` for inputs within the range of the model.

    The integers are a sum too, so that a look at both ends of each input finds what rounding the weights does at
    worst; rounding an input adds half a step of it, by its weight.
    """
    bounds = model.bounds
    features = total.weight.shape[1]
    unit = np.broadcast_to(np.asarray(bounds.units, np.float64), (features,))
    ends = np.concatenate([np.diag(bounds.high * unit), np.diag(bounds.low * unit)]).astype(np.float32)
    zero = np.zeros((1, features), np.float32)
    found = model.real(model.simulate(np.concatenate([zero, ends])))
    at_zero = found[0]
    errors = np.abs(found[1:] - at_zero - ends.astype(np.float64) @ total.weight.T)
    weights = np.maximum(errors[:features], errors[features:]).sum(axis=0)
    inputs = (np.abs(total.weight) * unit * bounds.step / 2).sum(axis=1)
    return float((np.abs(at_zero - total.bias) + weights + inputs).max())


def error_seen(model: Model, source: Path, x: NDArray[np.float32]) -> float:
    """Twice the largest error on some examples, as protocols round, of models that are more than a sum."""
    from tacit.compiler.float_model import FloatModel

    few = x[:MOST_COMPARED]
    floats = FloatModel(source)(few).astype(np.float64)
    exact, drawn = model.simulate(few), model.simulate(few, seed=0)
    return SAFETY * float(max(np.abs(model.real(each) - floats).max() for each in (exact, drawn)))
