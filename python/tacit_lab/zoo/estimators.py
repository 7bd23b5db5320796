"""Estimators of scikit-learn, trained on its own data sets behind a scaler."""

from importlib import import_module
from pathlib import Path
from typing import Any

from tacit_lab.zoo.entry import TRAINED, Entry

CANCER, DIGITS, DIABETES = "load_breast_cancer", "load_digits", "load_diabetes"
Step = tuple[str, dict[str, Any]]
LONG = {"max_iter": 1000}
ESTIMATORS: dict[str, tuple[str, tuple[Step, ...]]] = {
    "logistic-regression": (CANCER, (("linear_model.LogisticRegression", LONG),)),
    "principal-components": (
        DIGITS,
        (("decomposition.PCA", {"n_components": 16}), ("linear_model.LogisticRegression", LONG)),
    ),
    "perceptron": (
        DIGITS,
        (("neural_network.MLPClassifier", {"hidden_layer_sizes": (32,), "random_state": 0} | LONG),),
    ),
    "ridge": (DIABETES, (("linear_model.Ridge", {}),)),
    "linear-regression": (DIABETES, (("linear_model.LinearRegression", {}),)),
    "lasso": (DIABETES, (("linear_model.Lasso", {}),)),
    "elastic-net": (DIABETES, (("linear_model.ElasticNet", {}),)),
    "huber": (DIABETES, (("linear_model.HuberRegressor", LONG),)),
    "partial-least-squares": (DIABETES, (("cross_decomposition.PLSRegression", {}),)),
    "regressor-perceptron": (DIABETES, (("neural_network.MLPRegressor", {"random_state": 0} | LONG),)),
    "support-vectors-polynomial": (CANCER, (("svm.SVC", {"kernel": "poly"}),)),
    "discriminant-analysis": (DIGITS, (("discriminant_analysis.LinearDiscriminantAnalysis", {}),)),
    "gradient-descent": (DIGITS, (("linear_model.SGDClassifier", {"random_state": 0}),)),
}
"""Names, data sets, and the classes behind the scaler with their arguments."""


def estimator(name: str, data: str, steps: tuple[Step, ...]) -> Entry:
    """An estimator with the data set that it is trained on."""

    def make(path: Path) -> None:
        import numpy as np
        from skl2onnx import to_onnx
        from sklearn import datasets
        from sklearn.pipeline import make_pipeline

        found = [built("preprocessing.StandardScaler", {}), *(built(*step) for step in steps)]
        x, y = getattr(datasets, data)(return_X_y=True)
        np.save(path.with_suffix(".real.npy"), x.astype(np.float32))
        path.write_bytes(to_onnx(make_pipeline(*found).fit(x, y), x[:1].astype(np.float32)).SerializeToString())

    return Entry(f"sklearn-{name}", "tabular", "scikit-learn", "BSD-3-Clause", make, TRAINED, private=True)


def built(name: str, arguments: dict[str, Any]) -> Any:
    """An estimator by its module and name below `sklearn`."""
    module, _, found = name.rpartition(".")
    return getattr(import_module(f"sklearn.{module}"), found)(**arguments)


ENTRIES = tuple(estimator(name, data, steps) for name, (data, steps) in ESTIMATORS.items())
