"""Fitted pipelines and estimators of scikit-learn, read without its exporter."""

from tacit.importers.pipelines.reading import Layers, Trees, is_pipeline, read

__all__ = ["Layers", "Trees", "is_pipeline", "read"]
