"""What follows the states of an encoder: poolings, and heads that transformers' classes have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tacit.importers.architectures.config import Config
from tacit.importers.architectures.graph import Graph

Kind = Literal["mean", "cls", "hidden", "classes", "tokens", "spans", "next"]


Head = Callable[[Graph, str, str], str]
"""Writes a head for states (N, sequence, hidden) and their mask (N, sequence); gives the output."""


def hidden(_graph: Graph, x: str, _mask: str) -> str:
    """The states of all tokens (N, sequence, hidden)."""
    return x


def mean(graph: Graph, x: str, mask: str) -> str:
    """The sum over tokens (N, hidden); whoever knows how many there are divides by that."""
    row = graph.add("Unsqueeze", "pooling.mask", mask, graph.integers("pooling.axes", [1]))
    pooled = graph.add("MatMul", "pooling.sum", row, x)
    return graph.add("Squeeze", "pooled", pooled, "pooling.axes")


def cls(graph: Graph, x: str, _mask: str) -> str:
    """The state of the first token (N, hidden)."""
    return graph.row("pooled", x, 0)


def tokens(graph: Graph, x: str, _mask: str) -> str:
    """A number per class of each token (N, sequence, classes)."""
    return graph.dense("classifier", x, "classifier")


def spans(graph: Graph, x: str, _mask: str) -> str:
    """Where an answer starts and ends: two numbers per token (N, sequence, 2)."""
    return graph.dense("answers", x, "qa_outputs")


@dataclass(frozen=True)
class Classifier:
    """A classifier of the first token: a dense layer, an activation, a dense layer (N, classes)."""

    dense: str
    activation: str
    output: str
    name: str = "classifier.dense"

    def __call__(self, graph: Graph, x: str, mask: str) -> str:
        """Write it."""
        inner = graph.dense(self.name, cls(graph, x, mask), self.dense)
        role = f"{self.name.removesuffix('.dense')}.{self.activation.lower()}"
        return graph.dense("classifier", graph.add(self.activation, role, inner), self.output)


BERT = Classifier("pooler.dense", "Tanh", "classifier", "pooler.dense")
ROBERTA = Classifier("classifier.dense", "Tanh", "classifier.out_proj")
COMMON: dict[Kind, Head] = {"hidden": hidden, "mean": mean, "cls": cls, "tokens": tokens, "spans": spans}
"""Heads that are the same in all architectures."""
RANKS: Mapping[Kind, int] = {"hidden": 3, "mean": 2, "cls": 2, "classes": 2, "tokens": 3, "spans": 3, "next": 2}
"""How many axes the output has."""


def classes(head: Head) -> Callable[[Config], dict[Kind, Head]]:
    """Of heads that are its own an architecture has one for sequence classification only."""
    return lambda _config: {"classes": head}
