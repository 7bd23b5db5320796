"""Forms that ONNX files come in: quantised, fused, with functions, with control flow."""
