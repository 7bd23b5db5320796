"""From a network with ReLUs to one with polynomials of degree 2, which suite lola can evaluate.

Every ReLU becomes a*x^2 + b*x + c with three numbers of its own, first fitted to what it sees, then
trained with the weights; max pooling becomes average pooling. Convolutions, matrix products, pools,
reshapes and one branch after another are understood: what suite lola runs.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper
from tacit.importers.onnx import import_onnx
from tacit.importers.source import Node, Source
from torch import Tensor, nn
from torch.nn import functional

from tacit_lab.train.trainable import BATCH, Constants, Trainable, batches, operator
from tacit_lab.train.trainable import to_onnx as written

FITTED = 512
"""Examples that polynomials are fitted to."""
SMOOTHING, CLIP = 0.05, 1.0


class Squares(Trainable):
    """The network of a source graph with polynomials in place of comparisons."""

    refusal = "which suite lola does not evaluate"

    def __init__(self, source: Source) -> None:
        """Take over the weights; raises `MisuseError` naming the first operator that is not understood."""
        super().__init__(source)
        self.fitting = False
        for index, node in enumerate(source.nodes):
            if node.operation["op"] == "Relu":
                self.register_parameter(f"p{index}", nn.Parameter(torch.tensor([0.0, 0.5, 0.2])))

    def fit(self, x: Tensor) -> None:
        """Make each polynomial the one nearest to its ReLU on `x`."""
        self.fitting = True
        with torch.no_grad():
            self(x)
        self.fitting = False

    def activated(self, index: int, _node: Node, x: Tensor) -> Tensor:
        """The polynomial."""
        polynomial = self.get_parameter(f"p{index}")
        if self.fitting:
            polynomial.data = fitted(x)
        c, b, a = polynomial
        return (a * x + b) * x + c

    def written(self, index: int, node: Node) -> tuple[list[onnx.NodeProto], Constants]:
        """A node of the trained network, and the constants that it needs besides weights."""
        kind = node.operation["op"]
        if kind != "Relu":
            averaged = {**node.operation, "op": "AveragePool"} if kind == "MaxPool" else node.operation
            return operator(replace(node, operation=averaged))
        names = [f"{node.output}.{power}" for power in "cba"]
        polynomial = self.get_parameter(f"p{index}").detach().numpy()
        return horner(node, names), {name: np.asarray(value) for name, value in zip(names, polynomial, strict=True)}


def fitted(x: Tensor) -> Tensor:
    """Coefficients c, b, a of the polynomial nearest to a ReLU on the values of `x`."""
    flat = x.detach().flatten().double()
    powers = torch.stack([torch.ones_like(flat), flat, flat**2], dim=1)
    solution = torch.linalg.lstsq(powers, flat.clamp(min=0)[:, None]).solution[:, 0]
    return solution.float()


def finetune(source: Path, x: NDArray[np.float32], y: NDArray[np.int64], epochs: int, rate: float) -> Squares:
    """Replace and train on inputs `x` (N, *shape) with class numbers `y` (N,)."""
    torch.manual_seed(1)
    model = Squares(import_onnx(source))
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
    model.fit(inputs[:FITTED])
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    steps = max(1, epochs * (len(inputs) // BATCH))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=rate, total_steps=steps)
    for chosen in batches(len(inputs), epochs):
        loss = functional.cross_entropy(model(inputs[chosen]), labels[chosen], label_smoothing=SMOOTHING)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call,unused-ignore]
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        schedule.step()
    return model


def to_onnx(model: Squares) -> onnx.ModelProto:
    """The network as ONNX."""
    return written(model, "square")


def horner(node: Node, names: list[str]) -> list[onnx.NodeProto]:
    """(a*x + b)*x + c."""
    x, y = node.inputs[0], node.output
    c, b, a = names
    between = [f"{y}.{step}" for step in ("scaled", "shifted", "times")]
    return [
        helper.make_node("Mul", [x, a], [between[0]], f"{node.name}.scale"),
        helper.make_node("Add", [between[0], b], [between[1]], f"{node.name}.shift"),
        helper.make_node("Mul", [between[1], x], [between[2]], f"{node.name}.times"),
        helper.make_node("Add", [between[2], c], [y], node.name),
    ]
