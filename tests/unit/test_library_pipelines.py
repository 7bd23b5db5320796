"""Pipelines of the installed scikit-learn: scores within the stated bound, and labels equal where they are decided."""

import numpy as np
import pytest
from tacit import compile as compile_object

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn import (  # noqa: E402  # noqa: E402
    cluster,
    decomposition,
    discriminant_analysis,
    feature_selection,
    linear_model,
    naive_bayes,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)

RANDOM = np.random.default_rng(11)
X = RANDOM.normal(size=(400, 5)) * [1, 20, 300, 0.1, 4] + [0, 3, -100, 1, 0]
SUM = X[:, 0] + X[:, 1] / 20 - X[:, 2] / 300
TWO, THREE = (SUM > 0).astype(int), np.digitize(SUM, [-1, 1])
NAMES = [f"x{at}" for at in range(5)]

CLASSIFIERS = {
    "logistic": linear_model.LogisticRegression(),
    "ridge": linear_model.RidgeClassifier(),
    "sgd": linear_model.SGDClassifier(random_state=0),
    "perceptron": linear_model.Perceptron(random_state=0),
    "linear SVM": svm.LinearSVC(random_state=0),
    "discriminant": discriminant_analysis.LinearDiscriminantAnalysis(),
}
OTHERS = {
    "bayes": naive_bayes.GaussianNB(),
    "RBF": svm.SVC(),
    "polynomial": svm.SVC(kernel="poly", degree=2),
    "perceptrons": neural_network.MLPClassifier((6,), max_iter=60, random_state=0),
}
REGRESSORS = {
    "linear": linear_model.LinearRegression(),
    "ridge": linear_model.Ridge(),
    "lasso": linear_model.Lasso(0.01),
    "elastic": linear_model.ElasticNet(0.01),
    "huber": linear_model.HuberRegressor(),
    "bayesian": linear_model.BayesianRidge(),
    "linear SVM": svm.LinearSVR(random_state=0),
}
BEFORE = {
    "standard": [preprocessing.StandardScaler()],
    "robust, PCA": [preprocessing.RobustScaler(), decomposition.PCA(3, whiten=True)],
    "largest, SVD": [preprocessing.MaxAbsScaler(), decomposition.TruncatedSVD(3)],
    "range, best": [preprocessing.MinMaxScaler(), feature_selection.SelectKBest(k=3)],
}


def scored(model):
    """Scores and labels of a fitted pipeline, private and its own, and the stated bound."""
    compiled = compile_object(model, X)
    found = compiled.real(compiled.simulate(dict(zip(NAMES, X.T, strict=True))))
    result = compiled.schema.result
    return found, result.labels(found), result.error


def own(model):
    """What the library says before a link."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    likely = model.predict_log_proba(X)
    return likely[:, 1] - likely[:, 0]


def agree(labels, predicted):
    """Whether all labels that are decided are the library's."""
    return all(label in (None, str(wanted)) for label, wanted in zip(labels, predicted, strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_linear_classifiers(name, before):
    for y in (TWO, THREE):
        model = sklearn.base.clone(pipeline.make_pipeline(*BEFORE[before], CLASSIFIERS[name])).fit(X, y)
        found, labels, error = scored(model)
        assert np.abs(found - own(model).reshape(found.shape)).max() <= error
        assert agree(labels, model.predict(X))
        assert labels.count(None) < 40


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OTHERS)
def test_other_classifiers(name):
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), OTHERS[name]).fit(X, TWO)
    found, labels, error = scored(model)
    wanted = (
        own(model) if name != "perceptrons" else np.log(model.predict_proba(X)[:, 1] / model.predict_proba(X)[:, 0])
    )
    assert np.abs(found[:, 0] - wanted).max() <= error
    assert agree(labels, model.predict(X))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), REGRESSORS[name]).fit(X, SUM)
    found, labels, error = scored(model)
    assert np.abs(found[:, 0] - model.predict(X)).max() <= error < 0.02
    assert labels is None


@pytest.mark.filterwarnings("ignore")
def test_clusters_are_the_nearest_centres():
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), cluster.KMeans(4, n_init=1, random_state=0)).fit(X)
    _, labels, _ = scored(model)
    assert agree(labels, model.predict(X))
    assert labels.count(None) < 20
