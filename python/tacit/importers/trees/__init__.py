"""Ensembles of decision trees: files of XGBoost, LightGBM, CatBoost and ONNX, and estimators in Python."""

from tacit.importers.trees.ensemble import Ensemble, Tree, leaf
from tacit.importers.trees.estimators import is_ensemble, of_estimator
from tacit.importers.trees.files import is_trees, read
from tacit.importers.trees.xgboost import of_xgboost

__all__ = ["Ensemble", "Tree", "is_ensemble", "is_trees", "leaf", "of_estimator", "of_xgboost", "read"]
