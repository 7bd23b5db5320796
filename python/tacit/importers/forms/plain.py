"""Every form of a model becomes the plain one: operators of ONNX itself, on floats."""

import onnx

from tacit.importers.casts import as_float32
from tacit.importers.forms.defuse import defuse
from tacit.importers.forms.dequantise import dequantise
from tacit.importers.source import Remarks


def plain(model: onnx.ModelProto, remarks: Remarks) -> None:
    """Write quantised and fused operators as those that they stand for, in place.

    Raises `UnsupportedError` naming the node.
    """
    dequantise(model, remarks)
    defuse(model)
    as_float32(model)
