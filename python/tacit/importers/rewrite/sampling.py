"""Images made larger or smaller: each axis of such an operator is a product with a constant matrix."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.importers.call import Shape
from tacit.importers.fold import compute
from tacit.importers.rewrite.arrangements import chosen
from tacit.importers.rewrite.writer import Writer

OPSET = 19
"""The opset of the reference by which matrices are computed."""
SCALES = 2
"""The input of Resize that has its factors; the sizes are the one after."""
PASSED_ON = ("coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "mode", "nearest_mode")


def resize(w: Writer) -> str:
    """Resize by constant factors or to a constant size."""
    attributes = w.call.attributes
    for name in ("antialias", "keep_aspect_ratio_policy"):
        if attributes.get(name, 0) not in (0, "stretch"):
            w.call.refuse(f"with {name}={attributes[name]}", "leave it out")
    if attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        w.call.refuse("with tf_crop_and_resize", "crop by Slice")
    factors = w.call.constant(SCALES, "scales") if len(w.call.inputs) > SCALES else w.call.constant(1, "scales")
    own = {name: attributes[name] for name in PASSED_ON if name in attributes}
    if len(w.call.inputs) == SCALES:  # opset 10 has neither a region nor other coordinates
        own |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return sampled(w, own, factors)


def upsample(w: Writer) -> str:
    """Upsample, which Resize took the place of; before opset 9 its factors are an attribute."""
    listed = w.call.attributes.get("scales")
    factors = w.call.constant(1, "scales") if listed is None else np.array(listed, np.float32)
    mode = w.call.attributes.get("mode", "nearest")
    own = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return sampled(w, own, factors)


def sampled(w: Writer, attributes: Mapping[str, Any], factors: NDArray[Any] | None) -> str:
    """The input with each axis whose length changes multiplied by its matrix."""
    x, shape = w.x, list(w.shape)
    listed: Sequence[int] = w.call.attributes.get("axes", range(len(shape) + 1))
    scales = {} if factors is None or not factors.size else dict(zip(listed, factors.ravel(), strict=True))
    for axis, length in enumerate(w.call.output_shape):
        factor = float(scales.get(axis + 1, length / shape[axis]))
        if length == shape[axis] and factor == 1:
            continue
        if attributes.get("coordinate_transformation_mode") == "align_corners" and factor * shape[axis] != length:
            w.call.refuse(f"with align_corners by {factor:g}, read in two ways", "give sizes in place of scales")
        x = one_axis(w, x, tuple(shape), axis, weights(w, attributes, shape[axis], length, factor))
        shape[axis] = length
    return x


def weights(w: Writer, attributes: Mapping[str, Any], size: int, length: int, factor: float) -> NDArray[np.float32]:
    """The matrix (length, size) of one axis, from the reference implementation."""
    eye = np.eye(size, dtype=np.float32)[None, None]
    if length == 1 and attributes.get("coordinate_transformation_mode") == "pytorch_half_pixel":
        # ONNX says coordinate 0, and its reference implementation takes another.
        return eye[0, 0, :1]
    scales = np.array([1, 1, 1, factor], np.float32)
    found = compute("Resize", attributes, [eye, None, scales], 1, OPSET)
    if found is None or found[0].shape[-1] != length:
        sizes = np.array([1, 1, size, length], np.int64)
        found = compute("Resize", attributes, [eye, None, None, sizes], 1, OPSET)
    if found is None:
        w.call.refuse("cannot be computed", "use mode nearest or linear with constant factors")
    return np.asarray(found[0][0, 0].T, np.float32)


def one_axis(w: Writer, x: str, shape: Shape, axis: int, matrix: NDArray[np.float32]) -> str:
    """One axis times its matrix; what only copies elements is a rearrangement."""
    copies = bool(((matrix == 0) | (matrix == 1)).all() and (matrix.sum(axis=1) == 1).all())
    arranged = chosen(w, x, shape, axis, matrix.argmax(axis=1).tolist()) if copies else None
    return w.along(x, shape, axis, matrix) if arranged is None else arranged


SAMPLING: Mapping[str, Callable[[Writer], str | None]] = {"Resize": resize, "Upsample": upsample}
