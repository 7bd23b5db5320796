"""Models of scikit-learn: what is imported computes what onnxruntime computes with the operators of `ai.onnx.ml`."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tacit.compiler import Options, compile_model
from tacit.compiler.float_model import FloatModel
from tacit.errors import UnsupportedError
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Selection
from tacit.model import Model

ML = "ai.onnx.ml"
RANDOM = np.random.default_rng(0)
RESULT = Selection("result")
X = RANDOM.normal(size=(24, 4)).astype(np.float32)
BINARY = {"classlabels_ints": [0, 1]}
THREE = {"classlabels_ints": [0, 1, 2]}


def numbers(*shape):
    return RANDOM.normal(size=shape).astype(np.float32).ravel().tolist()


def scaled(**attributes):
    return helper.make_node("Scaler", ["x"], ["scaled"], "scaler", domain=ML, **attributes)


SCALER = scaled(offset=numbers(4), scale=[0.5, 1.0, 2.0, 3.0])


def save(folder, *nodes, outputs=("result",), constants=()):
    """A model of 4 numbers with `nodes`, in the opsets that scikit-learn's exporter writes."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", None]) for name in outputs]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])]
    graph = helper.make_graph(nodes, "classical", inputs, ends, constants)
    versions = [helper.make_opsetid(domain, version) for domain, version in ((ML, 1), ("", 13), ("", 13))]
    path = folder / "classical.onnx"
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), path)
    return path


def node(operator, read="x", outputs=("result",), **attributes):
    return helper.make_node(operator, [read], list(outputs), operator.lower(), domain=ML, **attributes)


def agree(path, near=1e-4):
    """The imported operators, after comparing onnxruntime's outputs before and after the import."""
    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(["result"], {"x": X})
    np.testing.assert_allclose(FloatModel(path, selection=RESULT)(X), expected.reshape(len(X), -1), atol=near)
    return [step.operation["op"] for step in import_onnx(path, selection=RESULT).nodes]


def classifier(transform, rows, labels, read="x", result="result"):
    given = {"coefficients": numbers(rows, 4), "intercepts": numbers(rows), "post_transform": transform}
    return node("LinearClassifier", read, ["label", result], **given, **labels)


@pytest.mark.parametrize(
    ("transform", "rows", "labels", "expected"),
    [
        ("NONE", 3, THREE, ["Gemm"]),
        ("SOFTMAX", 3, THREE, ["Gemm", "Softmax"]),
        ("LOGISTIC", 3, THREE, ["Gemm", "Table"]),
        ("LOGISTIC", 1, BINARY, ["Gemm", "Table"]),
        ("NONE", 1, BINARY, ["Gemm"]),
        ("NONE", 2, {"classlabels_strings": ["a", "b"]}, ["Gemm"]),
    ],
)
def test_linear_classifiers(tmp_path, transform, rows, labels, expected):
    assert agree(save(tmp_path, classifier(transform, rows, labels))) == expected


def test_a_scaler_goes_into_the_layer_behind_it(tmp_path):
    path = save(tmp_path, SCALER, classifier("SOFTMAX", 3, THREE, "scaled"))
    assert agree(path) == ["Gemm", "Softmax"]
    one = scaled(offset=[0.5], scale=[2.0])
    regressor = node("LinearRegressor", "scaled", coefficients=numbers(2, 4), intercepts=numbers(2), targets=2)
    assert agree(save(tmp_path, one, regressor)) == ["Gemm"]
    relu = helper.make_node("Relu", ["scaled"], ["result"], "relu")
    assert agree(save(tmp_path, SCALER, relu)) == ["AddConstant", "BatchNormalization", "Relu"]


def test_scores_before_the_softmax_can_be_the_result(tmp_path):
    probabilities = node("Normalizer", "raw", norm="L1")
    path = save(tmp_path, classifier("SOFTMAX", 3, THREE, "x", "raw"), probabilities)
    assert agree(path) == ["Gemm", "Softmax"]
    source = import_onnx(path, selection=Selection("raw.logits"))
    assert [step.operation["op"] for step in source.nodes] == ["Gemm"]


SUPPORT = {"support_vectors": numbers(6, 4), "kernel_params": [0.5, 0.25, 2.0]}
KERNELS = [
    ("LINEAR", 0, 1),
    ("POLY", 1, 1),
    ("POLY", 2, 3),
    ("POLY", 3, 4),
    ("POLY", 4, 4),
    ("SIGMOID", 0, 3),
    ("RBF", 0, 7),
]


@pytest.mark.parametrize(("kernel", "degree", "count"), KERNELS)
def test_support_vector_machines(tmp_path, kernel, degree, count):
    given = {**SUPPORT, "kernel_type": kernel, "kernel_params": [0.5, 0.25, float(degree)]}
    regressor = node("SVMRegressor", coefficients=numbers(6), rho=[0.3], n_supports=6, **given)
    assert len(agree(save(tmp_path, regressor), 1e-3)) == count
    for counts in ([4, 2], [1, 3, 2]):
        labels = {"classlabels_ints": list(range(len(counts)))}
        rho = numbers(len(counts) * (len(counts) - 1) // 2)
        coefficients = numbers(len(counts) - 1, 6)
        machine = {"coefficients": coefficients, "rho": rho, "vectors_per_class": counts, **labels, **given}
        assert len(agree(save(tmp_path, node("SVMClassifier", "x", ["label", "result"], **machine)), 1e-3)) == count


REFUSED = {
    "kernel": ({"kernel_type": "OWN"}, "`svmregressor`: ai.onnx.ml.SVMRegressor with kernel OWN; use a linear"),
    "degree": ({"kernel_type": "POLY", "kernel_params": [1.0, 0.0, 5.0]}, "polynomial of degree 5"),
    "too few numbers": ({"support_vectors": [1.0, 2.0, 3.0]}, "do not fit together .*; export the model again"),
    "one class": ({"one_class": 1}, "of one class"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_machines_that_are_refused(tmp_path, case):
    changed, message = REFUSED[case]
    given = {"coefficients": numbers(6), "rho": [0.3], "n_supports": 6, **SUPPORT, **changed}
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(save(tmp_path, node("SVMRegressor", **given)))


def test_norms_of_activations_are_refused_with_a_way_out(tmp_path):
    path = save(tmp_path, SCALER, node("Normalizer", "scaled", norm="L2"))
    with pytest.raises(UnsupportedError, match=r"norm=L2.*--result scaled"):
        import_onnx(path)


@pytest.mark.parametrize("places", [1, [0], [2, 0]])
def test_features_by_their_places(tmp_path, places):
    constants = [numpy_helper.from_array(np.array(places, np.int64), "places")]
    chosen = helper.make_node("ArrayFeatureExtractor", ["raw", "places"], ["result"], "chosen", domain=ML)
    path = save(tmp_path, classifier("NONE", 3, THREE, "x", "raw"), chosen, constants=constants)
    assert agree(path)[0] == "Gemm"


def test_casts_that_change_nothing(tmp_path):
    """A perceptron of two classes as it is exported: a Cast in front, and the share of the other class."""
    stored = {"w": RANDOM.normal(size=(4, 1)), "b": RANDOM.normal(size=1), "one": np.ones(1)}
    constants = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in stored.items()]
    nodes = [
        helper.make_node("Cast", ["x"], ["cast"], "cast", to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["cast", "w"], ["product"], "product"),
        helper.make_node("Add", ["product", "b"], ["sum"], "sum"),
        helper.make_node("Sigmoid", ["sum"], ["second"], "second"),
        helper.make_node("Sub", ["one", "second"], ["first"], "first"),
        helper.make_node("Concat", ["first", "second"], ["result"], "result", axis=1),
    ]
    operators = agree(save(tmp_path, *nodes, constants=constants))
    assert operators == ["Identity", "Gemm", "AddConstant", "Table", "Scale", "AddConstant", "Concat"]


def test_a_classifier_in_integers(tmp_path):
    path = save(tmp_path, SCALER, classifier("NONE", 3, THREE, "scaled"))
    compile_model(path, tmp_path / "x.tacit", X, None, Options())
    model = Model(tmp_path / "x.tacit")
    floats = FloatModel(path)(X)
    integers = model.simulate(X) * model.output_scale
    assert np.abs(integers - floats).max() < 0.02 * np.abs(floats).max()


def test_what_the_exporter_writes(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed (pip install skl2onnx)")
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    y = np.arange(len(X)) % 3
    for model in (linear.LogisticRegression(), linear.SGDClassifier(), linear.Ridge()):
        exported = skl2onnx.to_onnx(model.fit(X, y), X[:1])
        path = tmp_path / "exported.onnx"
        path.write_bytes(exported.SerializeToString())
        if isinstance(model, linear.LogisticRegression):
            expected = model.predict_proba(X)
        else:
            expected = model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)
        np.testing.assert_allclose(FloatModel(path)(X), np.reshape(expected, (len(X), -1)), rtol=1e-3, atol=1e-3)
        assert import_onnx(path).nodes
