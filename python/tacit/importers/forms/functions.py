"""Functions that a model defines for itself, in the places where they are called."""

import onnx
from onnx import inliner

LARGE = 1 << 16
"""Constants of more bytes are put aside while functions are put in place, which copies a model."""


def inline(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without functions of its own."""
    if not model.functions:
        return model
    stored = list(model.graph.initializer)
    light = onnx.ModelProto()
    weights = [tensor for tensor in stored if len(tensor.raw_data) > LARGE]
    if weights:
        del model.graph.initializer[:]
        model.graph.initializer.extend(tensor for tensor in stored if len(tensor.raw_data) <= LARGE)
    light = inliner.inline_local_functions(model)
    light.graph.initializer.extend(weights)
    return light
