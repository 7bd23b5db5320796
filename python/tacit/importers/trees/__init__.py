"""Ensembles of decision trees: files of XGBoost, and estimators of scikit-learn and XGBoost."""

from tacit.importers.trees.ensemble import Ensemble, Tree, leaf
from tacit.importers.trees.estimators import is_ensemble, of_estimator
from tacit.importers.trees.xgboost import is_xgboost, of_xgboost, read

__all__ = ["Ensemble", "Tree", "is_ensemble", "is_xgboost", "leaf", "of_estimator", "of_xgboost", "read"]
