"""The demonstration: ten digits classified by a server that never sees them."""

from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel

from tacit.data.examples import Examples, load
from tacit.data.preprocess import PRESETS
from tacit.errors import MisuseError
from tacit.model import Model
from tacit.report import terminal
from tacit.session.pair import Pair, Run

BLOCKS = np.array([[" ", "▄"], ["▀", "█"]])
INK = 0.4


def asset(name: str) -> Path:
    """Path of a file shipped with the package."""
    with as_file(files("tacit") / "assets" / name) as path:
        return path


def digits() -> Examples:
    """Ten MNIST test images, one per class, with their labels."""
    return load(asset("mnist_digits.npz"), (1, 28, 28))


def build_model(path: Path) -> Model:
    """Compile the shipped MNIST network into `path`."""
    from tacit.compiler.compiler import Options, compile_model

    path.parent.mkdir(parents=True, exist_ok=True)
    calibration = load(asset("mnist_calibration.npz")).x
    names = tuple(str(digit) for digit in range(10))
    compile_model(asset("mnist.onnx"), path, calibration, options=Options(labels=names, preprocessing=PRESETS["mnist"]))
    return Model(path)


def write_test_set(path: Path, mnist: Path | None) -> int:
    """Write `x` and `y` for `tacit evaluate`; returns how many images there are.

    `mnist` is the full data set (`x_test` uint8 (N, 28, 28), `y_test`); without it the shipped
    ten digits have to do.
    """
    if mnist is not None and mnist.exists():
        with np.load(mnist, allow_pickle=False) as archive:
            x = archive["x_test"][:, None].astype(np.float32) / np.float32(255)
            examples = Examples(x, archive["y_test"].astype(np.int64))
    else:
        examples = digits()
    if examples.y is None:
        raise MisuseError("the shipped digits have no labels")
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, x=examples.x, y=examples.y)
    return len(examples.x)


def picture(image: NDArray[np.float32]) -> str:
    """An image (height, width) in [0, 1] as half-block characters, two rows of pixels to a line."""
    dark = (image > INK).astype(int)
    return "\n".join("".join(BLOCKS[top, bottom]) for top, bottom in zip(dark[::2], dark[1::2], strict=True))


def panels(examples: Examples, run: Run) -> Iterator[Panel]:
    """Each digit, cropped to where MNIST puts ink, with its prediction."""
    names = run.prediction.report.get("labels", [])
    for image, label in zip(examples.x[:, 0, 4:24, 4:24], run.prediction.classes, strict=True):
        yield Panel(picture(image), title=f"predicted {terminal.named(names, int(label))}", expand=False)


def show(examples: Examples, run: Run, console: Console) -> None:
    """Print the pictures, the costs and who learned what."""
    console.print(Columns(panels(examples, run)))
    console.print(terminal.layer_table(run.report))
    console.print(terminal.phase_table(run.report))
    console.print(terminal.knowledge_table(run.prediction.report["reveal"]))
    for line in terminal.quality_lines(run.report):
        console.print(line, highlight=False)


def prepare(folder: Path, mnist: Path | None) -> Model:
    """Leave `mnist.tacit` and `mnist_test.npz` in `folder`, keeping those already there."""
    compiled, test_set = folder / "mnist.tacit", folder / "mnist_test.npz"
    if not test_set.exists():
        count = write_test_set(test_set, mnist)
        missing = "" if count > len(digits().x) else " only: the full MNIST data set was not found"
        terminal.note(f"{test_set} holds {count} test images{missing}")
    return Model(compiled) if compiled.exists() else build_model(compiled)


def run_demo(model: Model, console: Console) -> dict[str, Any]:
    """Classify the shipped digits between two processes, and show them."""
    console.print("A server process holds the weights; this process holds ten pictures; TLS between.")
    examples = digits()
    with terminal.progress("classifying") as advance:
        run = Pair(model).run(examples.x, examples.y, advance)
    show(examples, run, console)
    return run.report
