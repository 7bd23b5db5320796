"""Small models with recurrent layers, as exporters write them: time in front inside, the batch in front outside."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from networks import Network

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
TURNED = {"Y": [2, 0, 1, 3], "H": [1, 0, 2], "C": [1, 0, 2]}
"""The order of axes that brings the batch of each output to the front."""


def recurrent(
    operator: str,
    outputs: str = "Y",
    *,
    steps: int = 4,
    opset: int = 14,
    states: bool = False,
    bias: bool = True,
    directions: int = 1,
    **attributes: Any,
) -> Callable[[], Network]:
    """The operator between transpositions; `outputs` are some of Y, H and C. States are those of one example."""

    def build() -> Network:
        network = Network((1 if states else "N", steps, 3), opset=opset)
        network.add("Transpose", name="turned", perm=[1, 0, 2])
        layer(
            network, operator, "turned.out", 3, outputs, states=states, bias=bias, directions=directions, **attributes
        )
        flat = []
        for role in outputs:
            network.add("Transpose", inputs=[f"rec.{role}"], perm=TURNED[role]).add("Flatten")
            flat.append(network.last)
        return network.add("Concat", inputs=flat, axis=1)

    return build


def layer(
    network: Network,
    operator: str,
    x: str,
    features: int,
    outputs: str,
    *,
    hidden: int = 3,
    states: bool = False,
    bias: bool = True,
    directions: int = 1,
    name: str = "rec",
    lengths: Sequence[int] | None = None,
    peepholes: bool = False,
    **attributes: Any,
) -> Network:
    """Add a recurrent layer that reads `x` and writes tensors called `rec.Y`, `rec.H` and `rec.C`."""
    rows = GATES[operator] * hidden
    weights = {
        "w": network.normal(directions, rows, features),
        "r": network.normal(directions, rows, hidden),
        "b": network.normal(directions, 2 * rows) if bias else None,
        "s": None if lengths is None else np.array(lengths, np.int32),
        "h": network.normal(directions, 1, hidden) if states else None,
        "c": network.normal(directions, 1, hidden) if states and operator == "LSTM" else None,
        "p": network.normal(directions, 3 * hidden) if peepholes else None,
    }
    names = ["" if value is None else network.constant(f"{name}.{role}", value) for role, value in weights.items()]
    while not names[-1]:
        names.pop()
    if directions == 2:
        attributes["direction"] = "bidirectional"
    network.add(operator, inputs=[x, *names], name=name, hidden_size=hidden, **attributes)
    written = [f"{name}.{role}" if role in outputs else "" for role in "YHC"[: 3 if operator == "LSTM" else 2]]
    del network.nodes[-1].output[:]
    network.nodes[-1].output.extend(written)
    return network


def stacked() -> Network:
    """Two layers, and the last states of both: what a framework writes for a classifier."""
    network = Network(("N", 4, 3)).add("Transpose", name="turned", perm=[1, 0, 2])
    layer(network, "LSTM", "turned.out", 3, "YH", name="rec")
    axes = network.constant("axes", np.array([1]))
    network.add("Squeeze", inputs=["rec.Y", axes])
    layer(network, "LSTM", network.last, 3, "H", name="second")
    network.add("Concat", inputs=["rec.H", "second.H"], axis=0)
    network.add("Gather", network.constant("last", np.array(-1)), axis=0)
    return network.gemm(3, 4)


def unrolled() -> Network:
    """A step whose state of zeros an exporter computed, with an axis more."""
    network = Network(("N", 2, 3)).add("Transpose", name="turned", perm=[1, 0, 2])
    network.add("Gather", network.constant("first", np.array(0)), axis=0)
    return network.add("Add", inputs=[network.constant("state", network.normal(1, 1, 3)), network.last]).add("Tanh")


def classifier() -> Network:
    """An LSTM whose last output is classified."""
    network = Network(("N", 3, 4)).add("Transpose", name="turned", perm=[1, 0, 2])
    layer(network, "LSTM", "turned.out", 4, "Y", hidden=4)
    axes = network.constant("axes", np.array([1]))
    network.add("Squeeze", inputs=["rec.Y", axes]).add("Transpose", perm=[1, 0, 2])
    network.add("Gather", network.constant("last", np.array(-1)), axis=1)
    return network.gemm(4, 3)


OTHERS = {
    "activations": ["HardSigmoid", "Softsign", "Affine"],
    "activation_alpha": [0.3, 0.5],
    "activation_beta": [0.4],
}

RECURRENT: dict[str, Callable[[], Network]] = {
    "lstm": recurrent("LSTM"),
    "lstm of opset 7": recurrent("LSTM", opset=7, bias=False),
    "lstm, all outputs": recurrent("LSTM", "YHC", states=True, opset=22),
    "lstm of one step": recurrent("LSTM", "HC", steps=1, states=True),
    "lstm backwards": recurrent("LSTM", direction="reverse"),
    "lstm both ways": recurrent("LSTM", "YH", directions=2, states=True, steps=3),
    "lstm, clipped": recurrent("LSTM", "HC", clip=0.4),
    "lstm of other functions": recurrent("LSTM", "H", **OTHERS),
    "gru": recurrent("GRU", "YH"),
    "gru with a state": recurrent("GRU", "H", states=True, opset=9),
    "gru both ways": recurrent("GRU", "YH", directions=2, steps=3),
    "gru, reset behind": recurrent("GRU", "H", linear_before_reset=1),
    "gru both ways, reset behind": recurrent("GRU", directions=2, linear_before_reset=1, states=True, clip=0.5),
    "rnn": recurrent("RNN", "YH"),
    "rnn of relus": recurrent("RNN", "H", activations=["Relu"], states=True),
    "layers": stacked,
    "unrolled": unrolled,
}
