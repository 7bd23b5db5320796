"""`tacit train square`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from numpy.typing import NDArray

from tacit import report
from tacit.data import load
from tacit.errors import MisuseError
from tacit.options import AsJson, Preprocess
from tacit.preprocess import parse


def square_command(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL.onnx", help="Trained network with ReLUs.", show_default=False)
    ],
    data: Annotated[Path, typer.Option(metavar="DATA.npz", help="Inputs `x` and class numbers `y` to train on.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="X.onnx", help="File to write.")],
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the data.")] = 5,
    rate: Annotated[float, typer.Option(min=1e-6, max=1.0, help="Largest learning rate.")] = 1e-3,
    preprocess: Preprocess = None,
    json: AsJson = False,
) -> None:
    """Replace the ReLUs of a network by polynomials of degree 2, finetune it, and write it for suite lola.

    Max pools become average pools. Needs PyTorch: `pip install tacit[train]`.
    """
    try:
        import onnx
        import torch

        from tacit.train.square import finetune, to_onnx
    except ImportError as error:
        raise MisuseError(f"training needs PyTorch ({error}): pip install tacit[train]") from error
    examples = load(data, None, None if preprocess is None else parse(preprocess))
    if examples.y is None:
        raise MisuseError(f"{data} has no class numbers `y`")
    trained = finetune(model, examples.x, examples.y, epochs, rate)
    onnx.save(to_onnx(trained), output)
    with torch.no_grad():
        parts = [trained(torch.from_numpy(part)).argmax(dim=1).numpy() for part in split(examples.x)]
    hits = sum(int((part == y).sum()) for part, y in zip(parts, split(examples.y), strict=True))
    content = {"output": str(output), "inputs": len(examples.y), "top1": hits / len(examples.y)}
    if json:
        report.emit_json(content)
    else:
        report.console.print(f"wrote {output}; {content['top1']:.2%} of the training data", highlight=False)


def split(array: NDArray[Any]) -> list[NDArray[Any]]:
    """Parts of 500."""
    return [array[start : start + 500] for start in range(0, len(array), 500)]
