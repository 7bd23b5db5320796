"""`tacit compile --check`: everything that is in the way, at once."""

import json

import numpy as np
import onnx
import pytest
from networks import Network
from onnx import TensorProto, helper
from tacit.cli import main
from tacit.importers.check import check
from tacit.importers.source import Selection


def words(network, folder, selection=None):
    """What is said of a network, one text per problem."""
    found = check(network.save(folder), selection=selection or Selection())
    for error in found.errors:
        assert "; " in str(error), f"no remedy in: {error}"
    return [str(error) for error in found.errors]


def run(arguments, capsys):
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    written = capsys.readouterr()
    return ended.value.code, written.out, written.err


def test_a_model_without_problems(tmp_path):
    assert words(Network().conv((4, 3, 3, 3)).add("Relu"), tmp_path) == []
    assert words(Network(("N", 3, 8, 8)).add("MatMul", inputs=["x", "x"]).add("Softmax", axis=-1), tmp_path) == []


def test_operators_are_listed_with_their_nodes(tmp_path):
    network = Network().add("Atan", name="one").add("Det", name="other").add("Atan", name="third")
    network.nodes[1] = helper.make_node("Tan", network.nodes[1].input, network.nodes[1].output, "other")
    one, other = words(network, tmp_path)
    assert one.startswith("nodes `one`, `third`: operator Atan is not supported; ")
    assert other.startswith("node `other`: operator Tan is not supported; ")


def test_nodes_are_refused_beside_unknown_operators(tmp_path):
    network = Network().add("Atan", name="wave")
    network.add("MaxPool", inputs=["x"], name="pool", kernel_shape=[2, 2], storage_order=1)
    network.add("GlobalAveragePool").add("Add", "wave.out", name="late")
    found = words(network, tmp_path)
    assert [text.split(":")[0] for text in found] == ["node `wave`", "node `pool`"]


def test_nodes_of_sequences(tmp_path):
    network = Network(("N", 3, 8, 8)).add("IsNaN", name="first").add("Cast", name="one", to=TensorProto.FLOAT)
    network.add("IsNaN", inputs=["x"], name="second").add("Cast", name="two", to=TensorProto.FLOAT)
    network.add("Add", "one.out", name="sum")
    found = words(network, tmp_path)
    assert [text.split(":")[0] for text in found] == ["node `first`", "node `second`"]


def test_ends_and_operators_together(tmp_path):
    network = Network(("N", 3, "H", "W")).add("Atan", name="wave")
    sizes, operator = words(network, tmp_path)
    assert "--input-shape x=1x3x<H>x<W>" in sizes
    assert "operator Atan" in operator
    name, again, third = words(network, tmp_path, Selection("nothing"))
    assert (name.startswith("no node"), again, third) == (True, sizes, operator)
    assert words(network, tmp_path, Selection("wave.out", (("", (1, 3, 8, 8)),))) == [operator]


def test_arithmetic_on_shapes_is_no_problem_where_sizes_are_unknown(tmp_path):
    network = Network(("N", 3, "H", "W")).add("Shape", name="shape").add("ConstantOfShape", name="zeros")
    (sizes,) = words(network.add("Add", inputs=["x", "zeros.out"]), tmp_path)
    assert "--input-shape" in sizes


def test_several_inputs_and_a_label(tmp_path):
    proto = Network(("N", 4)).add("Add", "y", name="sum").proto()
    proto.graph.input.append(helper.make_tensor_value_info("y", TensorProto.INT64, ["N", 4]))
    proto.graph.node[0].CopyFrom(helper.make_node("Equal", ["x", "y"], ["sum.out"], "sum"))
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    onnx.save(proto, tmp_path / "two.onnx")
    integers, inputs = map(str, check(tmp_path / "two.onnx").errors)
    assert "needs 2 inputs (`x`, `y`)" in inputs
    assert "`y` is of type INT64" in integers


def test_files_that_are_no_models(tmp_path):
    assert "does not exist" in str(check(tmp_path / "absent.onnx").errors[0])


def test_the_command(tmp_path, capsys):
    path = Network(("N", 4)).gemm(4, 3).add("Atan", name="wave").save(tmp_path)
    code, out, _ = run(["compile", path, "--check"], capsys)
    assert (code, "- node `wave`: operator Atan" in out, "1 problem" in out) == (1, True, True)
    code, out, _ = run(["compile", path, "--check", "--json"], capsys)
    (problem,) = json.loads(out)["problems"]
    assert (code, problem["node"]) == (1, "wave")
    code, out, errors = run(["compile", path, "--check", "--result", "gemm0.out"], capsys)
    assert (code, "it compiles" in out, "--calibrate" in errors) == (0, True, True)
    assert [found.name for found in tmp_path.iterdir()] == ["small.onnx"]
    assert run(["compile", path], capsys)[0] == 2


def test_refusals_of_the_compiler_are_problems_too(tmp_path, capsys):
    path = Network(("N", 4)).gemm(4, 3).add("Relu").gemm(3, 2).save(tmp_path)
    np.savez(tmp_path / "data.npz", x=np.zeros((2, 5), np.float32))
    code, out, _ = run(["compile", path, "--check", "--calibrate", tmp_path / "data.npz"], capsys)
    assert (code, "calibration inputs have shape" in out) == (1, True)
