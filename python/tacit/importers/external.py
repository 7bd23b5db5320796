"""Weights in files beside the model, which may be larger together than a protobuf message can be."""

from pathlib import Path

import onnx
from onnx import TensorProto, checker
from onnx.external_data_helper import ExternalDataInfo, _get_all_tensors, load_external_data_for_tensor

from tacit.errors import MisuseError
from tacit.importers.fold import without_weights

MOST_BYTES = 1 << 30
"""Models with more bytes of weights are never written as one message, which may have 2 GiB."""


def load_with_weights(path: Path) -> onnx.ModelProto:
    """A model with the weights that it keeps in other files, read one after another.

    Raises `MisuseError` naming a file that is missing, or ends too early.
    """
    model = onnx.load(path, format="protobuf", load_external_data=False)
    for tensor in _get_all_tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            check_file(path, tensor)
            load_external_data_for_tensor(tensor, str(path.parent))
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
    return model


def check_file(path: Path, tensor: TensorProto) -> None:
    """Raise `MisuseError` unless the file with a tensor is there and long enough."""
    entry = ExternalDataInfo(tensor)
    file = path.parent / entry.location
    what = f"{path} keeps the weight `{tensor.name}` in {entry.location}"
    if not file.is_file():
        raise MisuseError(f"{what}, which is missing; copy it into the folder of the model")
    end, size = (entry.offset or 0) + (entry.length or 0), file.stat().st_size
    if end > size:
        raise MisuseError(f"{what}, which has {size} bytes and not {end}: copy it again")


def weight_bytes(model: onnx.ModelProto) -> int:
    """How many bytes the constants of a model take."""
    return sum(len(tensor.raw_data) for tensor in model.graph.initializer)


def check_model(model: onnx.ModelProto) -> None:
    """Check a model; one with many weights without them, and each of these by itself.

    Raises what the checker of ONNX does.
    """
    if weight_bytes(model) <= MOST_BYTES:
        checker.check_model(model)
        return
    light = without_weights(model)
    light.graph.name = model.graph.name
    checker.check_model(light)
    for tensor in model.graph.initializer:
        checker.check_tensor(tensor)
