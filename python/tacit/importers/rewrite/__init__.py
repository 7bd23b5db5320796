"""Operators of ONNX that become simpler operators of ONNX before the import."""

from tacit.importers.rewrite.driver import REWRITES, rewrite

__all__ = ["REWRITES", "rewrite"]
