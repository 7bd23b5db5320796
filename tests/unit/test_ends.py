"""The part of a model that is compiled: its result, and the inputs that it needs."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import typer
from networks import Network
from onnx import TensorProto, helper
from tacit.cli import main
from tacit.cli.options import shape as shape_of
from tacit.compiler.float_model import FloatModel
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Selection
from tacit.model import Model

ML = "ai.onnx.ml"


def value(name, shape=("N",), kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def labels_of(scores):
    """The nodes that scikit-learn's exporter writes behind scores."""
    return [
        helper.make_node("ArgMax", [scores], ["best"], "best", axis=1),
        helper.make_node("ArrayFeatureExtractor", ["classes", "best"], ["found"], "found", domain=ML),
        helper.make_node("Reshape", ["found", "flat"], ["flat_label"], "flat_label"),
        helper.make_node("Cast", ["flat_label"], ["label"], "label", to=TensorProto.INT64),
    ]


def classifier(folder, outputs, nodes=(), softmax=True):
    """An MLP of 4 numbers and 3 classes, as scikit-learn's exporter writes it, with `outputs`."""
    network = Network(("N", 4)).gemm(4, 5, "hidden").add("Relu").gemm(5, 3, "fc")
    scores = network.last
    if softmax:
        network.add("Softmax", name="soft", axis=1)
    network.constant("classes", np.array([0, 1, 2], np.int64))
    network.constant("flat", np.array([-1], np.int64))
    graph = network.proto().graph
    graph.node.extend([*nodes, *labels_of("soft.out" if softmax else scores)])
    del graph.output[:]
    graph.output.extend(outputs)
    versions = [helper.make_opsetid("", 13), helper.make_opsetid(ML, 1)]
    path = folder / "classifier.onnx"
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), path)
    return path


def zipped():
    """The sequence of maps that a ZipMap writes."""
    maps = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    return helper.make_value_info("zipped", helper.make_sequence_type_proto(maps))


LABEL = value("label", kind=TensorProto.INT64)
PROBABILITIES = value("soft.out", ("N", 3))
ZIPMAP = helper.make_node("ZipMap", ["soft.out"], ["zipped"], "zipped", domain=ML, classlabels_int64s=[0, 1, 2])


def test_scores_rather_than_labels(tmp_path):
    source = import_onnx(classifier(tmp_path, [LABEL, PROBABILITIES]))
    assert source.output == "fc.out"
    assert source.notes == (
        "the result is `fc.out`, and `soft.out` is its Softmax, which clients compute themselves; "
        "left out: `label` (INT64) (--result soft.out computes it in private, --result NAME chooses another)",
    )
    assert import_onnx(classifier(tmp_path, [LABEL, PROBABILITIES]), selection=Selection("soft.out")).notes == ()


def test_what_a_map_is_made_of(tmp_path):
    source = import_onnx(classifier(tmp_path, [LABEL, zipped()], [ZIPMAP]))
    assert source.output == "fc.out"
    assert "`soft.out` is its Softmax, which clients compute themselves; left out: `label` (INT64)" in source.notes[0]
    named = import_onnx(classifier(tmp_path, [LABEL, zipped()], [ZIPMAP]), selection=Selection("soft.out"))
    assert named.model_output == "soft.out"


def test_a_label_alone_gives_the_scores_before_the_softmax(tmp_path):
    for softmax in (True, False):
        source = import_onnx(classifier(tmp_path, [LABEL], softmax=softmax))
        assert [node.operation["op"] for node in source.nodes] == ["Gemm", "Relu", "Gemm"]
        assert "`fc.out`, which `label` is made of" in source.notes[0]


def test_logits_before_probabilities_before_hidden_states(tmp_path):
    network = Network(("N", 4)).gemm(4, 5, "first").add("Relu", name="last_hidden_state").gemm(5, 3, "logits")
    proto = network.add("Sigmoid", name="probability").proto()
    proto.graph.output.insert(0, value("last_hidden_state.out", ("N", 5)))
    onnx.save(proto, tmp_path / "two.onnx")
    assert import_onnx(tmp_path / "two.onnx").output == "probability.out"
    proto.graph.output.append(value("logits.out", ("N", 3)))
    onnx.save(proto, tmp_path / "three.onnx")
    assert import_onnx(tmp_path / "three.onnx").output == "logits.out"


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(4,), (5, 4)])
def test_a_final_softmax_is_left_to_the_client(tmp_path, operator, shape):
    weight = np.eye(4, 3, dtype=np.float32)
    network = Network(("N", *shape))
    network.add("MatMul", network.constant("weight", weight), name="scores").add(operator, name="last", axis=-1)
    for shown in (False, True):
        if shown:
            network.add("Unsqueeze", network.constant("axes", np.array([1], np.int64)), name="shown")
        path = network.save(tmp_path)
        source = import_onnx(path)
        assert "Softmax" not in {node.operation["op"] for node in source.nodes}
        assert f"is its {operator}, which clients compute themselves (--result" in source.notes[0]
        x = np.random.default_rng(1).random((2, *shape), np.float32)
        expected = (x @ weight).reshape(2, -1)
        np.testing.assert_allclose(FloatModel(path)(x).reshape(2, -1), expected, rtol=1e-5)


def test_a_softmax_of_the_input_is_computed_in_private(tmp_path):
    source = import_onnx(Network(("N", 4)).add("Softmax", axis=-1).save(tmp_path))
    assert ([node.operation["op"] for node in source.nodes], source.notes) == (["Softmax"], ())


def test_one_output_of_floats_is_the_result_without_a_word(tmp_path):
    source = import_onnx(Network(("N", 4)).gemm(4, 3, "fc").save(tmp_path))
    assert (source.output, source.notes) == ("fc.out", ())


def test_a_result_inside_the_model(tmp_path):
    path = classifier(tmp_path, [LABEL, PROBABILITIES])
    source = import_onnx(path, selection=Selection("hidden.out"))
    assert [node.name for node in source.nodes] == ["hidden"]
    assert (source.notes, set(source.weights)) == ((), {"hidden.weight", "hidden.bias"})
    x = np.random.default_rng(0).random((3, 4), np.float32)
    expected = x @ source.weights["hidden.weight"].T + source.weights["hidden.bias"]
    found = FloatModel(path, selection=Selection("hidden.out"))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_unknown_result_lists_the_names(tmp_path):
    path = classifier(tmp_path, [LABEL, PROBABILITIES])
    with pytest.raises(MisuseError) as caught:
        import_onnx(path, selection=Selection("nothing"))
    for word in ("`nothing`", "`label`", "`soft.out`", "`hidden.out`", "`fc.out`"):
        assert word in str(caught.value)
    with pytest.raises(MisuseError, match=r"other tensors are `hidden\.out`, and "):
        import_onnx(path, selection=Selection("hidden.ou"))
    with pytest.raises(UnsupportedError, match=r"`label` is of type INT64.*--result"):
        import_onnx(path, selection=Selection("label"))


def test_inputs_that_the_result_does_not_need(tmp_path):
    proto = Network(("N", 4)).gemm(4, 3, "fc").add("Add", "y", name="sum").proto()
    proto.graph.input.append(value("y", ("N", 3)))
    onnx.save(proto, tmp_path / "two.onnx")
    both = import_onnx(tmp_path / "two.onnx")
    assert [part.name for part in both.inputs] == ["x", "y"]
    assert both.notes == ("the result needs 2 inputs, `x`, `y`: a .npz file has an array for each",)
    assert import_onnx(tmp_path / "two.onnx", selection=Selection("fc.out")).input_name == "x"


def run(arguments, capsys):
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    written = capsys.readouterr()
    return ended.value.code, written.out, written.err


def test_the_command_line_says_what_was_chosen(tmp_path, capsys):
    path, output = classifier(tmp_path, [LABEL]), tmp_path / "x.tacit"
    code, _, errors = run(["compile", path, "-o", output], capsys)
    assert (code, Model(output).selection) == (0, Selection())
    assert "the result is `fc.out`" in errors
    code, out, errors = run(["compile", path, "-o", output, "--result", "hidden.out", "--json"], capsys)
    assert (code, "the result" in errors) == (0, False)
    assert json.loads(out)["output"]["shape"] == [5]
    assert Model(output).selection == Selection("hidden.out")
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(1).random((8, 4), np.float32), y=np.arange(8) % 5)
    code, out, _ = run(
        ["evaluate", output, tmp_path / "data.npz", "--mode", "simulate", "--model", path, "--json"], capsys
    )
    assert (code, json.loads(out)["agreement"] > 0.8) == (0, True)


def test_named_sizes(tmp_path):
    path = Network(("N", 3, "H", "W")).conv((4, 3, 3, 3)).add("GlobalAveragePool").save(tmp_path)
    for name in ("x", ""):
        selection = Selection(shapes=((name, (1, 3, 9, 7)),))
        source = import_onnx(path, selection=selection)
        assert (source.input_shape, source.notes) == ((3, 9, 7), ())
        assert source.nodes[-1].operation["kernel"] == [7, 5]
        floats = FloatModel(path, selection=selection)
        assert floats.signature.batched
        assert floats(np.zeros((5, 3, 9, 7), np.float32)).shape == (5, 4)
    assert import_onnx(path, selection=Selection(shapes=(("", (8, 3, 9, 7)),))).notes == (
        "the batch of 8 in --input-shape is compiled as 1",
    )


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("y", (1, 3, 9, 7), r"no input `y`; inputs are `x`"),
        ("x", (1, 3, 9), r"shape \[N, 3, H, W\], which 1x3x9 does not fit"),
        ("x", (1, 4, 9, 7), r"which 1x4x9x7 does not fit"),
    ],
)
def test_shapes_that_do_not_fit(tmp_path, name, shape, message):
    path = Network(("N", 3, "H", "W")).add("Relu").save(tmp_path)
    with pytest.raises(MisuseError, match=message):
        import_onnx(path, selection=Selection(shapes=((name, shape),)))


def test_a_fixed_batch_becomes_one_example(tmp_path):
    network = Network((8, 3, 4, 4)).conv((4, 3, 3, 3))
    network.add("Reshape", network.constant("shape", np.array([8, 16], np.int64))).gemm(16, 2, "fc")
    path = network.save(tmp_path)
    source = import_onnx(path)
    assert source.notes == ("input `x` has a fixed batch of 8, which is compiled as 1",)
    assert [node.operation["op"] for node in source.nodes] == ["Conv", "Reshape", "Gemm"]
    x = np.random.default_rng(0).random((8, 3, 4, 4), np.float32)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(FloatModel(path)(x), session.run(None, {"x": x})[0], atol=1e-5)


@pytest.mark.parametrize("text", ["x=", "x=1", "x=1x0", "1xa", "x=-1x3", "x=1,3"])
def test_texts_that_are_no_shapes(text):
    with pytest.raises(typer.BadParameter):
        shape_of(text)


def test_shapes_on_the_command_line(tmp_path, capsys):
    assert shape_of("a=b=1x3") == ("a=b", (1, 3))
    path = Network(("N", 1, "H", "W")).conv((2, 1, 3, 3)).add("GlobalAveragePool").save(tmp_path)
    output = tmp_path / "x.tacit"
    code, _, errors = run(["compile", path, "-o", output], capsys)
    assert (code, "--input-shape x=1x1x<H>x<W>" in errors) == (1, True)
    code, _, errors = run(["compile", path, "-o", output, "--input-shape", "1x1x6x5"], capsys)
    assert (code, Model(output).input_shape) == (0, (1, 6, 5))
    assert Model(output).selection == Selection(shapes=(("", (1, 1, 6, 5)),))
