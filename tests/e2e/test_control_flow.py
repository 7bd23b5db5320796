"""Control flow, lists and functions that constants decide, through the whole compiler."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import Network
from onnx import TensorProto, helper, numpy_helper
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.errors import MisuseError, TacitError, UnsupportedError
from tacit.importers.check import check
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Selection
from tacit.model import Model

EXAMPLES = 24
FLOAT = TensorProto.FLOAT


def value(name: str, kind: int = FLOAT, shape: Sequence[int | str] | None = None) -> onnx.ValueInfoProto:
    """An end of a graph."""
    return helper.make_tensor_value_info(name, kind, shape)


def branch(operator: str, **attributes: Any) -> onnx.GraphProto:
    """A branch of one operator, which reads `h` from outside, and a constant of its own."""
    nodes = [
        helper.make_node(operator, ["h"], ["inner"], "one", **attributes),
        helper.make_node("Mul", ["inner", "half"], ["out"], "two"),
    ]
    constants = [numpy_helper.from_array(np.array(0.5, np.float32), "half")]
    return helper.make_graph(nodes, operator, [], [value("out")], constants)


def model(nodes: Sequence[onnx.NodeProto], *inputs: onnx.ValueInfoProto, opset: int = 17, **constants: Any) -> Any:
    """A model of `x` (1, 8) and other inputs that gives `y`."""
    stored = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "flow", [value("x", FLOAT, [1, 8]), *inputs], [value("y")], stored)
    graph.output[0].CopyFrom(value("y", FLOAT, [1, None]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def chosen(condition: Sequence[onnx.NodeProto], *inputs: onnx.ValueInfoProto, **constants: Any) -> onnx.ModelProto:
    """An If between a ReLU and a hyperbolic tangent, by the tensor `c`."""
    nodes = [helper.make_node("Add", ["x", "one"], ["h"], "before"), *condition]
    branches = {"then_branch": branch("Relu"), "else_branch": branch("Tanh")}
    nodes.append(helper.make_node("If", ["c"], ["y"], "if", **branches))
    return model(nodes, *inputs, one=np.float32(1), **constants)


def by_rate() -> onnx.ModelProto:
    """An If by an input of integers."""
    condition = [helper.make_node("Equal", ["sr", "rate"], ["c"], "test")]
    return chosen(condition, value("sr", TensorProto.INT64, []), rate=np.int64(16000))


def by_shape() -> onnx.ModelProto:
    """An If by the length of the input, computed in a branch of another one."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], "shape"),
        helper.make_node("Gather", ["s", "last"], ["n"], "gather"),
        helper.make_node("Less", ["n", "limit"], ["c"], "less"),
    ]
    return chosen(nodes, last=np.int64(1), limit=np.int64(4))


def nested() -> onnx.ModelProto:
    """An If inside of a branch of another."""
    proto = by_shape()
    outer = helper.make_graph([proto.graph.node[-1]], "outer", [], [value("y")])
    del proto.graph.node[-1]
    flow = helper.make_node("If", ["yes"], ["y"], "outer", then_branch=outer, else_branch=branch("Sigmoid"))
    outer.output[0].name = outer.node[0].output[0] = "kept"
    flow.attribute[0].g.CopyFrom(outer)
    proto.graph.node.append(flow)
    proto.graph.initializer.append(numpy_helper.from_array(np.array(True), "yes"))
    return proto


def loop(trips: Any = 3, *, condition: str = "again") -> onnx.ModelProto:
    """A Loop whose state is scaled by the index, and that goes on by itself or by what it computes."""
    body = helper.make_graph(
        [
            helper.make_node("Cast", ["i"], ["f"], "cast", to=FLOAT),
            helper.make_node("Add", ["f", "one"], ["g"], "plus"),
            helper.make_node("Mul", ["state", "g"], ["scaled"], "mul"),
            helper.make_node("Tanh", ["scaled"], ["next"], "tanh"),
            helper.make_node("Identity", ["go"], ["again"], "same"),
            helper.make_node("ReduceMax", ["next"], ["most"], "max", keepdims=0),
            helper.make_node("Less", ["most", "one"], ["computed"], "less"),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("state")],
        [value(condition, TensorProto.BOOL, []), value("next"), value("scaled")],
        [numpy_helper.from_array(np.float32(0.5), "one")],
    )
    nodes = [helper.make_node("Loop", ["trips", "", "x"], ["y", "all"], "loop", body=body)]
    return model(nodes, trips=np.int64(trips))


def scan(*, backward: int = 0) -> onnx.ModelProto:
    """A Scan over the features two at a time, with a sum that goes on."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum", "part"], ["next"], "add"),
            helper.make_node("Relu", ["next"], ["seen"], "relu"),
        ],
        "body",
        [value("sum"), value("part")],
        [value("next"), value("seen")],
    )
    nodes = [
        helper.make_node("Reshape", ["x", "pairs"], ["p"], "pairs"),
        helper.make_node(
            "Scan",
            ["zero", "p"],
            ["total", "each"],
            "scan",
            body=body,
            num_scan_inputs=1,
            scan_input_axes=[1],
            scan_output_axes=[1],
            scan_input_directions=[backward],
        ),
        helper.make_node("Reshape", ["each", "flat"], ["wide"], "flatten"),
        helper.make_node("Concat", ["wide", "total"], ["y"], "concat", axis=1),
    ]
    return model(nodes, zero=np.zeros((1, 2), np.float32), pairs=np.array([1, 4, 2]), flat=np.array([1, -1]))


def lists() -> onnx.ModelProto:
    """Parts in a list, which is joined again in another order."""
    nodes = [
        helper.make_node("SplitToSequence", ["x", "sizes"], ["list"], "split", axis=1),
        helper.make_node("SequenceAt", ["list", "first"], ["a"], "at"),
        helper.make_node("Relu", ["a"], ["r"], "relu"),
        helper.make_node("SequenceInsert", ["list", "r"], ["longer"], "insert"),
        helper.make_node("ConcatFromSequence", ["longer"], ["y"], "joined", axis=1),
    ]
    return model(nodes, sizes=np.array([3, 5]), first=np.int64(0))


def function() -> onnx.ModelProto:
    """A function of the model's own, called twice, with an attribute."""
    half = helper.make_node("Constant", [], ["half"], value_float=0.5)
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    nodes = [leaky, half, helper.make_node("Mul", ["b", "half"], ["c"])]
    imports = [helper.make_opsetid("", 17)]
    own = helper.make_function("own", "Block", ["a"], ["c"], nodes, imports, attributes=["slope"])
    calls = [
        helper.make_node("Block", ["x"], ["h"], "first", domain="own", slope=0.3),
        helper.make_node("Block", ["h"], ["y"], "second", domain="own", slope=0.1),
    ]
    proto = model(calls)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    proto.functions.append(own)
    return proto


FLOWS: dict[str, Callable[[], onnx.ModelProto]] = {
    "if by a shape": by_shape,
    "if in a branch": nested,
    "function": function,
    "list": lists,
    "loop": loop,
    "scan": scan,
    "scan backwards": lambda: scan(backward=1),
}


def compare(proto: onnx.ModelProto, folder: Any, values: dict[str, float]) -> None:
    """Integers near what onnxruntime computes."""
    path = folder / "flow.onnx"
    onnx.save(proto, path)
    x = np.random.default_rng(2).uniform(-1, 1, (EXAMPLES, 8)).astype(np.float32)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    fixed = {name: np.array(number, np.int64) for name, number in values.items()}
    expected = np.concatenate([session.run(None, {"x": x[k : k + 1], **fixed})[0] for k in range(EXAMPLES)])
    selection = Selection(values=tuple(values.items()))
    np.testing.assert_allclose(FloatModel(path, selection=selection)(x), expected, atol=1e-5)
    options = Options(rounding="exact", input_values=selection.values)
    compile_model(path, folder / "x.tacit", x, options=options)
    compiled = Model(folder / "x.tacit")
    spread = np.abs(expected).max()
    assert np.abs(compiled.simulate(x) * compiled.output_scale - expected).max() < 0.05 * spread


@pytest.mark.parametrize("case", FLOWS)
def test_integers_are_near_the_flow(case, tmp_path):
    compare(FLOWS[case](), tmp_path, {})


@pytest.mark.parametrize("rate", [16000, 8000])
def test_an_input_that_is_fixed_decides_a_branch(rate, tmp_path):
    compare(by_rate(), tmp_path, {"sr": rate})


def computed_branch() -> onnx.ModelProto:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], "max", keepdims=0),
        helper.make_node("Less", ["most", "limit"], ["c"], "less"),
    ]
    return chosen(nodes, limit=np.float32(0.5))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (by_rate, "say which one, if it is no secret: --input-value sr=VALUE"),
        (computed_branch, "node `if`: If whose condition `c` depends on the input; fix an input"),
        (lambda: loop(condition="computed"), "node `loop`: Loop whose condition"),
        (lambda: loop(300), "runs more than 256 times"),
    ],
)
def test_what_the_input_decides_is_refused_with_advice(build, words, tmp_path):
    onnx.save(build(), tmp_path / "flow.onnx")
    with pytest.raises(UnsupportedError) as found:
        import_onnx(tmp_path / "flow.onnx")
    assert words in str(found.value)
    assert any(words in str(error) for error in check(tmp_path / "flow.onnx").errors)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((("rate", 1.0),), "no input of the model; inputs are `x`, `sr`"),
        ((("x", 1.0),), "fixes single numbers"),
        ((("sr", 0.5),), "is an integer"),
        ((("sr", 1e30),), "is no number of input `sr`"),
    ],
)
def test_values_that_fit_no_input_are_refused(values, words, tmp_path):
    onnx.save(by_rate(), tmp_path / "flow.onnx")
    with pytest.raises(MisuseError, match=words):
        import_onnx(tmp_path / "flow.onnx", selection=Selection(values=values))


def test_a_list_that_the_model_computes_is_refused(tmp_path):
    network = Network((1, 8)).add("SplitToSequence", axis=1, keepdims=1).add("SequenceLength")
    onnx.save(network.proto(), tmp_path / "flow.onnx")
    with pytest.raises(TacitError):
        import_onnx(tmp_path / "flow.onnx")
