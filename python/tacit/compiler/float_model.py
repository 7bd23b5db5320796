"""The float model in the clear, under onnxruntime: calibration and `--mode plain` only."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from tacit.data.parts import unit_of_each
from tacit.errors import MisuseError
from tacit.importers.external import MOST_BYTES, weight_bytes
from tacit.importers.onnx import expose
from tacit.importers.source import WHOLE, Selection

BATCH = 64
AGAIN = "see that it runs the file by itself, and export the model again"
SMALL = 1 << 12
"""Constants of fewer bytes stay in a large model, which may need their values early."""
BATCH_BYTES = 2**27
"""How much the tensors of a batch may take, as long as it has more than one example."""


class FloatModel:
    """An ONNX model that gives its output and, on request, the tensors named in `tensors`."""

    def __init__(
        self,
        path: Path,
        tensors: Sequence[str] = (),
        sequence: int | None = None,
        public: bool = False,
        selection: Selection = WHOLE,
    ) -> None:
        """Load what `selection` needs of the model, for inputs of `sequence` tokens if it reads text.

        These are embedded if the embedding is `public`. Raises errors as the importer does.
        """
        model, self.signature = expose(path, tensors, sequence, public, selection)
        options = onnxruntime.SessionOptions()
        self.lent = lend_weights(model, options)
        options.log_severity_level = 3
        self.tensors = [*tensors] if tensors else [self.signature.output_name]
        try:
            content = model.SerializeToString()
            self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own exceptions share no base class
            raise MisuseError(f"onnxruntime cannot load {path}: {error}; {AGAIN}") from error
        self.path = path

    def batches(self, x: NDArray[np.float32]) -> Iterator[dict[str, NDArray[np.float32]]]:
        """Values of the requested tensors for inputs (N, *shape), batch by batch; the first is one example.

        Where inputs or results have units, `x` has none of them and the tensors have.
        """
        shape = self.signature.input_shape
        if x.shape[1:] != shape:
            raise MisuseError(f"input has shape {list(x.shape)}; the model takes {['N', *shape]}")
        if self.signature.inputs:
            x = (x / unit_of_each(self.signature.inputs)).astype(np.float32)
        if self.signature.states:
            yield from self.stream(x)
            return
        computed = [name for name in self.tensors if name != self.signature.input_name]
        start, size = 0, 1
        while start < len(x):
            part = x[start : start + size]
            # Asked for nothing, onnxruntime gives everything.
            values = self.run(computed, {self.signature.input_name: part}) if computed else []
            start, size = start + size, self.batch(sum(value.nbytes for value in values) // size)
            yield {self.signature.input_name: part} | dict(zip(computed, values, strict=True))

    def stream(self, x: NDArray[np.float32]) -> Iterator[dict[str, NDArray[np.float32]]]:
        """Values for the inputs (N, *shape) of one stream, one after another: states begin with zeros."""
        befores = [before for before, _ in self.signature.states]
        afters = [after for _, after in self.signature.states]
        given = {self.signature.input_name, *befores}
        computed = [name for name in dict.fromkeys([*self.tensors, *afters]) if name not in given]
        shapes = {entry.name: entry.shape for entry in self.session.get_inputs()}
        states = {name: np.zeros(shapes[name], np.float32) for name in befores}
        for part in x:
            feeds = {self.signature.input_name: part[None], **states}
            values = dict(zip(computed, self.run(computed, feeds), strict=True))
            yield feeds | values
            states = {before: values[after] for before, after in self.signature.states}

    def run(self, names: Sequence[str], feeds: dict[str, NDArray[np.float32]]) -> list[NDArray[np.float32]]:
        """Some tensors for a batch of inputs, by their names."""
        try:
            return list(self.session.run(names, feeds))
        except Exception as error:  # onnxruntime's own exceptions share no base class
            raise MisuseError(f"onnxruntime cannot run {self.path}: {error}; {AGAIN}") from error

    def batch(self, example: int) -> int:
        """How many examples make a batch when the tensors of one take `example` bytes."""
        return max(1, min(BATCH, BATCH_BYTES // max(example, 1))) if self.signature.batched else 1

    def __call__(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """The output, flattened to (N, outputs)."""
        name = self.signature.output_name
        given = self.signature.input_name
        outputs = [values[name].reshape(len(values[given]), -1) for values in self.batches(x)]
        units = unit_of_each(self.signature.outputs)
        return (np.concatenate(outputs) * units).astype(np.float32)


def lend_weights(model: onnx.ModelProto, options: onnxruntime.SessionOptions) -> list[Any]:
    """Let onnxruntime read the constants of a large model where they are, in place: a message has room for 2 GiB.

    They must live as long as the session does; the result holds them.
    """
    if weight_bytes(model) <= MOST_BYTES:
        return []
    names, arrays = [], []
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) > SMALL:
            names.append(tensor.name)
            arrays.append(numpy_helper.to_array(tensor))
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="lent")
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in arrays]
    options.add_external_initializers(names, values)
    return [*arrays, *values]
