"""Stages, sizes and measurements as the harnesses of HomomorphicEncryption.org's benchmarks name them.

Their harness (github.com/fhe-benchmarking) runs a submission stage by stage, each a program that reads and writes
files: key generation, preprocessing of the model, encryption of inputs, encrypted computation, decryption. A protocol
of two parties has no such files, since they talk while they compute. What they do once for all sessions of a client
stands under key generation (setup: keys and base OTs), and everything else of a session, from the encryption of an
input to its result, under the encrypted computation. What goes to the server then is the encrypted input, what comes
back the encrypted result. Making the model file stands under model preprocessing. The stages that are the harness's own
(data sets, quality) are left out of all sums.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

KEYS, MODEL = "Key Generation", "Encrypted model preprocessing"
PREPARED, ENCRYPTED = "Input preprocessing", "Input encryption"
COMPUTED, DECRYPTED = "Encrypted computation", "Result decryption"
KEY_BYTES, INPUT_BYTES, RESULT_BYTES = "Public and evaluation keys", "Encrypted input", "Encrypted results"
KIB, MIB, GIB = 2**10, 2**20, 2**30
"""Their harness prints sizes by powers of 1,024."""


class Reference(NamedTuple):
    """What a table of theirs says of the reference submission for one size of a workload.

    `inputs` is the number of inputs of the size, `stages` seconds by stage, `sizes` bytes by what they are of, and
    `accuracy` the share of right answers, if there is one.
    """

    name: str
    inputs: int
    stages: dict[str, float]
    sizes: dict[str, float]
    accuracy: float | None = None

    @property
    def seconds(self) -> float:
        """The sum over all stages of the submission but that of the model, which needs no client."""
        return sum(seconds for stage, seconds in self.stages.items() if stage != MODEL)


class Measurement(NamedTuple):
    """Seconds by stage and bytes by what they are of, of a session here."""

    stages: dict[str, float]
    sizes: dict[str, int]

    @property
    def seconds(self) -> float:
        """The sum over all stages but that of the model."""
        return sum(seconds for stage, seconds in self.stages.items() if stage != MODEL)

    def content(self, workload: "Workload") -> dict[str, Any]:
        """The file of a run as their harness writes it, in its units."""
        timing = {stage: f"{seconds:.4f}s" for stage, seconds in self.stages.items()}
        total = f"{sum(self.stages.values()):.4f}s"
        quality = {} if workload.quality is None else {"Quality": {"Encrypted model quality": workload.quality}}
        return {
            "model_name": workload.model,
            "dataset_name": workload.data,
            "Timing": {**timing, "Total": total},
            "Bandwidth": {what: size(each) for what, each in self.sizes.items()},
            **quality,
            "Server Reported": {},
        }


class Workload(NamedTuple):
    """What a file of their harness says besides: names of model and data, the size, and how many answers are right."""

    model: str
    data: str
    instance: str = "single"
    quality: dict[str, float] | None = None

    @property
    def file(self) -> str:
        """Where their harness puts the first run."""
        return f"measurements/{self.instance}/results-1.json"


def quality(right: int, inputs: int) -> dict[str, float]:
    """Right answers among so many inputs (above 0), as their harness says it."""
    return {"correct_predictions": right, "total_samples": inputs, "accuracy": right / inputs}


def write(measured: list[dict[str, Any]], folder: Path) -> list[Path]:
    """Write the files of runs into a folder as their harness lays them out; gives their paths."""
    written = []
    for run in measured:
        if "file" in run:
            path = folder / run["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(run["measurement"], indent=2) + "\n", encoding="utf-8")
            written.append(path)
    return written


def measurement(report: dict[str, Any], compile_seconds: float) -> Measurement:
    """The stages of a session, given its report (`tacit run --json`) and how long the model file took to make."""
    phases = report["phases"]
    later = [phases[name] for name in ("offline", "online")]
    sizes = {
        KEY_BYTES: sum(phases["setup"]["bytes"].values()),
        INPUT_BYTES: sum(phase["bytes"]["client_to_server"] for phase in later),
        RESULT_BYTES: sum(phase["bytes"]["server_to_client"] for phase in later),
    }
    setup = float(phases["setup"]["seconds"])
    stages = {KEYS: setup, MODEL: compile_seconds, COMPUTED: float(report["seconds"]) - setup}
    return Measurement(stages, sizes)


def size(count: float) -> str:
    """Bytes as their harness prints them: 358.8K, 5.2M, 1.4G."""
    for unit, name in ((GIB, "G"), (MIB, "M"), (KIB, "K")):
        if count >= unit:
            return f"{count / unit:.1f}{name}"
    return f"{count:.0f}B"
