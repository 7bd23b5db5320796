"""Estimators of scikit-learn, trained on its own data sets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit_lab.zoo.entry import TRAINED, Entry

STEPS = 1000


def logistic() -> tuple[Any, str]:
    """Scaled logistic regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=STEPS)), "load_breast_cancer"


def components() -> tuple[Any, str]:
    """Logistic regression of principal components."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), PCA(16), LogisticRegression(max_iter=STEPS)), "load_digits"


def perceptron() -> tuple[Any, str]:
    """A perceptron with a hidden layer."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=STEPS, random_state=0)), "load_digits"


def ridge() -> tuple[Any, str]:
    """Ridge regression."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), Ridge()), "load_diabetes"


def estimator(name: str, build: Callable[[], tuple[Any, str]]) -> Entry:
    """An estimator with the data set that it is trained on."""

    def make(path: Path) -> None:
        import numpy as np
        from skl2onnx import to_onnx
        from sklearn import datasets

        found, data = build()
        x, y = getattr(datasets, data)(return_X_y=True)
        np.save(path.with_suffix(".real.npy"), x.astype(np.float32))
        path.write_bytes(to_onnx(found.fit(x, y), x[:1].astype(np.float32)).SerializeToString())

    return Entry(f"sklearn-{name}", "tabular", "scikit-learn", "BSD-3-Clause", make, TRAINED, private=True)


ENTRIES = (
    estimator("logistic-regression", logistic),
    estimator("principal-components", components),
    estimator("perceptron", perceptron),
    estimator("ridge", ridge),
)
