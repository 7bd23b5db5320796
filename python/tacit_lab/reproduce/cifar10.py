"""Accuracy of trained networks on the test images of CIFAR-10."""

from pathlib import Path
from typing import Any, NamedTuple

from tacit.data.examples import Examples
from tacit.data.preprocess import PRESETS
from tacit.errors import MisuseError
from tacit.measure.evaluation import Reference, simulated
from tacit.model import Model

from tacit_lab.cifar import pixels

CALIBRATION = 300
"""Training images that calibrate."""


def examples(data: Path, archive: str, preset: str, count: int | None) -> Examples:
    """The first images of an archive of CIFAR-10 in the folder of all data, as a preset makes inputs of them.

    Raises `MisuseError` where the archive is not there.
    """
    path = data / "cifar10" / archive
    if not path.exists():
        raise MisuseError(f"{path} does not exist; --data names the folder with cifar10 and models")
    x, y = pixels(path)
    return Examples(PRESETS[preset].inputs(x[:count].transpose(0, 2, 3, 1)), y[:count])


class Trained(NamedTuple):
    """A file among the models, the preset of its inputs, and the suite that runs it."""

    file: str
    preset: str
    suite: str


def scores(data: Path, network: Trained, made: Path, images: int | None) -> dict[str, Any]:
    """Accuracy (`top1`, 0 to 1) of the integers and (`float_top1`) of the float model on the first test images.

    The network is compiled into the file `made`.
    """
    from tacit.compiler.compiler import Options, compile_model

    source = data / "models" / network.file
    tests, seen = (
        examples(data, f"cifar10_{name}.npz", network.preset, count)
        for name, count in (("test", images), ("train_50k", CALIBRATION))
    )
    compile_model(source, made, seen.x, options=Options(suite=network.suite))
    return simulated(Model(made), tests, Reference(source))
