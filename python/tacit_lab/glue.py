"""Tasks of GLUE that encoders are finetuned on: columns of their files, names of classes, and what measures models."""

from dataclasses import dataclass
from typing import Literal

from tacit.report import metrics
from tacit.report.metrics import Labels, Values

Measure = Literal["accuracy", "f1", "matthews", "spearman"]


@dataclass(frozen=True)
class Task:
    """Columns, names of classes (a number to estimate has one), tokens of the longest input, what chooses models."""

    title: str
    sentences: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    sequence: int
    measure: Measure

    @property
    def estimates(self) -> bool:
        """Whether the output is a number and no class."""
        return len(self.labels) == 1

    def score(self, outputs: Values, wanted: Values) -> float:
        """The measure of outputs (N, classes); 0 where it is not defined."""
        return measured(outputs, wanted, self.estimates)[self.measure]


PAIR = ("sentence1", "sentence2")
TASKS = {
    "cola": Task("CoLA", ("sentence",), "label", ("unacceptable", "acceptable"), 32, "matthews"),
    "sst2": Task("SST-2", ("sentence",), "label", ("negative", "positive"), 64, "accuracy"),
    "mrpc": Task("MRPC", PAIR, "label", ("different", "paraphrase"), 96, "f1"),
    "rte": Task("RTE", PAIR, "label", ("entailment", "not_entailment"), 128, "accuracy"),
    "stsb": Task("STS-B", PAIR, "score", ("similarity",), 64, "spearman"),
}


def measured(outputs: Values, wanted: Values, estimates: bool) -> dict[str, float]:
    """All measures of outputs (N, classes) beside classes or scores (N,)."""
    if estimates:
        found = metrics.of_values(outputs[:, 0], wanted)
        return {name: value or 0.0 for name, value in found.items()}
    labels: Labels = wanted.astype("int64")
    return metrics.of_classes(outputs.argmax(axis=1), labels)
