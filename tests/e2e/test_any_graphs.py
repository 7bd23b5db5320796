"""Random models of all operators that are claimed: right, or refused with advice.

A model after the importer's rewriting computes what onnxruntime computes of the original, and the integers are
near it. `TACIT_ANY_GRAPHS=1000` tries so many; a failure names its seed, and `model_of(seed)` builds the model again.
"""

import os
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from any_graphs import ALL, model_of
from tacit.compiler import Options, compile_model
from tacit.data.parts import joined
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.fold import simplify
from tacit.importers.onnx import import_onnx, read, sign
from tacit.importers.rewrite import rewrite
from tacit.importers.source import Selection
from tacit.model import Model

GRAPHS = int(os.environ.get("TACIT_ANY_GRAPHS", "60"))
GROUPS = 6
EXAMPLES = 12
EXACT = 1e-4
NEAR = 0.03
WIDTHS = (None, 11)
"""Bits of weights and activations: where 8 are not enough for so many layers, 11 must be."""
ONCE_WRONG = {
    930: "a result that a softmax reads too had the softmax's coarse steps",
}
"""Models whose integers were off once, and why."""
NAMED = re.compile(r"`[^`]+`.*[;:] ", re.DOTALL)


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def results(runner, feeds):
    """Results by name, (EXAMPLES, values), computed one example at a time."""
    names = [entry.name for entry in runner.get_outputs()]
    rows = [runner.run(names, {key: value[k : k + 1] for key, value in feeds.items()}) for k in range(EXAMPLES)]
    return {name: np.stack([row[place].ravel() for row in rows]) for place, name in enumerate(names)}


def rewritten(path, selection):
    """The model as the importer has it before it becomes a graph of Tacit's, and its signature."""
    model = read(path, selection=selection)
    signature = sign(model, selection)
    simplify(model, signature.input_name)
    rewrite(model, signature.input_name)
    return model, signature


def distance(found, expected):
    """The mean error as a share of what results differ by, or of the largest where they hardly do."""
    spread = max(float(np.ptp(expected)), float(np.abs(expected).max()), 1e-3)
    return float(np.abs(found - expected).mean()) / spread


def check(seed, folder):
    """Try one model; gives whether it ran, and not where onnxruntime cannot run it."""
    growth = model_of(seed)
    model, path = growth.proto(), folder / "any.onnx"
    random = np.random.default_rng(seed)
    x = {name: random.uniform(-1, 1, (EXAMPLES, *shape)).astype(np.float32) for name, shape in growth.inputs.items()}
    try:
        expected = results(session(model), x)
    except Exception:  # noqa: BLE001 (onnxruntime's own exceptions share no base class)
        return None
    onnx.save(model, path)
    selection = Selection(",".join(expected))
    try:
        source = import_onnx(path, selection=selection)
        given = {part.name: x[part.name] for part in source.inputs} or x.get(source.input_name, x["x"])
        flat = joined(source.inputs, given) if source.inputs else given
        simple, signature = rewritten(path, selection)
        runner = session(simple)
        floats = results(runner, {signature.input_name: flat.reshape(EXAMPLES, *signature.input_shape)})
        whole = np.concatenate([*expected.values()], axis=1)
        bound = EXACT * max(1.0, float(np.abs(whole).max()))
        np.testing.assert_allclose(floats[signature.output_name], whole, rtol=0, atol=bound)
        errors = [integers(path, folder, given, flat, selection, expected, bits) for bits in WIDTHS[:1]]
        if errors[-1] > NEAR:
            errors += [integers(path, folder, given, flat, selection, expected, bits) for bits in WIDTHS[1:]]
    except (MisuseError, UnsupportedError) as refusal:
        assert NAMED.search(str(refusal)), f"no node and advice in: {refusal}"
        return False
    assert min(errors) <= NEAR, f"integers are off by {errors}"
    return True


def integers(path, folder, given, flat, selection, expected, bits):
    """The largest distance of a result at one width."""
    options = Options(weight_bits=bits, activation_bits=bits, result=selection.result)
    compile_model(path, folder / "any.tacit", given, options=options)
    model = Model(folder / "any.tacit")
    found = model.real(model.simulate(flat).reshape(EXAMPLES, -1))
    ends = np.cumsum([value.shape[1] for value in expected.values()])[:-1]
    parts = np.split(found, ends, axis=1)
    return max(distance(part, value) for part, value in zip(parts, expected.values(), strict=True))


@pytest.mark.parametrize("group", range(GROUPS))
def test_any_model_is_right_or_refused(group, tmp_path):
    seeds = range(group, GRAPHS, GROUPS)
    ran = []
    for seed in seeds:
        try:
            ran.append(check(seed, tmp_path))
        except BaseException as error:
            error.add_note(f"in the random model of seed {seed}")
            raise
    assert sum(map(bool, ran)) >= 0.8 * len(seeds)


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_what_was_wrong_is_right(seed, tmp_path):
    assert check(seed, tmp_path)


def test_every_kind_appears():
    assert {kind for seed in range(400) for kind in model_of(seed).kinds} >= ALL.keys()
