"""Small models of operators that need care beside certain others, or at certain opsets."""

from collections.abc import Callable

import numpy as np
from networks import Network
from operators import gated
from pieces import IMAGE, floats, ints, one, weights, with_constants


def at(opset: int, build: Callable[[], Network]) -> Callable[[], Network]:
    """The same model at another opset."""

    def changed() -> Network:
        network = build()
        network.opset = opset
        return network

    return changed


def group_norm_before_a_layer() -> Network:
    """GroupNormalization, whose shape ONNX does not infer, and a convolution."""
    network = Network(IMAGE, opset=21)
    names = floats(network, np.linspace(0.5, 1.5, 4)), floats(network, np.linspace(-0.5, 0.5, 4))
    return network.add("GroupNormalization", *names, num_groups=2).conv((3, 4, 3, 3))


def twice_beside_another() -> Network:
    """A tensor twice in one concatenation of a model that is read as a sequence."""
    network = Network(("N", 5))
    network.add("Tile", ints(network, 1, 2), name="tiled").add("Tanh", name="other")
    return network.add("Concat", inputs=["tiled.out", "tiled.out", "other.out"], axis=1).add("Relu")


def dropout_of_a_volume() -> Network:
    """Dropout of a tensor of more axes than the engine has."""
    network = Network(("N", 8, 5, 4), opset=18).add("Relu")
    return network.add("Reshape", ints(network, -1, 2, 4, 5, 4)).add("Dropout").add("Sigmoid")


NEIGHBOURS: dict[str, Callable[[], Network]] = {
    "silu of opset 9": at(9, gated("Sigmoid")),
    "silu of another slope at opset 11": at(11, gated("Sigmoid", scaled=1.702)),
    "mish of opset 9": at(9, gated("Softplus", "Tanh")),
    "group norm before a layer": group_norm_before_a_layer,
    "concat of a tensor twice": twice_beside_another,
    "dropout of a volume": dropout_of_a_volume,
    "softmax of single values at opset 11": one("Softmax", ("N", 4, 1, 1), opset=11, axis=2),
    "einsum by a constant per channel": with_constants("Einsum", weights(4, 6, 5), equation="bchw,cwk->bchk"),
    "einsum by a constant per column": with_constants("Einsum", weights(6, 4, 3), equation="bchw,wcd->bwdh"),
    "resize linear to one row": with_constants(
        "Resize",
        None,
        None,
        np.array([1, 4, 1, 12]),
        shape=(1, 4, 6, 6),
        mode="linear",
        coordinate_transformation_mode="pytorch_half_pixel",
    ),
}
