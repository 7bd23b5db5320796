"""Directories of Hugging Face: what is written from weights computes what transformers computes."""

from pathlib import Path

import numpy as np
import pytest
from drawn import SEQUENCE, Case, cases, inputs, write
from safetensors.numpy import load_file, save_file
from source_run import evaluate
from tacit import Model
from tacit.compiler.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.compiler.reading import Reading, own_labels
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.onnx import import_onnx

CASES = cases()


def length(case: Case) -> int | None:
    return None if "image_size" in case.config else SEQUENCE


def kept(case: Case, x: np.ndarray) -> np.ndarray:
    """Outputs that count: those of tokens, where there is one for each."""
    if length(case) is None or case.outputs.ndim < 3:
        return np.ones(case.outputs.shape[:1], bool)
    return np.asarray(x[:, 1] == 1)


@pytest.mark.parametrize("name", CASES)
def test_what_transformers_computes(tmp_path, name):
    case = CASES[name]
    folder, x, sequence = write(tmp_path / "model", case), inputs(case.config), length(case)
    found = FloatModel(folder, (), sequence)(x).reshape(case.outputs.shape)
    which = kept(case, x)
    np.testing.assert_allclose(found[which], case.outputs[which], atol=1e-4)
    source = import_onnx(folder, sequence)
    assert source.output_shape == case.outputs.shape[1:]
    computed = evaluate(source, x[1])[source.output]
    rows = which[1] if which.ndim > 1 else ...
    np.testing.assert_allclose(computed[rows], found[1][rows], atol=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "BertForTokenClassification",
        "MPNetModel",
        "DebertaV2Model",
        "ModernBertModel",
        "DeiTForImageClassificationWithTeacher",
        "CLIPVisionModelWithProjection",
    ],
)
def test_integers_are_near(tmp_path, name):
    case = CASES[name]
    folder, x, sequence = write(tmp_path / "model", case), inputs(case.config, 8), length(case)
    reading = None if sequence is None else Reading(sequence)
    compile_model(folder, tmp_path / "x.tacit", x, options=Options(reading=reading))
    model = Model(tmp_path / "x.tacit")
    found = (model.simulate(x[:2]) * model.output_scale).reshape(case.outputs.shape)
    wanted = FloatModel(folder, (), sequence)(x[:2]).reshape(case.outputs.shape)
    which = kept(case, x[:2])
    assert np.corrcoef(found[which].ravel(), wanted[which].ravel())[0, 1] > 0.98


@pytest.mark.parametrize("name", ["ElectraModel", "ModernBertModel", "DebertaV2Model", "XLMRobertaModel"])
def test_public_embeddings(tmp_path, name):
    case = CASES[name]
    folder, x = write(tmp_path / "model", case), inputs(case.config)
    compile_model(folder, tmp_path / "x.tacit", options=Options(reading=Reading(SEQUENCE, public_embedding=True)))
    text = Model(tmp_path / "x.tacit").text
    assert text is not None
    found = FloatModel(folder, (), SEQUENCE, public=True)(text.inputs(x)).reshape(case.outputs.shape)
    which = kept(case, x)
    np.testing.assert_allclose(found[which], case.outputs[which], atol=0.02)


REFUSED = {
    "groups": ("AlbertForSequenceClassification", {"num_hidden_groups": 2}, "num_hidden_groups `2`"),
    "convolution": ("DebertaV2Model", {"conv_kernel_size": 3}, "conv_kernel_size `3`"),
    "no distances": ("DebertaV2Model", {"relative_attention": False}, "relative_attention"),
    "kinds": ("DebertaV2Model", {"pos_att_type": ["p2p"]}, "pos_att_type `p2p`"),
    "rotary": ("ModernBertModel", {"rope_scaling": {"factor": 2}}, "rotary"),
    "mean": ("ModernBertForSequenceClassification", {"classifier_pooling": "mean"}, "classifier_pooling"),
    "windows": ("SwinForImageClassification", {"window_size": 3}, "windows of 3"),
    "patches": ("ViTModel", {"patch_size": 3}, "patches of 3"),
    "head": ("ViTModel", {"architectures": ["ViTForMaskedImageModeling"]}, "ViTForMaskedImageModeling"),
    "half": ("ViTModel", {"model_type": "clip"}, "CLIPVisionModelWithProjection"),
    "unknown": ("ViTModel", {"model_type": "mistral3"}, "albert, bert, .* or export it to ONNX"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_configurations_that_are_refused(tmp_path, what):
    name, changed, message = REFUSED[what]
    case = CASES[name]
    folder = write(tmp_path / "model", case._replace(config=case.config | changed))
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(folder, length(case) if changed.get("model_type") is None else SEQUENCE)


def test_pictures_are_no_text(tmp_path):
    folder = write(tmp_path / "model", CASES["ViTForImageClassification"])
    with pytest.raises(MisuseError, match="reads pictures"):
        import_onnx(folder, SEQUENCE)


def test_labels_of_pictures(tmp_path):
    labels = {"id2label": {"0": "cat", "1": "dog", "2": "fish"}}
    case = CASES["ViTForImageClassification"]
    assert own_labels(write(Path(tmp_path / "a"), case._replace(config=case.config | labels))) == ("cat", "dog", "fish")
    case = CASES["ViTModel"]
    assert own_labels(write(Path(tmp_path / "b"), case._replace(config=case.config | labels))) == ()


@pytest.mark.parametrize(
    "name", ["ViTForImageClassification", "DeiTForImageClassificationWithTeacher", "CLIPVisionModelWithProjection"]
)
def test_linear_layers_add_what_goes_around_them(tmp_path, name):
    """A residual sum follows its linear layer, with no rearrangement between them, and reads nothing but such."""
    case = CASES[name]
    source = import_onnx(write(tmp_path / "model", case), length(case))
    written = {node.output: node for node in source.nodes}
    sums = [node for node in source.nodes if node.operation["op"] == "Add"]
    assert len(sums) >= 2 * case.config["num_hidden_layers"]
    for node in sums:
        assert [written[read].operation["op"] for read in node.inputs].count("Conv") == 1


@pytest.mark.parametrize(("factor", "bits"), [(1, 8), (0.01, 10)])
def test_small_results_of_softmaxes_have_more_bits(tmp_path, factor, bits):
    """Rows of five equal scores have results of a fifth, which need two bits that rows with a large result do not."""
    case = CASES["ViTForImageClassification"]
    folder, x = write(tmp_path / "model", case), inputs(case.config, 8)
    weights = load_file(folder / "model.safetensors")
    scaled = {name: value * (factor if ".query." in name else 1) for name, value in weights.items()}
    save_file(scaled, folder / "model.safetensors")
    options = Options(activation_bits=8, weight_bits=8)
    layers = compile_model(folder, tmp_path / "x.tacit", x, options=options)["layers"]
    softmaxes = [layer for layer in layers if layer["operator"] == "softmax"]
    assert [layer["bits"] for layer in softmaxes] == [bits] * case.config["num_hidden_layers"]
