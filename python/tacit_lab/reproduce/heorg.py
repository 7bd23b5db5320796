"""The workloads of HomomorphicEncryption.org's benchmarks beside their reference submissions.

Theirs are fully homomorphic: a client sends a ciphertext and waits. Ours are two parties that talk while they compute.
The column `paper` has what their tables say of the reference submission, on machines of theirs: MNIST of 20 February
2026, a CPU (fhe-benchmarking.github.io); BERT of July 2026, 176 vCPUs (fhe-benchmarking/BERT, run 1 of `single`); face
verification of 2026, an EPYC 7502 (fhe-benchmarking/face-recognition, commit 8ab98103). Finding faces and looking
embeddings up, which are the client's own business in the clear, are in neither column.
"""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tacit.errors import MisuseError
from tacit.model import Model
from tacit.session.pair import Pair, Run

from tacit_lab.heorg import digits, faces, sentences
from tacit_lab.heorg.contract import (
    COMPUTED,
    DECRYPTED,
    ENCRYPTED,
    GIB,
    INPUT_BYTES,
    KEY_BYTES,
    KEYS,
    MIB,
    MODEL,
    PREPARED,
    RESULT_BYTES,
    Measurement,
    Reference,
    Workload,
    measurement,
    quality,
)
from tacit_lab.reproduce.paper import Rows, row

MB = 1e6
RUNS = 3
"""Their harness's --num_runs for a submission; the median counts here."""
CALIBRATION = 1000
TALKS = "two parties, interactive, one thread each over loopback; theirs fully homomorphic, on machines of their own"

MNIST = (
    Reference(
        "1 digit",
        1,
        {KEYS: 0.9751, MODEL: 0.0037, PREPARED: 0.0035, ENCRYPTED: 0.09247, COMPUTED: 7.6306, DECRYPTED: 0.08393},
        {KEY_BYTES: GIB, INPUT_BYTES: 5 * MIB, RESULT_BYTES: MIB},
    ),
    Reference(
        "100 digits",
        100,
        {KEYS: 0.9661, MODEL: 0.0037, PREPARED: 0.02213, ENCRYPTED: 3.0613, COMPUTED: 645.6, DECRYPTED: 2.5396},
        {KEY_BYTES: GIB, INPUT_BYTES: 500.3 * MIB, RESULT_BYTES: 100.2 * MIB},
        0.96,
    ),
    Reference(
        "1,000 digits",
        1000,
        {KEYS: 0.966, MODEL: 0.0039, PREPARED: 0.186, ENCRYPTED: 35.93, COMPUTED: 6512.8, DECRYPTED: 24.74},
        {KEY_BYTES: GIB, INPUT_BYTES: 4.9 * GIB, RESULT_BYTES: 1001.6 * MIB},
        0.974,
    ),
)
MRPC = Reference(
    "1 pair of sentences",
    1,
    {KEYS: 51.6178, MODEL: 3.2822, ENCRYPTED: 4.041, COMPUTED: 2453.4007, DECRYPTED: 0.6315},
    {KEY_BYTES: 21.4 * GIB, INPUT_BYTES: 46 * MIB, RESULT_BYTES: 30 * MIB},
)
FACES = Reference(
    "1 pair of faces",
    1,
    {KEYS: 456.5029, MODEL: 122.4592, ENCRYPTED: 32.8632, COMPUTED: 1467.3848, DECRYPTED: 70.3684},
    {KEY_BYTES: 28.8 * GIB, INPUT_BYTES: 128.1 * MIB, RESULT_BYTES: MIB},
)
LAYERS, TOKENS, LABELS = 12, 128, 2
SEEN = 8
"""Random inputs that calibrate networks with random weights."""
STORED = {name: Path(f"bench/results/papers/{name}.json") for name in ("heorg-bert", "heorg-face")}
"""What the full tables found of networks that take longer than a quick one may."""
INSTANCES, QUICK = ("single", "small", "medium"), 2
"""How their harness calls the sizes of MNIST, and how many of them the quick table has."""
SENTENCES, PORTRAITS = Workload("bert-base", "mrpc"), Workload("mobilefacenet", "lfw")
"""Their names; inputs here are random, since no cost depends on them."""


def rows(theirs: Reference, ours: Measurement, right: float | None = None) -> Rows:
    """Lines of a size: seconds of all stages, of the computation, bytes, and accuracy where there is one."""
    name = theirs.name
    lines = [
        row(f"{name}, all stages", theirs.seconds, ours.seconds, "s"),
        row(f"{name}, computation", theirs.stages[COMPUTED], ours.stages[COMPUTED], "s"),
        row(f"{name}, keys", theirs.sizes[KEY_BYTES] / MB, ours.sizes[KEY_BYTES] / MB, "MB"),
        row(f"{name}, to the server", theirs.sizes[INPUT_BYTES] / MB, ours.sizes[INPUT_BYTES] / MB, "MB"),
        row(f"{name}, to the client", theirs.sizes[RESULT_BYTES] / MB, ours.sizes[RESULT_BYTES] / MB, "MB"),
    ]
    if theirs.accuracy is not None and right is not None:
        lines.append(row(f"{name}, accuracy", 100 * theirs.accuracy, 100 * right, "%"))
    return lines


def middle(model: Model, x: NDArray[np.float32], y: NDArray[np.int64] | None, runs: int) -> Run:
    """The session of the median time among some."""
    pair = Pair(model, threads=1)
    found = sorted((pair.run(x, y) for _ in range(runs)), key=lambda run: float(run.report["seconds"]))
    return found[len(found) // 2]


def besides(name: str, workload: Workload, ours: Measurement, report: dict[str, Any]) -> dict[str, Any]:
    """What has no number of theirs: the file of the run as their harness writes it, rounds, memory, exactness."""
    kept = {key: report[key] for key in ("rounds", "max_error", "peak_memory_bytes", "cpu_seconds")}
    return {"name": name, "file": workload.file, "measurement": ours.content(workload), **kept}


def mnist(full: bool, data: Path) -> dict[str, Any]:
    """MNIST by their network, trained here; the images are the first of the test set."""
    from tacit.compiler.compiler import compile_model

    with np.load(data / "mnist" / "mnist.npz") as archive:
        names = ("x_train", "y_train", "x_test", "y_test")
        x_train, y_train, x_test, y_test = (archive[name] for name in names)
    seen, asked = digits.inputs(x_train), digits.inputs(x_test)
    labels = y_test.astype(np.int64)
    lines: Rows = []
    found: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        source, path = Path(folder) / "mlp.onnx", Path(folder) / "mlp.tacit"
        digits.save(digits.train(seen, y_train.astype(np.int64)), source)
        before = perf_counter()
        compile_model(source, path, seen[:CALIBRATION])
        compiled, model = perf_counter() - before, Model(path)
        for theirs, instance in zip(MNIST if full else MNIST[:QUICK], INSTANCES, strict=False):
            chosen = slice(0, theirs.inputs)
            run = middle(model, asked[chosen], labels[chosen], RUNS if theirs.inputs == 1 else 1)
            ours = measurement(run.report, compiled)
            right = int(np.sum(run.prediction.classes == labels[chosen]))
            lines += rows(theirs, ours, right / theirs.inputs)
            said = None if theirs.inputs == 1 else quality(right, theirs.inputs)
            found.append(besides(theirs.name, Workload("mlp", "mnist", instance, said), ours, run.report))
    return {"rows": lines, "measured": found, "note": TALKS}


class Case(NamedTuple):
    """A network with random weights, given as ONNX, inputs (N, *shape) that calibrate it, and those of one session."""

    source: Any
    seen: NDArray[np.float32]
    x: NDArray[np.float32]


def measured(theirs: Reference, workload: Workload, case: Case) -> dict[str, Any]:
    """A network beside the reference."""
    import onnx
    from tacit.compiler.compiler import compile_model

    with TemporaryDirectory() as folder:
        path, made = Path(folder) / "network.onnx", Path(folder) / "network.tacit"
        onnx.save(case.source, path)
        before = perf_counter()
        compile_model(path, made, case.seen)
        compiled = perf_counter() - before
        run = middle(Model(made), case.x, None, RUNS)
    ours = measurement(run.report, compiled)
    found = besides(theirs.name, workload, ours, run.report)
    if len(case.x) == 2 and run.prediction.logits is not None:
        found["score"] = faces.score(run.prediction.logits)
    return {"rows": rows(theirs, ours), "measured": [found], "note": f"random weights, for the cost only; {TALKS}"}


def or_stored(name: str, full: bool, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` gives; without `full` what it last gave, from the repository. Raises `MisuseError` if it lacks."""
    if full:
        return make()
    try:
        stored = json.loads(STORED[name].read_text(encoding="utf-8"))
        return {part: stored[part] for part in ("rows", "measured", "note")}
    except (OSError, ValueError, KeyError) as error:
        raise MisuseError(f"{STORED[name]} is not there; run this in the repository, or with --full") from error


def bert(full: bool, data: Path) -> dict[str, Any]:
    """BERT-base over 128 tokens with a pooler and two classes; `data` is not read."""
    del data
    shape = sentences.BERT_BASE

    def make() -> dict[str, Any]:
        source = sentences.network(shape, LAYERS, TOKENS, LABELS)
        given = sentences.states(shape, TOKENS, SEEN + 1)
        return measured(MRPC, SENTENCES, Case(source, given[:SEEN], given[SEEN:]))

    return or_stored("heorg-bert", full, make)


def face(full: bool, data: Path) -> dict[str, Any]:
    """Two faces as inputs of one session, of whose embeddings the client computes the score; `data` is not read."""
    del data
    given = faces.pairs(SEEN)
    return or_stored(
        "heorg-face", full, lambda: measured(FACES, PORTRAITS, Case(faces.network(), given[2:], given[:2]))
    )
