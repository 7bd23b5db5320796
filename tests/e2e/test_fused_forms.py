"""Fused operators, through the whole compiler: integers near what onnxruntime computes of them."""

import numpy as np
import onnx
import onnxruntime
import pytest
from fused_forms import EXTRA, FORMS, fused, numbered, reader
from networks import Network
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.errors import UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.model import Model

EXAMPLES = 24


@pytest.mark.parametrize("case", FORMS)
def test_integers_are_near_the_operator(case, tmp_path):
    network = FORMS[case]()
    path = network.save(tmp_path)
    x = np.random.default_rng(2).uniform(-1, 1, (EXAMPLES, *network.shape[1:])).astype(np.float32)
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    expected = np.concatenate([session.run(None, {"x": x[k : k + 1]})[0] for k in range(EXAMPLES)])
    spread = np.abs(expected).max()
    plain = FloatModel(path)(x)
    np.testing.assert_allclose(plain, expected.reshape(EXAMPLES, -1), atol=2e-3 * spread)
    compile_model(path, tmp_path / "x.tacit", x, options=Options(rounding="exact"))
    model = Model(tmp_path / "x.tacit")
    difference = np.abs(model.simulate(x) * model.output_scale - expected.reshape(EXAMPLES, -1))
    assert difference.mean() < 0.02 * spread
    assert difference.max() < 0.08 * spread


def test_a_reader_of_text_is_read_as_the_optimiser_leaves_it(tmp_path):
    path = tmp_path / "reader.onnx"
    onnx.save(reader(), path)
    source = import_onnx(path, 6)
    assert source.reads_tokens
    tokens = np.random.default_rng(0).integers(1, 50, (4, 6))
    mask = np.arange(6) < np.array([6, 4, 3, 5])[:, None]
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    given = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros((4, 6))}
    (expected,) = session.run(
        ["last_hidden_state.out"], {name: value.astype(np.int32) for name, value in given.items()}
    )
    x = np.stack([tokens * mask, mask], axis=1).astype(np.float32)
    plain = FloatModel(path, sequence=6)(x).reshape(expected.shape)
    np.testing.assert_allclose(plain[mask], expected[mask], atol=1e-4)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (fused("FusedMatMul", [16, 4], transBatchA=1), "transBatchA"),
        (fused("FusedGemm", [8, 5], [5], shape=(1, 8), activation="Elu"), "activation Elu"),
        (fused("GroupNorm", [4], [4], shape=(1, 6, 6, 4), groups=2, activation=0), "GroupNorm is not supported"),
    ],
)
def test_what_has_no_plain_form_is_refused(build, words, tmp_path):
    with pytest.raises(UnsupportedError, match=words) as found:
        import_onnx(build().save(tmp_path))
    assert found.value.node
    assert "; " in str(found.value)


def test_channels_last(tmp_path):
    network = Network((1, 6, 6, 3))
    weight = network.normal(4, 3, 3, 3)
    network.add("NhwcFusedConv", numbered(network, weight), domain=EXTRA, activation="Relu", pads=[1, 1, 1, 1])
    same = Network((1, 6, 6, 3)).add("Transpose", perm=[0, 3, 1, 2])
    same.add("Conv", numbered(same, weight), pads=[1, 1, 1, 1]).add("Relu").add("Transpose", perm=[0, 2, 3, 1])
    x = np.random.default_rng(2).uniform(-1, 1, (3, 6, 6, 3)).astype(np.float32)
    path = network.save(tmp_path)
    expected = FloatModel(same.save(tmp_path.parent))(x)
    np.testing.assert_allclose(FloatModel(path)(x), expected, atol=1e-6)
