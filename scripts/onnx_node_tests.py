"""ONNX's own tests of its operators, through the compiler: which pass, and why the others do not.

`python scripts/onnx_node_tests.py` runs all of the operators that docs/reference/operators.md lists, and rewrites
docs/reference/onnx_node_tests.md; `--only PART` runs those with PART in their names, and prints what came out.
The private input is the first one of floats; other inputs become constants. A model is compiled and simulated, and its
integers are compared with what the test expects.
"""

import argparse
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.errors import TacitError
from tacit.importers.forms.defuse import RULES
from tacit.importers.forms.dequantise import QUANTISED
from tacit.importers.onnx import KNOWN
from tacit.importers.source import Selection
from tacit.model import Model

PAGE = Path(__file__).parent.parent / "docs/reference/onnx_node_tests.md"
NEAR, NEAR_FLOAT = 0.1, 0.005
"""How far integers and floats of the model as read may be from the expected result, as a part of the largest."""
LONGEST = 150
PASSED, REFUSED, WRONG, LEFT_OUT = "passes", "refused", "WRONG", "left out"
INTRODUCTION = """# ONNX's own tests

Written by `scripts/onnx_node_tests.py`, and a part of it is computed again by a test. The package `onnx` has tests
for each operator, at the newest opset. Those of [operators that compile](operators.md) are compiled and simulated: the
first input of floats is the private one, other inputs are constants. Where all inputs are batches, their first
examples are taken. A result within {near:.0%} of the
largest value passes, if the floats of the model as it was read are within 0.5%. Refused are tests without a
batch in front, and those that use what the operator's line on the page of operators leaves out; tests without
an input of floats say nothing here.

{summary}
"""


class Outcome(NamedTuple):
    """What came out of a test."""

    name: str
    state: str
    reason: str = ""


def claimed() -> set[str]:
    """The operators of ONNX itself that are said to compile."""
    return {*KNOWN, *QUANTISED, *RULES[""]}


def cases(modules: Sequence[str] = ()) -> dict[str, Any]:
    """The tests all of whose operators are said to compile, by name; of some of ONNX's modules of tests, or of all.

    ONNX makes them when their modules are imported, with random numbers, which are the same each time here.
    """
    from onnx.backend.test.case import node as suite

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.random.seed(0)
        for module in modules:
            import_module(f"{suite.__name__}.{module}")
        found = suite._NodeTestCases if modules else suite.collect_testcases()
    known = claimed()
    return {
        case.name: case
        for case in sorted(found, key=lambda case: str(case.name))
        if "_expanded" not in case.name
        and all(node.op_type in known and node.domain in ("", "ai.onnx") for node in case.model.graph.node)
    }


def first_examples(case: Any) -> tuple[list[Any], list[Any]]:
    """The inputs with the first example of each batch, and what ONNX's reference computes; None if it fails."""
    inputs = case.data_sets[0][0]
    rows = next((len(x) for x in inputs if isinstance(x, np.ndarray) and x.dtype == np.float32 and x.ndim), 0)
    cut = [x[:1] if isinstance(x, np.ndarray) and x.ndim > 1 and len(x) == rows else x for x in inputs]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    named = dict(zip((entry.name for entry in model.graph.input), cut, strict=True))
    try:
        return cut, list(ReferenceEvaluator(model).run(None, named))
    except Exception:  # noqa: BLE001 (operators raise whatever numpy does)
        return cut, [None]


def prepared(case: Any, single: bool = False) -> tuple[onnx.ModelProto, NDArray[np.float32], NDArray[Any]] | None:
    """The model with one input, that input, and the expected output; None where there is no input of floats."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    inputs, outputs = first_examples(case) if single else case.data_sets[0]
    if single and isinstance(outputs[0], np.ndarray):
        name, kind = model.graph.output[0].name, helper.np_dtype_to_tensor_dtype(outputs[0].dtype)
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info(name, kind, outputs[0].shape))
    places = [k for k, x in enumerate(inputs) if isinstance(x, np.ndarray) and x.dtype == np.float32 and x.ndim]
    if not places or not isinstance(outputs[0], np.ndarray):
        return None
    entries = list(model.graph.input)
    for index, (entry, value) in enumerate(zip(entries, inputs, strict=True)):
        if index != places[0]:
            if not isinstance(value, np.ndarray | np.generic):
                return None
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), entry.name))
    private = helper.make_tensor_value_info(entries[places[0]].name, TensorProto.FLOAT, inputs[places[0]].shape)
    del model.graph.input[:]
    model.graph.input.append(private)
    return model, inputs[places[0]], outputs[0]


def run(name: str, case: Any) -> Outcome:
    """Compile, simulate and compare a test; one whose examples are mixed with its first example alone."""
    outcome = attempt(name, prepared(case))
    return attempt(name, prepared(case, single=True)) if "mixes its examples" in outcome.reason else outcome


def attempt(name: str, ready: tuple[onnx.ModelProto, NDArray[np.float32], NDArray[Any]] | None) -> Outcome:
    """Compile, simulate and compare what was prepared."""
    if ready is None or ready[2].dtype != np.float32:
        return Outcome(name, LEFT_OUT, "no input of floats, or a result that is something else")
    model, x, expected = ready
    output = model.graph.output[0].name
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "test.onnx"
        onnx.save(model, path)
        try:
            options = Options(rounding="exact", result=output, activation_bits=10, weight_bits=10)
            compile_model(path, Path(folder) / "test.tacit", x, options=options)
            compiled = Model(Path(folder) / "test.tacit")
            found = compiled.simulate(x) * compiled.output_scale
            floats = FloatModel(path, selection=Selection(output))(x)
        except TacitError as error:
            return Outcome(name, REFUSED, reason(error))
    if found.size != expected.size:
        return Outcome(name, WRONG, f"{found.size} values, expected {expected.size}")
    compared = [distance(numbers, expected) for numbers in (floats, found)]
    if compared[0] <= NEAR_FLOAT and compared[1] <= NEAR:
        return Outcome(name, PASSED)
    return Outcome(name, WRONG, f"off by {max(compared):.2g} of the largest")


def distance(numbers: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest difference, as a part of the largest expected value."""
    if numbers.size != expected.size:
        return float("inf")
    spread = np.abs(expected).max(initial=1e-3)
    return float(np.abs(numbers.reshape(-1) - expected.reshape(-1)).max(initial=0) / spread)


def reason(error: Exception) -> str:
    """Why, without the names of nodes, and short."""
    text = re.sub(r"^node `[^`]*`: ", "", str(error))
    text = re.sub(r"supported are .*?; ", "", text)
    text = re.sub(r"\S*/test\.onnx", "the model", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def page(outcomes: Iterable[Outcome]) -> str:
    """The whole page."""
    outcomes = list(outcomes)
    count: Mapping[str, int] = Counter(outcome.state for outcome in outcomes)
    states = (PASSED, REFUSED, LEFT_OUT, WRONG)
    summary = f"Of {len(outcomes)} tests " + ", ".join(
        f"{count[state]} {LABELS[state]}" for state in states if count[state]
    )
    lines = [INTRODUCTION.format(near=NEAR, summary=f"{summary}."), "| test | | why not |", "|---|---|---|"]
    lines += [f"| {name} | {state} | {why.replace('|', chr(92) + '|')} |" for name, state, why in outcomes]
    return "\n".join(lines) + "\n"


LABELS = {PASSED: "pass", REFUSED: "are refused", LEFT_OUT: "say nothing here", WRONG: "are wrong"}


def main() -> int:
    """Run the tests, and write the page unless only a part was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PART", help="run tests with this in their names, write nothing")
    only = parser.parse_args().only
    outcomes = [run(name, case) for name, case in cases().items() if only in name]
    if only:
        for outcome in outcomes:
            print(*outcome, sep="  ")
    else:
        PAGE.write_text(page(outcomes))
    wrong = [outcome for outcome in outcomes if outcome.state == WRONG]
    for outcome in wrong:
        print(*outcome, sep="  ", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
