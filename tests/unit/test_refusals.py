"""Refusals name the node, the operator and what to do instead."""

import numpy as np
import onnx
import pytest
from networks import Network
from onnx import TensorProto, helper
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.onnx import import_onnx


def refusal(network, folder):
    """The words of the `UnsupportedError`, which has both halves."""
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(network.save(folder))
    words = str(caught.value)
    assert "; " in words
    return words


def clip(low, high):
    network = Network()
    bounds = [network.constant(name, np.float32(value)) for name, value in (("low", low), ("high", high))]
    return network.add("Clip", *bounds, name="bad")


def constant_of(dtype):
    network = Network(("N", 4))
    return network.add("MatMul", network.constant("w", np.ones((4, 2), dtype)), name="bad")


def reshaped(shape, **attributes):
    network = Network()
    return network.add("Reshape", network.constant("s", np.array(shape, np.int64)), name="bad", **attributes)


CASES = {
    "unknown operator": (lambda: Network().add("Atan", name="bad"), ["`bad`", "Atan", "supported are"]),
    "foreign domain": (
        lambda: Network().add("Relu", name="bad", domain="com.example"),
        ["`bad`", "com.example.Relu"],
    ),
    "backward slice": (
        lambda: Network(("N", 4), opset=9).add("Slice", name="bad", starts=[-1], ends=[0], axes=[0]),
        ["`bad`", "Slice"],
    ),
    "clip to nothing": (lambda: clip(0, -1), ["`bad`", "Clip"]),
    "flatten of the batch": (lambda: Network().add("Flatten", axis=0, name="bad"), ["`bad`", "Flatten", "axis=1"]),
    "pool of padding": (
        lambda: Network().add("MaxPool", name="bad", kernel_shape=[1, 2], dilations=[2, 2], pads=[1, 0, 1, 0]),
        ["`bad`", "MaxPool", "padding"],
    ),
    "double weights": (lambda: constant_of(np.float64), ["MatMul", "float32"]),
    "a test for numbers": (
        lambda: Network(("N", 8)).add("IsNaN", name="bad").add("Cast", to=TensorProto.FLOAT),
        ["`bad`", "IsNaN", "formula"],
    ),
    "old opset": (lambda: Network(opset=6).add("Relu"), ["opset 6", "from 7"]),
    "dynamic size": (
        lambda: Network(("N", 3, "H", "W")).add("Relu"),
        ["`x`", "[N, 3, H, W]", "fixed size", "--input-shape x=1x3x<H>x<W>"],
    ),
    "no batch": (lambda: Network((3,)).add("Relu"), ["`x`", "batch"]),
}


@pytest.mark.parametrize("case", CASES)
def test_refusal_names_the_node(case, tmp_path):
    build, expected = CASES[case]
    words = refusal(build(), tmp_path)
    for word in expected:
        assert word in words


def test_weights_must_be_finite(tmp_path):
    network = Network(("N", 4))
    network.add("MatMul", network.constant("w", np.full((4, 2), np.nan, np.float32)), name="bad")
    assert "not finite" in refusal(network, tmp_path)


def test_computed_weights(tmp_path):
    network = Network(("N", 3, 8, 8))
    network.add("Conv", inputs=["x", "x"], name="bad")
    assert "Conv with a computed weight" in refusal(network, tmp_path)


def test_transposed_activation(tmp_path):
    network = Network((1, 4))
    network.add("Gemm", network.constant("w", network.normal(1, 3)), name="bad", transA=1)
    words = refusal(network, tmp_path)
    assert "`bad`" in words


def test_a_second_input_that_is_no_number(tmp_path):
    network = Network(("N", 4)).add("Add", inputs=["x", "y"])
    proto = network.proto()
    proto.graph.input.append(helper.make_tensor_value_info("y", TensorProto.BOOL, ["N", 4]))
    onnx.save(proto, tmp_path / "two.onnx")
    with pytest.raises(UnsupportedError, match=r"needs 2 inputs, and `y` is \[N, 4\] of type BOOL"):
        import_onnx(tmp_path / "two.onnx")


def test_a_mask_is_no_result(tmp_path):
    proto = Network(("N", 4)).add("Dropout", outputs=["mask"]).add("Identity", inputs=["mask"]).proto()
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    onnx.save(proto, tmp_path / "mask.onnx")
    with pytest.raises(UnsupportedError, match=r"`identity1\.out` is of type BOOL"):
        import_onnx(tmp_path / "mask.onnx")


@pytest.mark.parametrize("content", [b"", b"not a model", bytes(range(256))])
def test_files_that_are_no_models(tmp_path, content):
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    with pytest.raises(MisuseError, match=r"broken\.onnx"):
        import_onnx(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MisuseError, match="does not exist"):
        import_onnx(tmp_path / "absent.onnx")


def test_truncated_models_never_crash(tmp_path):
    whole = Network().conv((2, 3, 3, 3)).proto().SerializeToString()
    path = tmp_path / "cut.onnx"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises((MisuseError, UnsupportedError)):
            import_onnx(path)


def test_shapes_that_do_not_fit(tmp_path):
    network = Network(("N", 4)).gemm(5, 2)
    with pytest.raises(MisuseError, match="do not fit"):
        import_onnx(network.save(tmp_path))
