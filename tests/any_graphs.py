"""Small random models over all operators that are claimed, at any opset, with several inputs and results."""

from any_functions import FUNCTIONS, Kind
from any_growth import AnyGrowth
from any_layers import LAYERS
from any_shapes import SHAPES_KINDS
from random_graphs import KINDS

ALL: dict[str, Kind] = {**LAYERS, **FUNCTIONS, **SHAPES_KINDS}
IMAGES_AT = range(14, 18)
"""The opsets that the kinds of `random_graphs` are written for."""
MOST_NODES = 10


def model_of(seed: int) -> AnyGrowth:
    """A model of three to ten operators; some have a few more, where one kind is several operators."""
    growth = AnyGrowth(seed)
    groups: list[dict[str, Kind]] = [LAYERS, LAYERS, FUNCTIONS, SHAPES_KINDS]
    if growth.opset in IMAGES_AT:
        groups.append(KINDS)  # type: ignore[arg-type]
    wanted = growth.upto(8, 3)
    for _ in range(10 * wanted):
        if len(growth.network.nodes) >= wanted:
            break
        if growth.earlier and growth.maybe(0.15):
            growth.go_to(*growth.pick([entry for entry in growth.earlier if "size" not in entry[0]]))
        if growth.small(growth.shape):
            kind = growth.pick(list(growth.pick(groups).items()))
            count = len(growth.network.nodes)
            kind[1](growth)
            growth.kinds += [kind[0]] if len(growth.network.nodes) > count else []
    if growth.maybe(0.15):
        written = {name for node in growth.network.nodes for name in node.output}
        choices = [name for name, _ in growth.earlier if name in written and name != growth.last]
        growth.results = [growth.pick(choices)] if choices else []
    if "y" in growth.inputs and not any("y" in node.input for node in growth.network.nodes):
        del growth.inputs["y"]
    return growth
